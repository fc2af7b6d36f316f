#![allow(clippy::unwrap_used)]

use Outcome::{Absent, Error, Failed, Passed, Skipped, Xfailed};

use super::*;

const NEW: &str = "tests/test_a.py::test_new";

fn observations(
    with: &[(&str, Outcome, Outcome)],
    base: &[(&str, Outcome, Outcome)],
) -> Observations {
    let pairs = |list: &[(&str, Outcome, Outcome)]| {
        list.iter()
            .map(|(id, old, new)| {
                let pair = Pair {
                    old: *old,
                    new: *new,
                };
                (format!("tests/test_a.py::{id}"), pair)
            })
            .collect()
    };
    Observations {
        contributed: vec![NEW.to_owned()],
        patched: pairs(with),
        base: pairs(base),
        ..Observations::default()
    }
}

/// Returns the strict verdict, SWT-bench's and TDD-Bench's.
fn three(observations: &Observations) -> (bool, bool, bool) {
    let verdict = observations.verdict();
    let three = (
        verdict.strict.fail_to_pass,
        verdict.swt.success,
        verdict.tdd.fail_to_pass,
    );
    let agree = three.0 == three.1 && three.1 == three.2;
    assert_eq!(agree, verdict.differs.is_empty(), "{verdict:?}");
    three
}

#[test]
fn fail_to_pass_satisfies_all_verdicts() {
    let it = observations(
        &[("test_new", Failed, Passed), ("test_old", Passed, Passed)],
        &[],
    );
    assert_eq!(three(&it), (true, true, true));
    let parameters = observations(
        &[
            ("test_new[a b]", Failed, Passed),
            ("test_new[c]", Passed, Passed),
        ],
        &[],
    );
    assert_eq!(three(&parameters), (true, true, true));
}

#[test]
fn reason_names_the_whole_id() {
    let reason = |new| {
        let it = observations(&[("test_new[this failed]", Failed, new)], &[]);
        it.verdict().strict.reason
    };
    let id = "tests/test_a.py::test_new[this failed]";
    assert_eq!(reason(Failed), format!("{id} failed on the new code"));
    assert_eq!(reason(Error), format!("{id} is an error on the new code"));
}

#[test]
fn common_prefix_is_another_test() {
    let it = observations(&[("test_newer", Failed, Passed)], &[]);
    assert_eq!(three(&it), (false, true, false));
    assert_eq!(
        it.verdict().strict.reason,
        "none of the contributed tests was found"
    );
}

#[test]
fn errors_and_skips_are_no_reproduction() {
    for old in [Error, Absent] {
        assert_eq!(
            three(&observations(&[("test_new", old, Passed)], &[])),
            (false, true, true),
            "{old:?}"
        );
    }
    for old in [Skipped, Xfailed] {
        assert_eq!(
            three(&observations(&[("test_new", old, Passed)], &[])),
            (false, true, false),
            "{old:?}"
        );
    }
    let verdict = observations(&[("test_new", Skipped, Passed)], &[]).verdict();
    assert_eq!(
        verdict.strict.reason,
        format!("{NEW} was skipped on the old code and passed on the new")
    );
    assert_eq!(
        verdict.differs,
        [format!(
            "SWT-bench: {NEW}, skipped before, counts as failed"
        )]
    );
}

#[test]
fn missing_requested_name_is_a_reproduction() {
    let mut it = observations(&[("test_new[1]", Absent, Passed)], &[]);
    assert!(!it.verdict().strict.fail_to_pass);
    it.missing_names = vec![NEW.to_owned()];
    assert_eq!(three(&it), (true, true, true));
}

#[test]
fn failing_contributed_test_spoils_the_verdict() {
    let it = observations(
        &[
            ("test_new[a]", Failed, Passed),
            ("test_new[b]", Failed, Failed),
        ],
        &[],
    );
    assert_eq!(three(&it), (false, false, false));
    // SWT-bench ignores a change from failed to anything but passed or failed.
    let error_after = observations(
        &[
            ("test_new[a]", Failed, Passed),
            ("test_new[b]", Failed, Error),
        ],
        &[],
    );
    assert_eq!(three(&error_after), (false, true, false));
}

#[test]
fn breakage_by_the_code_patch_is_ignored() {
    let with = [("test_new", Failed, Passed), ("test_old", Passed, Failed)];
    assert_eq!(
        three(&observations(&with, &[("test_old", Passed, Failed)])),
        (true, true, true)
    );
    let broken = observations(&with, &[("test_old", Passed, Passed)]);
    assert_eq!(three(&broken), (false, false, true));
    assert!(broken.verdict().strict.reason.contains("test_old passed"));
}

#[test]
fn fail_to_pass_counts_although_another_is_lost() {
    let it = observations(
        &[("test_new", Failed, Passed), ("test_old", Passed, Passed)],
        &[("test_old", Failed, Passed)],
    );
    let swt = it.verdict().swt;
    assert!(swt.fail_to_pass && !swt.success);
    let none = observations(&[], &[("test_old", Failed, Passed)]);
    assert!(!none.verdict().swt.fail_to_pass);
}

