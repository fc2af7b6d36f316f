use super::*;
use testwright_tools::outcomes::report::TestResult;

fn report(outcomes: &[(&str, TestOutcome)]) -> TestReport {
    let test = |(id, outcome): &(&str, TestOutcome)| TestResult::new(id, *outcome);
    TestReport {
        tests: outcomes.iter().map(test).collect(),
        ..TestReport::default()
    }
}

#[test]
fn verdict_compares_head_with_base() {
    use TestOutcome::{Error, Failed, Passed, Skipped};
    let names = |list: &[&str]| list.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
    let ids = names(&["t::own"]);
    let base = report(&[("t::own", Failed), ("t::good", Passed), ("t::bad", Failed)]);
    for (head, verdict) in [
        (
            vec![("t::own", Passed), ("t::good", Passed), ("t::bad", Failed)],
            Verdict::Confirmed,
        ),
        (
            vec![("t::own", Passed), ("t::good", Skipped)],
            Verdict::Confirmed,
        ),
        (
            vec![("t::own", Failed), ("t::good", Passed)],
            Verdict::StillFailing(ids.clone()),
        ),
        (
            vec![("t::good", Passed)],
            Verdict::StillFailing(ids.clone()),
        ),
        (
            vec![("t::own", Passed), ("t::good", Error)],
            Verdict::Broken(names(&["t::good"])),
        ),
        (
            vec![("t::own", Error), ("t::good", Failed)],
            Verdict::FailingAndBroken(ids.clone(), names(&["t::good"])),
        ),
    ] {
        assert_eq!(compare_reports(&base, &report(&head), &ids), verdict);
    }
    let passing = report(&[("t::own", Passed)]);
    assert_eq!(
        compare_reports(&passing, &passing, &ids),
        Verdict::PassesAlready
    );
}
