#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use proptest::prelude::*;
use similar::TextDiff;

use super::*;

const OLD: &str = "\
import pkg


def test_one():
    assert pkg.f(1) == 1


def test_two():
    assert pkg.f(2) == 2


class TestAll:
    def test_three(self):
        assert pkg.f(3) == 3
";

fn old() -> BTreeMap<String, String> {
    BTreeMap::from([("tests/test_a.py".to_owned(), OLD.to_owned())])
}

fn new(reply: &str) -> (String, Vec<String>) {
    let proposed = read(reply, &old()).unwrap();
    let content = proposed.files["tests/test_a.py"].clone().unwrap();
    (content, proposed.repairs)
}

#[test]
fn both_changes_of_shortened_path_are_kept() {
    let change = |line: usize, number: usize| {
        format!(
            "--- a/test_a.py\n+++ b/test_a.py\n@@ -{line} +{line} @@\n-    assert pkg.f({number}) == {number}\n\
             +    assert pkg.f({number}) == 0\n"
        )
    };
    let (text, _) = new(&(change(5, 1) + &change(9, 2)));
    assert!(
        text.contains("f(1) == 0") && text.contains("f(2) == 0"),
        "{text}"
    );
}

fn after_two(added: &str) -> String {
    OLD.replace("f(2) == 2\n", &format!("f(2) == 2\n{added}"))
}

const ADDED: &str = "\n\ndef test_new():\n    assert pkg.f(4) == 4\n";

/// Applies the same change in many notations.
#[test]
fn sloppy_diffs_are_read() {
    let hunk = " def test_two():\n     assert pkg.f(2) == 2\n+\n+\n+def test_new():\n+    assert pkg.f(4) == 4\n";
    let header = "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n";
    let right = format!("{header}@@ -8,2 +8,6 @@\n{hunk}");
    let (content, repairs) = new(&right);
    assert_eq!((content, repairs), (after_two(ADDED), vec![]));
    let git = "diff --git a/tests/test_a.py b/tests/test_a.py\nindex 1..2 100644\n";
    for (reply, repair) in [
        (format!("{git}{right}"), ""),
        (
            format!("Here it is:\n```diff\n{right}```\nIt fails today.\n"),
            "",
        ),
        (right.replace('\n', "\r\n"), "CRLF"),
        (
            right.replace("-8,2 +8,6", "-80,3 +1,99"),
            "numbers of a hunk are wrong",
        ),
        (right.replace(" -8,2 +8,6 @@", ""), "no line numbers"),
        (
            right.replace(" -8,2 +8,6 @@", " def test_two():"),
            "no line numbers",
        ),
        (
            right
                .replace("a/tests", "tests")
                .replace("b/tests", "tests"),
            "",
        ),
        (right.replace("/tests/", "/"), "is `tests/test_a.py`"),
        (
            right.replace("--- a/tests/test_a.py\n", ""),
            "lacks its first line",
        ),
        (
            right.replace("+++ b/tests/test_a.py\n", ""),
            "lacks its second line",
        ),
        (
            format!("{right}\nIt checks:\n\n- It fails today\n+ It passes later\n  - or so\n"),
            "after a hunk is omitted",
        ),
        (format!("{right}\n- It fails today.\n"), "after a hunk"),
        (right.replace("\n def", "\ndef"), "no sign"),
        (
            right.replace("f(2) == 2", "f(2) == 2   "),
            "trailing white space differs",
        ),
        (format!("{right}\nThis test fails on the old code.\n"), ""),
        (
            right.replace(" def test_two", " # not there\n def test_two"),
            "edge is wrong",
        ),
    ] {
        let (content, repairs) = new(&reply);
        assert_eq!(content, after_two(ADDED), "{reply}");
        let is_reported = repairs.iter().any(|message| message.contains(repair));
        assert!(repair.is_empty() || is_reported, "{repair}: {repairs:?}");
    }
}

#[test]
fn added_lines_are_reindented() {
    let reply = "+++ tests/test_a.py\n@@\n def test_three(self):\n     assert pkg.f(3) == 3\n+    assert pkg.f(4) == 4\n";
    let (content, repairs) = new(reply);
    let expected_tail = "        assert pkg.f(3) == 3\n        assert pkg.f(4) == 4\n";
    assert!(content.ends_with(expected_tail), "{content}");
    assert!(
        repairs
            .iter()
            .any(|message| message.contains("indentation"))
    );
    let deeper = "+++ tests/test_a.py\n@@\n     def test_one():\n-        assert pkg.f(1) == 1\n+        assert pkg.f(1) == 2\n";
    assert_eq!(new(deeper).0, OLD.replace("f(1) == 1", "f(1) == 2"));
}

/// Returns the old file, with a string that contains a fence.
fn with_fence() -> (BTreeMap<String, String>, &'static str) {
    let text = "def f():\n    \"\"\"Do it.\n\n```\nf()\n```\n    \"\"\"\n    return 1\n";
    let old = BTreeMap::from([("tests/test_a.py".to_owned(), text.to_owned())]);
    (old, text)
}

