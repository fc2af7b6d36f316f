//! Tests of `submit` over stdio.

use serde_json::{Value, json};

use super::{Client, NEW, PKG, TESTS, project, write};
use crate::project::Project;

#[test]
fn submit_keeps_and_reruns_tests() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    write(&project, "tests/data/x.txt", "data\n");
    write(&project, "pkg/__init__.py", &PKG.replace("n > 0", "n >= 0"));
    write(&project, "reproduce.py", "print(1)\n");
    write(&project, "tests/conftest.py", "import pytest\n");
    let (text, data) = client.call("submit", &json!({ "reason": "half of zero is zero" }));
    let files: Vec<(&str, bool)> = data["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["path"].as_str().unwrap(), f["kept"].as_bool().unwrap()))
        .collect();
    let expected = [
        ("pkg/__init__.py", false),
        ("reproduce.py", false),
        ("tests/conftest.py", false),
        ("tests/data/x.txt", true),
        ("tests/test_a.py", true),
    ];
    assert_eq!(files, expected);
    assert_eq!(
        std::fs::read_to_string(project.root().join("pkg/__init__.py")).unwrap(),
        PKG
    );
    assert!(!project.root().join("reproduce.py").exists());
    assert!(
        project.root().join("tests/data/x.txt").exists(),
        "kept files are back after the run at the base"
    );
    let patch = data["patch"].as_str().unwrap();
    assert!(
        patch.contains("+def test_zero") && patch.contains("x.txt") && !patch.contains("reproduce")
    );
    assert_eq!(data["problems"][0]["kind"], "conftest");
    assert_eq!(data["contributed"][0]["id"], "tests/test_a.py::test_zero");
    assert_eq!(data["before"], Value::Null, "no existing test failed");
    let old = data["old"]["tests"].as_array().unwrap();
    assert_eq!(old.len(), 2);
    assert_eq!(old[1]["executed"], json!(["pkg/__init__.py"]));
    let reruns = data["reruns"].as_array().unwrap();
    assert_eq!(
        reruns
            .iter()
            .map(|r| r["order"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["given", "reversed", "alone", "placebo"]
    );
    for rerun in reruns {
        assert_eq!(rerun["report"]["tests"][0]["outcome"], "failed");
    }
    assert!(
        text.contains("test_zero fails: AssertionError: assert 1 == 0 (again in 3 of 3 reruns)"),
        "{text}"
    );
    // The facts have the documented shape.
    serde_json::from_value::<testwright_tools::tools::submission::Submission>(data).unwrap();
}

#[test]
fn submit_reports_earlier_outcomes() {
    let broken = "\ndef test_red():\n    assert 0\n";
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            &format!("{TESTS}{broken}\nclass TestC:\n    def test_hidden(self): pass\n"),
        ),
    ]);
    let mut client = Client::start(&project);
    let outcomes = |data: &Value| -> Vec<(String, String)> {
        let tests = data["before"]["tests"].as_array().unwrap().iter();
        let word = |v: &Value| v.as_str().unwrap().to_owned();
        tests
            .map(|t| {
                (
                    word(&t["id"]).replace("tests/test_a.py::", ""),
                    word(&t["outcome"]),
                )
            })
            .collect()
    };
    let now = std::fs::read_to_string(project.root().join("tests/test_a.py")).unwrap();
    write(&project, "tests/test_a.py", &format!("{now}{NEW}"));
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(
        outcomes(&data),
        [("test_red".to_owned(), "failed".to_owned())]
    );
    // `pkg` is deleted, which breaks test_old, and the second class of the same name hides the first.
    let patched = format!(
        "{}{NEW}\nclass TestC:\n    def test_new(self): pass\n\ndel pkg\n",
        now
    );
    write(&project, "tests/test_a.py", &patched);
    let (_, data) = client.call("submit", &json!({}));
    let mut before = outcomes(&data);
    before.sort();
    let expected = [("test_old", "passed"), ("test_red", "failed")];
    assert_eq!(
        before,
        expected.map(|(id, o)| (id.to_owned(), o.to_owned())),
        "{data:#}"
    );
    assert_eq!(data["problems"][0]["kind"], "deleted_tests", "{data:#}");
    assert_eq!(
        std::fs::read_to_string(project.root().join("tests/test_a.py")).unwrap(),
        patched
    );
}

