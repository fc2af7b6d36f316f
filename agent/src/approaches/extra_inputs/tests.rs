#![allow(clippy::unwrap_used)]
use super::*;
use crate::approaches::ALL;

fn variant(name: &str) -> Variant {
    Variant::parse(name).unwrap()
}

fn given(patch: Option<&str>, tests: &[&str]) -> ExtraInputs {
    ExtraInputs {
        code_patch: patch.map(str::to_owned),
        test_files: tests.iter().map(|path| (*path).to_owned()).collect(),
        ..ExtraInputs::default()
    }
}

#[test]
fn inputs_must_match_options() {
    let error =
        |inputs: &ExtraInputs, name: &str| inputs.check_options(&variant(name)).unwrap_err();
    insta::assert_snapshot!(error(&given(None, &[]), "zero-shot-plus:given-files=on").render(), @r"
    error: failed to give `zero-shot-plus:given-files=on` a code patch
      cause: the input is missing
      hint: add --code-patch FILE
    ");
    insta::assert_snapshot!(error(&given(Some("x"), &[]), "zero-shot:given-tests=on").render(), @r"
    error: failed to give `zero-shot:given-tests=on` a code patch
      cause: its option `given-patch` is off
      hint: write --approach zero-shot:given-patch=on
    ");
    insta::assert_snapshot!(error(&given(None, &["t.py"]), "snippet").render(), @r"
    error: failed to give `snippet` test files
      cause: it has no option `given-tests`
      hint: these have it: zero-shot, zero-shot-plus, pass-at-k, libro, assert-flip
    ");
    insta::assert_snapshot!(error(&given(None, &[]), "libro:other-patch=on").render(), @r"
    error: failed to use `libro:other-patch=on`
      cause: `other-patch` selects a code patch, but none is given
      hint: add given-patch=on or given-files=on
    ");
    let all = variant("zero-shot-plus:given-tests=on:given-patch=on:other-patch=on");
    assert!(given(Some("x"), &["t.py"]).check_options(&all).is_ok());
    for approach in ALL {
        let plain = Variant::plain(approach);
        assert!(given(None, &[]).check_options(&plain).is_ok());
        assert!(labels(plain.options()).is_empty());
    }
}

#[test]
fn wish_reaches_models_without_given_tests() {
    let inputs = ExtraInputs {
        hint: Some("No mocks.".to_owned()),
        ..given(None, &["t.py"])
    };
    let wish = |name: &str| inputs.add_wish(Issue::default(), &variant(name)).wish;
    for name in ["testwright", "otter"] {
        inputs.check_options(&variant(name)).unwrap();
        assert_eq!(wish(name).test_files, ["t.py"]);
        assert_eq!(wish(name).hint.as_deref(), Some("No mocks."));
        assert_eq!(inputs.ignored_hint(&variant(name)), None);
    }
    assert!(wish("zero-shot:given-tests=on").test_files.is_empty());
    assert_eq!(wish("snippet"), Wish::default());
    assert!(inputs.ignored_hint(&variant("snippet")).is_some());
}

#[test]
fn only_agents_with_models_revise() {
    let can_revise = |name: &str| check_can_revise(&variant(name)).is_ok();
    assert!(can_revise("testwright") && can_revise("swe-agent"));
    assert!(!can_revise("otter") && !can_revise("snippet") && !can_revise("check"));
}

#[test]
fn labels_name_the_patch() {
    let labels = |name: &str| labels(variant(name).options()).join(", ");
    assert_eq!(
        labels("zero-shot:given-tests=on:given-patch=on"),
        "test files, golden code patch"
    );
    assert_eq!(
        labels("zero-shot:given-patch=on:given-files=on:other-patch=on"),
        "other code patch, files of the other code patch"
    );
}

#[test]
fn test_files_must_be_python_files() {
    assert_eq!(test_path("./tests/test_a.py").unwrap(), "tests/test_a.py");
    let cause = |path: &str| test_path(path).unwrap_err().cause.unwrap();
    assert_eq!(cause("/etc/passwd.py"), "it is outside the repository");
    assert_eq!(cause("tests/../../a.py"), "it is outside the repository");
    assert_eq!(cause(""), "it is outside the repository");
    assert_eq!(cause("tests/a\n.py"), "its name has control characters");
    assert_eq!(cause("tests"), "it is not a Python file");
}

#[test]
fn code_patch_must_be_a_diff() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fix.patch");
    let cause = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        read_patch(&path).unwrap_err().cause.unwrap()
    };
    assert_eq!(cause(b"--- a\n+++ b\n\0"), "it is not a text file");
    assert_eq!(cause(b"--- a\n+++ \xff\n"), "it is not a text file");
    assert_eq!(cause(b"I would change f."), "it contains no diff");
    assert_eq!(cause(b""), "it contains no diff");
    assert!(read_patch(&folder.path().join("gone")).is_err());
    assert!(read_patch(folder.path()).is_err());
    std::fs::write(&path, "--- a/a.py\n+++ b/a.py\n").unwrap();
    assert_eq!(read_patch(&path).unwrap(), "--- a/a.py\n+++ b/a.py\n");
}

#[test]
fn inputs_are_read_from_record() {
    let one = given(Some("--- a\n"), &["t.py"]);
    let settings = serde_json::json!({"repository": "x", "extra_inputs": one});
    assert_eq!(ExtraInputs::of_record(&settings).unwrap(), one);
    let none = serde_json::json!({"repository": "x"});
    assert!(ExtraInputs::of_record(&none).unwrap().is_empty());
    assert!(ExtraInputs::of_record(&serde_json::json!({"extra_inputs": 1})).is_err());
}