#[test]
fn fence_in_context_is_code() {
    let (old, text) = with_fence();
    let diff = "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -3,6 +3,6 @@\n \n ```\n f()\n ```\n     \"\"\"\n-    return 1\n+    return 2\n";
    let expected_text = text.replace("return 1", "return 2");
    for reply in [
        diff.to_owned(),
        format!("Run:\n```sh\npytest\n```\n{diff}"),
        format!("```diff\n{diff}```\n"),
        format!("{diff}\n```sh\npytest\n```\n"),
    ] {
        let proposed = read(&reply, &old).unwrap();
        assert_eq!(
            proposed.files["tests/test_a.py"].as_deref(),
            Some(expected_text.as_str()),
            "{reply}"
        );
    }
}

#[test]
fn removed_lines_are_not_headers() {
    let old = BTreeMap::from([("a.sql".to_owned(), "a\n\n-- see b/c\nd\ne\n".to_owned())]);
    let reply = "--- a/a.sql\n+++ b/a.sql\n@@ -1,3 +1,2 @@\n a\n \n--- see b/c\n@@ -4,2 +3,2 @@\n d\n-e\n+f\n";
    let proposed = read(reply, &old).unwrap();
    assert_eq!(proposed.files["a.sql"].as_deref(), Some("a\n\nd\nf\n"));
    let refused = "--- a/a.sql\n+++ b/a.sql\n@@ -1,3 +1,3 @@\n-a\n+b\n\n-gone\n";
    assert!(read(refused, &old).unwrap_err().0.contains("does not fit"));
}

#[test]
fn files_are_added_and_deleted() {
    let new_file =
        "--- /dev/null\n+++ b/tests/test_b.py\n@@ -0,0 +1,2 @@\n+def test_b():\n+    assert 0\n";
    let proposed = read(new_file, &old()).unwrap();
    let content = Some("def test_b():\n    assert 0\n".to_owned());
    assert_eq!(proposed.files["tests/test_b.py"], content);
    assert!(proposed.repairs.is_empty());
    let unsaid = read(&new_file.replace("/dev/null", "a/tests/test_b.py"), &old()).unwrap();
    assert_eq!((unsaid.files.len(), unsaid.repairs.len()), (1, 1));
    let deletion = "--- a/tests/test_a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import pkg\n";
    assert_eq!(
        read(deletion, &old()).unwrap().files["tests/test_a.py"],
        None
    );
    for (reply, why) in [
        ("I cannot do that.", "no diff"),
        ("", "no diff"),
        (
            "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n",
            "`x.py` does not exist",
        ),
        (
            "--- a/../x.py\n+++ b/../x.py\n@@ -1 +1 @@\n-a\n+b\n",
            "not a path",
        ),
        (
            "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1 @@\n-nothing like it\n+b\n",
            "`nothing like it`",
        ),
    ] {
        let error = read(reply, &old()).unwrap_err().0;
        assert!(error.contains(why), "{error}");
    }
}

/// Generates files of a few distinct lines, so that hunks fit in several places.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[a-c]", "    [a-c]", Just(String::new()), "[-+ @]{1,3}x"];
    prop::collection::vec(line, 1..14).prop_map(|lines| format!("{}\n", lines.join("\n")))
}

/// Generates blocks of code, and the same with some more lines; each line is unique.
fn blocks() -> impl Strategy<Value = (String, String)> {
    prop::collection::vec((0usize..4, any::<bool>()), 2..30).prop_map(|lines| {
        let (mut before, mut after) = (String::from("if first:\n    first()\n"), String::new());
        after.push_str(&before);
        // Maximum depth of the next line in each file.
        let (mut in_before, mut in_after) = (1, 1);
        for (number, (depth, is_new)) in lines.iter().enumerate() {
            let depth = (*depth).min(in_before).min(in_after);
            let line = format!("{}if x{number}:\n", "    ".repeat(depth));
            after.push_str(&line);
            in_after = depth + 1;
            if !is_new {
                before.push_str(&line);
                in_before = depth + 1;
            }
        }
        (before, after)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A correct diff is applied as git applies it.
    #[test]
    fn correct_diffs_apply(before in text(), after in text()) {
        if before == after {
            return Ok(());
        }
        let diff = TextDiff::from_lines(&before, &after);
        let written = diff.unified_diff().header("a/a.py", "b/a.py").to_string();
        let old = BTreeMap::from([("a.py".to_owned(), before.clone())]);
        let proposed = read(&written, &old).unwrap();
        prop_assert_eq!(proposed.files["a.py"].as_deref(), Some(after.as_str()), "{}", written);
    }

    /// If the file has tabs and the reply spaces, added lines get tabs.
    #[test]
    fn spaces_become_tabs_of_file((before, after) in blocks()) {
        if before == after {
            return Ok(());
        }
        let diff = TextDiff::from_lines(&before, &after);
        let written = diff.unified_diff().header("a/a.py", "b/a.py").to_string();
        let tabs = |text: &str| text.replace("    ", "\t");
        let old = BTreeMap::from([("a.py".to_owned(), tabs(&before))]);
        let proposed = read(&written, &old).unwrap();
        let content = proposed.files["a.py"].clone();
        prop_assert_eq!(content, Some(tabs(&after)), "{}", written);
    }

    /// Any text is either applied or rejected.
    #[test]
    fn any_text_is_read_or_refused(reply in "(--- a/a.py\n)?(\\+\\+\\+ b/a.py\n)?(@@ -[0-9]{1,3} @@\n)?([-+ \\\\a]{0,3}[a-c]?\r?\n){0,8}", before in text()) {
        let old = BTreeMap::from([("a.py".to_owned(), before)]);
        let _ = read(&reply, &old);
    }
}
