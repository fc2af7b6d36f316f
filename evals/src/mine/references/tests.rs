use super::*;

fn message(text: &str) -> Vec<u64> {
    in_message(text, "acme/sums").into_iter().collect()
}

#[test]
fn only_fixing_keywords_name_issues() {
    for (text, numbers) in [
        ("Fixes #12", vec![12]),
        ("fix: round numbers. Closes: #3, #4 and #5.", vec![3, 4, 5]),
        ("Fix parsing of help, closing #2819", vec![2819]),
        ("Resolves GH-7", vec![7]),
        ("Fix issue #9", vec![9]),
        ("closes https://github.com/Acme/sums/issues/31", vec![31]),
        ("closes https://github.com/other/sums/issues/31", vec![]),
        ("fixes acme/sums#8, other/x#9", vec![8]),
        ("See #12; follows up on #13", vec![]),
        ("Prefix #12", vec![]),
        ("Fix a bug that #12 brought", vec![]),
    ] {
        assert_eq!(message(text), numbers, "{text}");
    }
}

#[test]
fn changelog_fragments_are_recognized_by_path() {
    for (path, number) in [
        ("changes/123.bugfix.rst", Some(123)),
        ("changelog/13330.bugfix.1.rst", Some(13330)),
        ("docs/changes/units/77.feature.rst", Some(77)),
        ("news/8.bugfix", Some(8)),
        ("changelog/14.doc.rst", None),
        ("changes/2024.md", None),
        ("tests/changes/x.rst", None),
    ] {
        assert_eq!(in_fragment(path), number, "{path}");
    }
}

#[test]
fn only_new_changelog_entries_count() {
    for (path, is) in [
        ("CHANGES.md", true),
        ("docs/whatsnew/changelog.rst", true),
        ("doc/build/changelog/unreleased_20/1.rst", true),
        ("HISTORY", true),
        ("src/changes.py", false),
        ("README.md", false),
    ] {
        assert_eq!(is_change_log(path), is, "{path}");
    }
    let patch = "+++ b/CHANGES.md\n@@ -1,2 +1,3 @@\n-- Moved. {issue}`4`\n+- Moved here. {issue}`4`\n \
                     - Old. :issue:`5`\n+- New. {issue}`6` {pr}`7`\n+- :issue:`8`\n+    :tickets: 10, 11\n";
    let numbers: Vec<u64> = in_entries(patch).into_iter().collect();
    assert_eq!(numbers, [6, 8, 10, 11]);
}
