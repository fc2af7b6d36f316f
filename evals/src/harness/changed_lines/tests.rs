use super::*;

#[test]
fn hunk_at_the_maximum_line_is_read() {
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -4294967295,2 +4294967295,2 @@\n-a\n-b\n+c\n+d\n";
    let changed = ChangedLines::from_patch(patch);
    assert_eq!(changed.added.keys().collect::<Vec<_>>(), ["a.py"]);
}

#[test]
fn quoted_file_names_are_unescaped() {
    let patch = "--- \"a/\\303\\244.py\"\n+++ \"b/\\r\\a\\\".py\"\n@@ -1 +1 @@\n-a\n+b\n";
    let changed = ChangedLines::from_patch(patch);
    let files: Vec<_> = changed.added.keys().chain(changed.removed.keys()).collect();
    assert_eq!(files, ["\r\u{7}\".py", "ä.py"]);
}

#[test]
fn lines_are_counted_per_side() {
    let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -3,4 +3,5 @@ def f():\n x\n-y\n+--- a\n+z\n \n w\n\
                 @@ -20 +21,2 @@\n-q\n\\ No newline at end of file\n+q\n+r\n\
                 diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-a\n+b\n\
                 diff --git a/n.py b/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/n.py\t2020\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    let changed = ChangedLines::from_patch(patch);
    let lines = |set: &Lines, file: &str| set[file].iter().copied().collect::<Vec<_>>();
    assert_eq!(lines(&changed.removed, "a.py"), [4, 20]);
    assert_eq!(lines(&changed.added, "a.py"), [4, 5, 21, 22]);
    assert_eq!(lines(&changed.added, "n.py"), [1, 2]);
    assert_eq!(changed.added.len() + changed.removed.len(), 3);
}
