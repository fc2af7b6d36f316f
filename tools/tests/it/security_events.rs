//! Forged test events.

use std::path::Path;

use testwright_tools::outcomes::report::TestReport;
use testwright_tools::outcomes::{Classifier, Session, read};
use testwright_tools::process::ExitReason;
use testwright_tools::workspace::Layout;

#[test]
fn infinite_times_leave_report_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let id = "tests/test_a.py::test_a";
    let phase = format!(
        r#"{{"event":"phase","id":"{id}","when":"call","outcome":"passed","xfail":false,"unexpected":false,"seconds":1e308,"failure":null,"captured":""}}"#
    );
    let start = format!(r#"{{"event":"start","id":"{id}"}}"#);
    let end = format!(r#"{{"event":"end","id":"{id}"}}"#);
    std::fs::write(
        &path,
        [start, phase.clone(), phase, end, String::new()].join("\n"),
    )
    .unwrap();
    let layout = Layout::default();
    let classifier = Classifier {
        layout: &layout,
        root: Path::new("/testbed"),
    };
    let session = Session::new(read(&std::fs::read(&path).unwrap()));
    let report = session.report(
        &[id.to_owned()],
        ExitReason::Exit(0),
        String::new(),
        &classifier,
    );
    let record = serde_json::to_string(&report).unwrap();
    // The record must not contain `"seconds":null`, which would end grading as a machine failure.
    let again: TestReport = serde_json::from_str(&record).unwrap();
    assert_eq!(again, report);
}
