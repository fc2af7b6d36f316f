use super::*;

#[test]
fn only_code_lines_are_counted() {
    let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n--- was a remark\n+x\n y\n\
                 diff --git a/N.md b/N.md\n--- a/N.md\n+++ b/N.md\n@@ -1 +1,3 @@\n+a\n+b\n c\n";
    let paths = Paths {
        code: vec!["a.py".to_owned(), "N.md".to_owned()],
        ..Paths::default()
    };
    let facts = Difficulty::from_patches(&paths, patch, patch);
    assert_eq!((facts.code_files, facts.code_lines), (1, 2));
    assert_eq!((facts.code_hunks, facts.test_lines), (2, 4));
}