#[test]
fn submit_names_static_problems() {
    let project = project();
    let mut client = Client::start(&project);
    let kinds = |data: &Value| -> Vec<String> {
        data["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(kinds(&data), ["nothing_contributed"]);
    assert_eq!(
        (
            data["patch"].as_str(),
            data["reruns"].as_array().unwrap().len()
        ),
        (Some(""), 0)
    );
    write(
        &project,
        "tests/test_a.py",
        "import pkg\n\n@__import__('pytest').mark.x\ndef test_b(:\n",
    );
    let (_, data) = client.call("submit", &json!({}));
    assert!(kinds(&data).contains(&"syntax".to_owned()), "{data:#}");
    write(
        &project,
        "tests/test_a.py",
        "import pytest\n\n@pytest.mark.xfail\ndef test_b():\n    assert 0\n",
    );
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(kinds(&data), ["deleted_tests", "vacuous"]);
    std::fs::remove_file(project.root().join("tests/test_a.py")).unwrap();
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(kinds(&data), ["deleted_tests", "nothing_contributed"]);
    assert_eq!(
        std::fs::read_to_string(project.root().join("tests/test_a.py")).unwrap(),
        TESTS
    );
}

#[test]
fn flaky_tests_show_in_reruns() {
    let project = project();
    let mut client = Client::start(&project);
    write(
        &project,
        "tests/test_new.py",
        "import os, pkg\ndef test_seed():\n    pkg.half(1)\n    assert os.environ['PYTHONHASHSEED'] not in ('0', '1', '2', '3')\n",
    );
    let (text, data) = client.call("submit", &json!({}));
    assert_eq!(data["before"], Value::Null);
    assert!(text.contains("(again in 0 of 3 reruns)"), "{text}");
}

/// Submits a new test that calls the code under test and then checks this condition. Returns the order and the test's
/// outcome of the last rerun.
fn last_rerun(project: &Project, condition: &str) -> (String, String) {
    let mut client = Client::start(project);
    let test =
        format!("import os, time, pkg\ndef test_new():\n    pkg.half(1)\n    assert {condition}\n");
    write(project, "tests/test_new.py", &test);
    let (_, data) = client.call("submit", &json!({}));
    let last = data["reruns"].as_array().unwrap().last().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let outcome = text(&last["report"]["tests"][0]["outcome"]);
    assert_eq!(data["invented_frames"], Value::Null);
    (text(&last["order"]), outcome)
}

#[test]
fn test_of_text_passes_with_placebo() {
    let project = project();
    let condition = format!("os.path.getsize(pkg.__file__) != {}", PKG.len());
    let (order, outcome) = last_rerun(&project, &condition);
    assert_eq!((order.as_str(), outcome.as_str()), ("placebo", "passed"));
    let path = project.root().join("pkg/__init__.py");
    assert_eq!(std::fs::read_to_string(path).unwrap(), PKG);
    let (order, outcome) = last_rerun(&project, "pkg.half(0) == 0");
    assert_eq!((order.as_str(), outcome.as_str()), ("placebo", "failed"));
}

#[test]
fn test_of_age_passes_with_older_files() {
    for file in ["__file__", "pkg.__file__"] {
        let project = project();
        let condition = format!("time.time() - os.path.getmtime({file}) > 300");
        let (order, outcome) = last_rerun(&project, &condition);
        assert_eq!((order.as_str(), outcome.as_str()), ("older", "passed"));
        let path = project.root().join("pkg/__init__.py");
        let modified = std::fs::metadata(path).unwrap().modified().unwrap();
        assert!(modified.elapsed().unwrap().as_secs() < 300);
    }
}

#[test]
fn invented_frame_is_reported() {
    let project = project();
    let mut client = Client::start(&project);
    let test = r#"import sys, pkg

def test_forger(request):
    pkg.half(4)
    record = sys.modules["testwr" + "ight_record"]
    frame = {"base": "workspace", "file": "tests/test_new.py", "line": 4, "function": "test_forger", "code": "assert 5 == 4", "hidden": False}
    failure = {"exception": "AssertionError", "kinds": ["AssertionError"], "message": "assert 5 == 4", "name": None, "cause": None, "frames": [frame]}
    record.emit("phase", id="tests/test_new.py::test_forger", when="call", outcome="failed", xfail=False, unexpected=False, seconds=0.1, failure=failure, captured="")
    request.session.testsfailed += 1
"#;
    write(&project, "tests/test_new.py", test);
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(
        data["invented_frames"],
        json!([
            "tests/test_new.py::test_forger: tests/test_new.py:4 shows `assert 5 == 4`, but the file has `pkg.half(4)`"
        ])
    );
}

/// Records each import in a file beside the workspace.
const SEVERAL: &str = "
import os, pkg

with open('../imports', 'a') as f:
    f.write('x')
STATE = []

def test_first():
    STATE.append(1)
    assert STATE == [] or pkg.half(0) == len(STATE) - 1

def test_second():
    STATE.append(1)
    assert pkg.half(0) == 0

def test_third():
    STATE.append(1)
    assert pkg.half(0) == 0
";

#[test]
fn isolated_tests_reuse_imports() {
    let project = project();
    let imports = || std::fs::read(project.root().join("../imports")).map_or(0, |f| f.len());
    let mut client = Client::start(&project);
    write(&project, "tests/test_new.py", SEVERAL);
    let (text, data) = client.call("submit", &json!({}));
    assert_eq!(
        text.matches("(again in 3 of 3 reruns)").count(),
        3,
        "{text}"
    );
    let reruns = data["reruns"].as_array().unwrap();
    let tests = |rerun: &Value| rerun["report"]["tests"].as_array().unwrap().len();
    assert_eq!(reruns.iter().map(tests).collect::<Vec<_>>(), [3, 3, 3, 3]);
    for rerun in reruns {
        assert_eq!(rerun["report"]["contradicted"], Value::Null);
    }
    // One import for the file, and one for each of the four reruns.
    assert_eq!(imports(), 5);

    // Two tests pass alone, and one of them passes before the others.
    let order = SEVERAL.replace("pkg.half(0) == 0", "len(STATE) == 1");
    write(&project, "tests/test_new.py", &order);
    let (text, _) = client.call("submit", &json!({}));
    assert!(
        text.contains("assert 2 == 1 (again in 2 of 3 reruns)"),
        "{text}"
    );
    assert!(
        text.contains("assert 3 == 1 (again in 1 of 3 reruns)"),
        "{text}"
    );

    // Processes with running threads are not forked.
    let threads = format!(
        "{SEVERAL}\nimport threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    );
    write(&project, "tests/test_new.py", &threads);
    let before = imports();
    let (text, _) = client.call("submit", &json!({}));
    assert_eq!(
        text.matches("(again in 3 of 3 reruns)").count(),
        3,
        "{text}"
    );
    assert!(imports() > before + 5);
}

/// Fails with another exception if it runs twice at the same time, and makes a test beside it fail too.
const ALONE: &str = "
import os, time

def hold():
    os.mkdir('held')
    time.sleep(0.4)
    os.rmdir('held')

def test_zero():
    hold()
    assert pkg.half(0) == 0
";

#[test]
fn interfering_tests_run_sequentially() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{ALONE}"));
    let (text, data) = client.call("submit", &json!({}));
    assert!(
        text.contains("test_zero fails: AssertionError: assert 1 == 0 (again in 3 of 3 reruns)"),
        "{text}"
    );
    assert_eq!(data["before"], Value::Null);
    assert!(!project.root().join("held").exists());
}

#[test]
fn disturbed_existing_tests_are_not_broken() {
    let existing = format!(
        "{TESTS}\ndef test_folder():\n    import os\n    os.mkdir('held')\n    os.rmdir('held')\n"
    );
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", &existing)]);
    let mut client = Client::start(&project);
    let new = "\ndef test_zero():\n    import os, time\n    os.makedirs('held', exist_ok=True)\n    time.sleep(0.5)\n    if os.path.exists('held'): os.rmdir('held')\n    assert pkg.half(0) == 0\n";
    write(&project, "tests/test_a.py", &format!("{existing}{new}"));
    let (text, data) = client.call("submit", &json!({}));
    assert!(text.contains("again in 3 of 3 reruns"), "{text}");
    assert_eq!(data["before"], Value::Null);
    let old = data["old"]["tests"].as_array().unwrap();
    assert_eq!(old[1]["outcome"], "passed", "{}", old[1]);
}
