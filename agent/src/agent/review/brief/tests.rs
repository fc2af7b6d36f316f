use super::*;

const PATCH: &str = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,7 +1,7 @@ def f():\n one\n two\n \
                     three\n-four\n+4\n five\n six\n seven\ndiff --git a/b.bin b/b.bin\nindex 1..2 100644\nBinary files differ\n";

#[test]
fn redundant_file_headers_are_removed() {
    assert_eq!(
        without_headers(PATCH),
        "--- a/a.py\n+++ b/a.py\n@@ -1,7 +1,7 @@ def f():\n one\n two\n three\n-four\n+4\n five\n six\n seven\n\
         diff --git a/b.bin b/b.bin\nindex 1..2 100644\nBinary files differ"
    );
}

#[test]
fn added_functions_need_no_context() {
    let head = "diff --git a/t.py b/t.py\nindex 1..2 100644\n--- a/t.py\n+++ b/t.py\n";
    let added = "@@ -9,3 +9,7 @@ def test_a():\n     pass\n \n \n+@mark\n+def test_b():\n+    assert f()\n+\n+\n def test_c():";
    let import = "@@ -1,2 +1,3 @@\n import a\n+import b\n import c";
    let within = "@@ -4,2 +4,3 @@ def test_a():\n     x = 1\n+    assert x\n     pass";
    let changed = "@@ -4,2 +4,2 @@ def test_a():\n-def f(): 1\n+def f(): 2\n     pass";
    assert_eq!(
        shorten_test_patch(&format!("{head}{import}\n{within}\n{added}\n{changed}")),
        format!(
            "--- a/t.py\n+++ b/t.py\n@@\n+import b\n{within}\n@@\n+@mark\n+def test_b():\n+    assert f()\n{changed}"
        )
    );
}

#[test]
fn known_code_keeps_only_changes() {
    assert_eq!(
        changed_lines_only(PATCH.split("diff --git a/b").next().unwrap_or_default()),
        "--- a/a.py\n+++ b/a.py\n@@ def f():\n three\n-four\n+4\n five"
    );
    assert_eq!(changed_lines_only("@@ -1 +1 @@\n-a\n+b\n"), "@@\n-a\n+b");
}

#[test]
fn patched_code_is_not_repeated() {
    let excerpt = |path: &str, source: &str| Excerpt {
        path: path.to_owned(),
        line: 1,
        source: source.to_owned(),
    };
    let all = vec![
        excerpt("a.py", "two\nthree\n\nfour"),
        excerpt("b.py", "two\nthree"),
        excerpt("a.py", "four\nother\nlines"),
    ];
    let excerpts = exclude_shown_in_patches(all.clone(), &[PATCH]);
    assert_eq!(excerpts, all[1..]);
}

#[test]
fn equal_parameter_failures_are_merged() {
    let lines = [
        "t::a[1]: E: x",
        "t::a[2]: E: x",
        "t::a[3]: E: y",
        "t::b: E: x",
        "t::b: E: x",
    ];
    assert_eq!(
        folded(&lines.map(str::to_owned)),
        [
            "t::a[1]: E: x; 1 more parameter set alike",
            "t::a[3]: E: y",
            "t::b: E: x",
            "t::b: E: x"
        ]
    );
}
