use super::*;

#[test]
fn reasons_of_the_verdict_become_general() {
    for (reason, general) in [
        (
            "t.py::x is flaky: it passes on the new code, but fails there in a repeat",
            "a golden test is flaky",
        ),
        (
            "t.py::x reads the code instead of running it: it fails on the old code, but passes there after a \
                 change that only affects the text of the code",
            "a golden test reads the code instead of running it",
        ),
        (
            "not a test patch: it changes tests/setup.cfg, which decides how tests are run",
            "the test patch changes more than tests and their data",
        ),
        (
            "not a test patch: it adds conftest.py, which runs before its tests",
            "the test patch adds a file that runs before any test",
        ),
    ] {
        assert_eq!(general_reason(reason), general);
    }
}

#[test]
fn reasons_are_counted_without_test_names() {
    let mut counts = Counts::default();
    counts.reach(Stage::InTime, 4);
    counts.reach_all(Stage::HasText);
    counts.reach_all(Stage::InTime);
    let one = |name: &str, detail: &str| RejectedChange {
        name: name.to_owned(),
        commit: String::new(),
        stage: Stage::Graded,
        reason: general_reason(detail),
        detail: detail.to_owned(),
    };
    let dropped = vec![
        one(
            "b",
            "t.py::x was skipped on the old code and passed on the new",
        ),
        one("c", "t.py::y failed on the new code"),
        one("d", "t.py::z failed on the new code"),
    ];
    let text = Table::new(counts, dropped).to_string();
    assert!(
        text.starts_with("      4  changes in the time range\n      1  change code and tests\n"),
        "{text}"
    );
    assert!(
            text.ends_with(
                "rejected:\n      2  a golden test fails on the new code as well (c)\n      1  a golden test is skipped (b)\n"
            ),
            "{text}"
        );
}