#[test]
fn tests_passing_before_do_not_help() {
    let it = observations(&[("test_new", Passed, Passed)], &[]);
    let verdict = it.verdict();
    assert_eq!(three(&it), (false, false, false));
    assert!(verdict.swt.pass_to_pass && !verdict.swt.fail_to_any);
    assert_eq!(verdict.old_class, OldClass::Pass);
    let none = Observations::default().verdict();
    assert_eq!(none.strict.reason, "the patch contributes no test");
    assert_eq!(none.old_class, OldClass::None);
}

#[test]
fn old_class_is_the_strongest_failure() {
    let mut it = observations(
        &[
            ("test_new[a]", Failed, Passed),
            ("test_new[b]", Failed, Passed),
            ("test_new[c]", Passed, Passed),
        ],
        &[],
    );
    it.failures = [
        (format!("{NEW}[a]"), FailureClass::Error),
        (format!("{NEW}[b]"), FailureClass::Assertion),
    ]
    .into();
    assert_eq!(it.old_class(), OldClass::Assertion);
}

#[test]
fn unmatched_parameters_are_not_failures() {
    let mut it = observations(
        &[
            ("test_new[a]", Failed, Passed),
            ("test_new[gone]", Passed, Absent),
        ],
        &[],
    );
    assert!(!it.verdict().strict.fail_to_pass && !it.verdict().tdd.fail_to_pass);
    it.unmatched.insert(format!("{NEW}[gone]"));
    assert!(it.verdict().strict.fail_to_pass && it.verdict().tdd.fail_to_pass);

    let mut it = observations(
        &[
            ("test_new[a]", Passed, Passed),
            ("test_new[more]", Absent, Passed),
        ],
        &[],
    );
    it.unmatched.insert(format!("{NEW}[more]"));
    let verdict = it.verdict();
    assert!(!verdict.tdd.fail_to_pass && !verdict.swt.fail_to_any);
    // SWT-bench's own code counts missing tests as failed.
    assert!(verdict.swt.success);
}

#[test]
fn skipped_on_new_code_is_not_passed() {
    let verdict = observations(&[("test_new", Failed, Skipped)], &[]).verdict();
    assert!(!verdict.tdd.fail_to_pass && !verdict.strict.fail_to_pass);
}

#[test]
fn score_is_verdict_times_adequacy() {
    let tdd = observations(&[("test_new", Failed, Passed)], &[])
        .verdict()
        .tdd;
    let of = |adequacy| tdd.clone().with_adequacy(adequacy);
    assert_eq!(of(Adequacy::Share(0.25)).score, 0.25);
    assert_eq!(of(Adequacy::LeftOut).score, 1.0);
    // Preventing the measurement must not raise the score.
    let broken = of(Adequacy::AtLeast(0.5));
    assert_eq!((broken.adequacy, broken.score), (None, 0.5));
    let not = observations(&[("test_new", Passed, Passed)], &[])
        .verdict()
        .tdd;
    assert_eq!(not.with_adequacy(Adequacy::Share(1.0)).score, 0.0);
}

/// Returns the strict verdict on a test that succeeds at first, with this outcome in a repeat.
fn strict_after(condition: Condition, old: Outcome, new: Outcome) -> Strict {
    let mut it = observations(&[("test_new", Failed, Passed)], &[]);
    it.repeats = vec![Repeat {
        condition,
        pairs: Pairs::from([(NEW.to_owned(), Pair { old, new })]),
    }];
    it.verdict().strict
}

#[test]
fn repeats_must_confirm_success() {
    for condition in [Condition::HashSeed, Condition::Placebo] {
        assert!(strict_after(condition, Failed, Passed).fail_to_pass);
        assert!(strict_after(condition, Error, Passed).fail_to_pass);
        assert!(!strict_after(condition, Passed, Passed).fail_to_pass);
        assert!(!strict_after(condition, Failed, Failed).fail_to_pass);
        assert!(!strict_after(condition, Failed, Absent).fail_to_pass);
    }
    assert_eq!(
        strict_after(Condition::HashSeed, Passed, Passed).reason,
        format!("{NEW} is flaky: it fails on the old code, but passes there in a repeat")
    );
    assert_eq!(
        strict_after(Condition::Placebo, Passed, Passed).reason,
        format!(
            "{NEW} reads the code instead of running it: it fails on the old code, but passes there after a change that \
             only affects the text of the code"
        )
    );
}

#[test]
fn another_test_may_confirm_success() {
    let mut it = observations(
        &[
            ("test_new[1]", Failed, Passed),
            ("test_new[2]", Failed, Passed),
        ],
        &[],
    );
    let pair = |id: &str, old| {
        let new = Passed;
        (format!("{NEW}[{id}]"), Pair { old, new })
    };
    it.repeats = vec![Repeat {
        condition: Condition::Placebo,
        pairs: Pairs::from([pair("1", Passed), pair("2", Failed)]),
    }];
    let strict = it.verdict().strict;
    assert!(
        strict.fail_to_pass && strict.reason.contains("[2]"),
        "{strict:?}"
    );
}
