//! Events of a test run, recorded by the plugin or forged by a test, up to the report and its text. An unrequested test
//! must not replace a requested one, and every requested test must be accounted for.
#![no_main]

use testwright_fuzz::{bounded_target, folder};
use testwright_tools::outcomes::report::TestReport;
use testwright_tools::outcomes::{Classifier, Session, covers, read, text};
use testwright_tools::process::ExitReason;
use testwright_tools::workspace::Layout;

bounded_target!(fixed: 8 << 20, per_byte: 64, |data: &[u8]| {
    let events = read(data);
    let layout = Layout::default();
    let classifier = Classifier { layout: &layout, root: folder() };
    let asked = ["tests/test_a.py::test_a".to_owned(), "tests/test_b.py".to_owned()];
    let ended = match data.first() {
        Some(b' ') => ExitReason::Deadline,
        Some(b'\t') => ExitReason::Signal(9),
        _ => ExitReason::Exit(1),
    };
    let report = Session::new(events).report(&asked, ended, "printed".to_owned(), &classifier);
    for id in &asked {
        let ran = report.tests.iter().any(|test| covers(id, &test.id));
        let broken = report.collection_errors.iter().any(|error| id.starts_with(error.id.trim_end_matches("conftest.py").trim_end_matches("__init__.py")));
        assert!(ran || broken || report.not_found.contains(id), "{id} is lost");
    }
    let all = text::text(&report);
    let short = text::without_passed(&report);
    assert!(short.len() <= all.len());
    let record = serde_json::to_string(&report).expect("a record");
    let again: TestReport = serde_json::from_str(&record).expect("the report of a record");
    assert_eq!(text::text(&again), all);
});
