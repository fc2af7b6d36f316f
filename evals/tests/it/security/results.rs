//! Untrusted results folders: numbers, names and paths that grading never writes, and links in place of files.

use std::os::unix::fs::symlink;

use testwright_evals::harness::Results;
use testwright_evals::report::{self, RunMetadata};

use super::*;

#[path = "../../../src/report/tests/sample.rs"]
#[allow(dead_code)]
mod sample;

fn result() -> Value {
    let mut result = serde_json::to_value(&sample::results(&["a"], 1, 1)[0]).unwrap();
    result["infrastructure"] = Value::Null;
    result
}

fn reported(folder: &Folder, results: &[Value], run: &Value) -> Result<Vec<String>, String> {
    let lines: Vec<String> = results.iter().map(|r| r.to_string() + "\n").collect();
    folder.file("results.jsonl", lines.concat());
    folder.file("run.json", run.to_string());
    let run = RunMetadata::read(folder.path()).map_err(|e| e.to_string())?;
    let report = report::write(folder.path(), &run).map_err(|e| e.to_string())?;
    Ok(report.notes)
}

#[test]
fn implausible_results_are_ignored() {
    let folder = Folder::new();
    let deep = "[".repeat(200) + &"]".repeat(200);
    for (path, value) in [
        ("/coverage_delta", json!(7.5)),
        ("/coverage_delta", json!(-1)),
        ("/coverage_delta", json!(1e308)),
        ("/tdd/adequacy", json!(-0.5)),
        ("/tdd/score", json!(1e300)),
        ("/seconds/total", json!(-3)),
        ("/seconds/build", json!(1e308)),
        ("/prediction", json!("a\u{1b}[2J")),
        ("/prediction", json!("x".repeat(70_000))),
        ("/instance_id", json!("a\u{202e}b")),
        ("/repo", json!("a\u{9b}b")),
        ("/logs/build", json!("/etc/passwd")),
        ("/logs/build", json!("../../../../etc/passwd")),
        ("/logs/build", json!("logs/../../x")),
        ("/key", json!(deep)),
    ] {
        let mut wrong = result();
        *wrong.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value.clone();
        let mut right = result();
        right["instance_id"] = json!("another");
        let remarks = reported(&folder, &[wrong, right], &json!({})).unwrap();
        assert!(
            remarks
                .iter()
                .any(|r| r.starts_with("line 1 of results.jsonl is not a valid result")),
            "{path} {value}: {remarks:?}"
        );
        remarks.iter().for_each(|remark| is_fit_to_be_shown(remark));
    }
    assert_eq!(reported(&folder, &[result()], &json!({})).unwrap(), [""; 0]);
}

/// Invisible characters must not reach the page, the tables or the terminal.
#[test]
fn reports_show_no_invisible_characters() {
    let folder = Folder::new();
    let unseen = UNSEEN.concat();
    let mut wrong = result();
    wrong["strict"]["reason"] = json!(format!("reason {unseen}"));
    wrong["notes"] = json!([format!("note {unseen}"), "x".repeat(12 << 20)]);
    wrong["differs"] = json!([format!("differs {unseen}")]);
    wrong["coverage_problem"] = json!(format!("problem {unseen}"));
    let mut failed = result();
    failed["instance_id"] = json!("another");
    failed["infrastructure"] =
        json!({"stage": format!("old{unseen}"), "cause": unseen, "log": "../../../etc/passwd"});
    let run = json!({
        "dataset": format!("{unseen}.jsonl"), "grader": unseen, "sandbox": unseen, "started": unseen,
        "notes": [format!("remark {unseen}")], "sets": [format!("b{unseen}")], "seconds": 1e308,
        "predictions": [{"model_name_or_path": format!("c{unseen}"), "instance_id": unseen, "kind": "missing"}],
        "instances": u64::MAX,
    });
    reported(&folder, &[wrong, failed], &run).unwrap();
    for name in ["report.html", "report.md"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        for unseen in UNSEEN {
            assert!(!text.contains(unseen), "{name} has {unseen:?}");
        }
        assert!(!text.contains("../etc/passwd"), "{name}");
        assert!(text.len() < 1 << 20, "{name}: {} bytes", text.len());
    }
}

#[test]
fn links_are_never_written_through() {
    let folder = Folder::new();
    let elsewhere = Folder::new();
    let theirs = elsewhere.file("theirs", "theirs");
    let ours = || std::fs::read_to_string(&theirs).unwrap();
    symlink(&theirs, folder.path().join("results.jsonl")).unwrap();
    let refused = Results::open(folder.path()).err().map(|e| e.to_string());
    assert!(
        refused.is_some_and(|e| e.contains("results.jsonl")),
        "opened by way of a link"
    );
    assert_eq!(ours(), "theirs");
    std::fs::remove_file(folder.path().join("results.jsonl")).unwrap();
    // Temporary files could have predictable names.
    let id = std::process::id();
    for name in ["report.json", "report.md", "report.html", "run.json"] {
        symlink(&theirs, folder.path().join(format!(".{name}.{id}"))).unwrap();
        symlink(&theirs, folder.path().join(name)).unwrap();
    }
    folder.file("results.jsonl", result().to_string() + "\n");
    RunMetadata::default().write(folder.path()).unwrap();
    report::write(folder.path(), &RunMetadata::default()).unwrap();
    assert_eq!(ours(), "theirs");
}

/// Reports must read only regular files of limited size.
#[test]
fn devices_are_not_read_as_results() {
    let folder = Folder::new();
    for (name, device) in [("results.jsonl", "/dev/zero"), ("run.json", "/dev/zero")] {
        let path = folder.path().join(name);
        symlink(device, &path).unwrap();
        assert!(
            RunMetadata::read(folder.path())
                .and_then(|run| report::write(folder.path(), &run))
                .is_err(),
            "{name}"
        );
        std::fs::remove_file(&path).unwrap();
        folder.file("results.jsonl", result().to_string() + "\n");
    }
}
