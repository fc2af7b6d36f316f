//! Tests of the files that `testwright select` takes, and of what it says about them.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, example};

/// A test in a new file.
const NEW_TEST: &str = r#"--- /dev/null
+++ b/tests/test_cut.py
@@ -0,0 +1,5 @@
+from slugs import slugify
+
+
+def test_cut():
+    assert slugify("How to bake", max_length=4) == "how"
"#;

fn write(place: &TestDir, name: &str, text: &str) -> PathBuf {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns a patch that replaces the last line of `truncate`.
fn fix(line: &str) -> String {
    format!(
        "--- a/src/slugs/slug.py\n+++ b/src/slugs/slug.py\n@@ -31,3 +31,3 @@\n def truncate(slug, max_length):\n     \
         \"\"\"Cut a slug to its first ``max_length`` characters.\"\"\"\n-    return slug[:max_length]\n+    {line}\n"
    )
}

/// Selects patches of the example by the tests in the folder `tests`.
fn select(place: &TestDir, patches: &str) -> Output {
    let mut command = place.testwright();
    command.args(["select", "--repo", &example("slugs"), "--out"]);
    command.arg(place.path("out"));
    command.arg("--tests").arg(place.path("tests"));
    command.arg("--patches").arg(place.path(patches));
    command.output().unwrap()
}

#[test]
fn syntax_error_and_lone_tests_are_named() {
    let place = TestDir::new();
    write(&place, "tests/new.diff", NEW_TEST);
    let right = fix("return slug[:max_length].rstrip('-')");
    write(&place, "p/right.patch", &right);
    write(&place, "p/syntax.patch", &fix("return slug[:max_length"));
    let output = select(&place, "p/*.patch");
    assert_exit_code(&output, 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("slugs: syntax"));
    let reason = "the tests cannot be collected: SyntaxError";
    assert!(line.is_some_and(|line| line.contains(reason)), "{text}");
    let note = "slugs: note: no existing test ran";
    assert!(text.contains(note), "{text}");
    let stored = std::fs::read(place.path("out/selection.json")).unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    let best = &stored["ranking"][0];
    assert_eq!(best["patch"], "right", "{stored}");
    assert_eq!(
        (&best["rank"], &best["verdict"]),
        (&json!(1), &json!("kept"))
    );
}

#[test]
fn untried_patch_fails_with_its_reason() {
    let place = TestDir::new();
    write(&place, "tests/new.diff", NEW_TEST);
    write(&place, "junk/junk.patch", "I would change truncate.\n");
    let output = select(&place, "junk");
    assert_exit_code(&output, 3);
    let reason = "the patch does not apply: it contains no diff";
    let error = String::from_utf8(output.stderr).unwrap();
    let line = format!("no patch could be tried: {reason}");
    assert!(error.contains(&line), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = format!("slugs: junk  undecided  not tried: {reason}");
    assert!(text.contains(&line), "{text}");
}
