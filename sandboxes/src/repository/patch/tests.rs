use super::{check_text, touched_paths};

#[test]
fn text_without_diff_is_rejected() {
    let no_diff = Err("it contains no diff".to_owned());
    assert_eq!(check_text("I would change f.\n--- see above\n"), no_diff);
    assert_eq!(check_text(" \n"), Err("the patch is empty".to_owned()));
    assert_eq!(check_text("text\ndiff --git a/x b/x\n"), Ok(()));
    assert_eq!(check_text("--- a/x\r\n+++ b/x\r\n"), Ok(()));
}

#[test]
fn headers_name_paths() {
    let patch = "diff --git a/x y.py b/x y.py\n--- a/x y.py\n+++ b/x y.py\n\
                     diff --git \"a/\\303\\244.py\" \"b/\\303\\244.py\"\n\
                     diff --git a/old.py b/new.py\nrename from old.py\nrename to new.py\n--- /dev/null\n+++ b/n.py\t2020\n";
    let paths: Vec<_> = touched_paths(patch).into_iter().collect();
    assert_eq!(paths, ["n.py", "new.py", "old.py", "x y.py", "ä.py"]);
}

/// The patch of a binary file has no other line with its name.
#[test]
fn binary_patch_headers_name_paths() {
    for (header, names) in [
        (
            r#""a/\303\244 b.png" "b/\303\244 b.png""#,
            ["ä b.png", "ä b.png"],
        ),
        (
            r#""a/say \"x\" \\" "b/say \"x\" \\""#,
            [r#"say "x" \"#, r#"say "x" \"#],
        ),
        (r#""a/\303\244 b" b/plain c"#, ["ä b", "plain c"]),
        (r#"a/plain c "b/\303\244 b""#, ["plain c", "ä b"]),
        ("a/x y b/x y", ["x y", "x y"]),
    ] {
        let patch = format!("diff --git {header}\nGIT binary patch\n");
        let paths: Vec<_> = touched_paths(&patch).into_iter().collect();
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(paths, names, "{header}");
    }
}
