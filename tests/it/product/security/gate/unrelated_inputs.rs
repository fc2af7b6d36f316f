//! Tests that fail for a reason that has nothing to do with the issue. The gate must reject them, or at least say what
//! they read.

use super::*;
use crate::support::program::example;

const NAME: &str = "test_bread";

/// Returns a test that calls the code under test, and then runs these statements.
fn test_of(statements: &str) -> String {
    format!(
        "def {NAME}():\n    import os, socket, time\n    import slugs.slug\n    \
         assert slugify(\"bread\") == \"bread\"\n{statements}\n"
    )
}

/// Submits this test. Returns the gate's verdict.
fn verdict_on(test: &str, boundary: Boundary) -> Value {
    verdict(&[insert(test), submit()], boundary)
}

/// Checks that the gate rejects the test with a finding that contains this text.
#[track_caller]
fn is_rejected(test: &str, text: &str) {
    for boundary in Boundary::all() {
        let report = findings(&[insert(test), submit()], boundary).join("\n");
        assert!(
            report.contains(text),
            "{boundary:?}: the gate found: {report:?}"
        );
    }
}

/// Checks that the verdict has a note that contains this text.
#[track_caller]
fn has_note(verdict: &Value, text: &str) {
    let notes = verdict["notes"].as_array().cloned().unwrap_or_default();
    let mut texts = notes.iter().filter_map(Value::as_str);
    assert!(texts.any(|note| note.contains(text)), "{verdict:#}");
}

/// The name of a sandbox's host is random.
#[test]
fn test_of_host_name_passes() {
    let test = test_of("    assert socket.gethostname() != \"testwright\"");
    everywhere(|| vec![insert(&test), submit()]);
}

#[test]
fn test_of_file_age_is_flaky() {
    let test = test_of("    assert time.time() - os.path.getmtime(__file__) > 300");
    is_rejected(
        &test,
        "is flaky: it failed, but not in a rerun (files an hour older)",
    );
}

#[test]
fn test_of_hash_seed_is_flaky() {
    let test =
        test_of("    assert os.environ[\"PYTHONHASHSEED\"] not in (\"0\", \"1\", \"2\", \"3\")");
    is_rejected(
        &test,
        "is flaky: it failed, but not in a rerun (another hash seed and user)",
    );
}

#[test]
fn test_of_user_or_home_is_flaky() {
    for condition in [
        "os.environ.get(\"USER\")",
        "os.path.basename(os.path.expanduser(\"~\")) != \"home\"",
    ] {
        is_rejected(
            &test_of(&format!("    assert {condition}")),
            "is flaky: it failed, but not in a rerun (another hash seed and user)",
        );
    }
}

/// A comparison of the file with its known text fails on the old code of any issue.
#[test]
fn test_of_source_text_is_rejected() {
    let source = example("slugs") + "/src/slugs/slug.py";
    let length = std::fs::read(source).unwrap().len();
    let statement = format!("    assert len(open(slugs.slug.__file__, \"rb\").read()) != {length}");
    is_rejected(
        &test_of(&statement),
        "it looks at the code instead of running it",
    );
}

#[test]
fn test_of_module_names_is_rejected() {
    let names = "[\"APOSTROPHE\", \"NOT_WORD\", \"re\", \"slugify\", \"to_ascii\", \"truncate\"]";
    let statement =
        format!("    assert [name for name in dir(slugs.slug) if name[0] != \"_\"] != {names}");
    is_rejected(
        &test_of(&statement),
        "it looks at the code instead of running it",
    );
}

#[test]
fn test_of_constants_is_rejected() {
    let statement =
        "    assert [c for c in slugify.__code__.co_consts if isinstance(c, int)] != [1]";
    is_rejected(
        &test_of(statement),
        "it looks at the code instead of running it",
    );
}

#[test]
fn test_of_chance_has_note() {
    // It fails in each run with a probability of 255/256.
    let test = test_of("    assert os.urandom(1)[0] == 0");
    let verdict = verdict_on(&test, Boundary::Namespaces);
    if verdict["failing"] != json!([]) {
        has_note(
            &verdict,
            "reads chance: no behaviour that the issue describes",
        );
    }
}

#[test]
fn test_that_rewrites_code_has_note() {
    let test = test_of(
        "    import importlib, pathlib\n    path = pathlib.Path(slugs.slug.__file__)\n    \
         path.write_text(path.read_text() + \"\\n\\ndef slugify(*args, **more):\\n    return 'wrong'\\n\")\n    \
         assert importlib.reload(slugs.slug).slugify(\"bread\") == \"bread\"",
    );
    let verdict = verdict_on(&test, Boundary::Namespaces);
    let findings = verdict["findings"].as_array().unwrap();
    if findings.is_empty() {
        has_note(&verdict, "reads the text of source files");
    }
}

/// A passing test that adds a failure to its record, and a matching count of failures.
const FORGER: &str = r#"def test_forger(request):
    import sys
    assert slugify("bread") == "bread"
    record = sys.modules["testwr" + "ight_record"]
    me = "tests/test_slug.py::test_forger"
    frame = {"base": "workspace", "file": "tests/test_slug.py", "line": 9, "function": "test_forger", "code": "assert 5 == 4", "hidden": False}
    failure = {"exception": "AssertionError", "kinds": ["AssertionError"], "message": "assert 5 == 4", "name": None, "cause": None, "frames": [frame]}
    record.emit("phase", id=me, when="call", outcome="failed", xfail=False, unexpected=False, seconds=0.1, failure=failure, captured="")
    request.session.testsfailed += 1
"#;

#[test]
fn invented_frame_is_rejected() {
    is_rejected(FORGER, "shows a line that its file does not have");
    let verdict = verdict_on(FORGER, Boundary::Namespaces);
    has_note(&verdict, "reads the record of the run");
}
