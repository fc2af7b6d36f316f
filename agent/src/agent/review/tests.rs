use testwright_tools::outcomes::report::{Failure, Phase};

use super::*;

#[test]
fn review_forms_are_parsed() {
    for (text, verdict, reason) in [
        (
            "YES\nIt is the same error.",
            ReviewVerdict::Yes,
            "It is the same error.",
        ),
        (
            "**NO**. Another function.",
            ReviewVerdict::No,
            "Another function.",
        ),
        (
            "Unsure: hard to say",
            ReviewVerdict::Unsure,
            "Unsure: hard to say",
        ),
        ("I cannot tell", ReviewVerdict::Unreadable, "I cannot tell"),
        ("", ReviewVerdict::Unreadable, ""),
    ] {
        let review = read_review(text);
        assert_eq!((review.verdict, review.reason.as_str()), (verdict, reason));
        assert!(review.extra_requirements.is_empty());
    }
}

#[test]
fn beyond_lines_are_parsed() {
    let review = read_review(
        "YES\nThe same call.\n\nBEYOND: `assert b == 2`: only `a` is named.\n- **BEYOND:** the order of keys\nBEYOND: none\n",
    );
    assert_eq!(review.reason, "The same call.");
    assert_eq!(
        review.extra_requirements,
        ["`assert b == 2`: only `a` is named.", "the order of keys"]
    );
    let back = doubt_message(&review).map(|doubt| doubt.beyond.len());
    assert_eq!(back, Some(2));
}

#[test]
fn only_actionable_doubts_are_returned() {
    for (text, goes_back) in [
        ("YES fine", false),
        ("NO", true),
        ("UNSURE", true),
        ("gibberish", false),
    ] {
        assert_eq!(
            doubt_message(&read_review(text)).is_some(),
            goes_back,
            "{text}"
        );
    }
}

#[test]
fn candidate_fix_shows_effects() {
    let failing = [TestEvidence {
        id: "t.py::test_a".to_owned(),
        outcome: TestOutcome::Failed,
        phase: testwright_tools::outcomes::report::Phase::Call,
        class: testwright_tools::outcomes::report::FailureClass::Assertion,
        exception: "AssertionError".to_owned(),
        message: String::new(),
        frame: None,
        missing_name: None,
        executed: Vec::new(),
        unreached: Vec::new(),
        test_double: None,
        warning_as_error: false,
    }];
    let fix = |outcome| FixTrial {
        patch: "-a\n+b\n".to_owned(),
        outcomes: vec![("t.py::test_a".to_owned(), outcome)],
        on_submitted_tests: true,
        failures: vec![
            "t.py::test_a: AssertionError: assert 1 == 2 (t.py:9: assert f() == 2)".to_owned(),
        ],
        ..FixTrial::default()
    };
    let passes = FixTrial {
        breaks: vec![
            "t.py::test_old: AssertionError: assert 1 == 0 (t.py:3: assert f() == 0)".to_owned(),
        ],
        ..fix(TestOutcome::Passed)
    };
    assert_eq!(
        candidate_fix(1, &passes, &failing, &[]),
        "Candidate fix 1, tried on the tests as they are submitted: with it all of them pass.\nIt breaks existing tests of the \
         same files:\n- t.py::test_old: AssertionError: assert 1 == 0 (t.py:3: assert f() == 0)\n-a\n+b"
    );
    let fails = candidate_fix(2, &fix(TestOutcome::Failed), &failing, &[]);
    assert!(
        fails.contains(
            "with it these still fail:\n- t.py::test_a: AssertionError: assert 1 == 2 (t.py:9"
        ),
        "{fails}"
    );
    let crashed = FixTrial {
        crash: Some("NameError: name 'x' is not defined (a.py:3: x)".to_owned()),
        ..fix(TestOutcome::Failed)
    };
    let crashed = candidate_fix(3, &crashed, &failing, &[]);
    assert!(
        crashed.contains("the edit itself is wrong (NameError") && !crashed.contains("still fail"),
        "{crashed}"
    );
    let other = TestEvidence {
        id: "t.py::test_b".to_owned(),
        ..failing[0].clone()
    };
    let some = FixTrial {
        failures: Vec::new(),
        ..fix(TestOutcome::Passed)
    };
    assert_eq!(
        candidate_fix(4, &some, &[failing[0].clone(), other], &[]),
        "Candidate fix 4, tried on the tests as they are submitted: with it those that ran pass.\nIt was not tried on \
         t.py::test_b.\n-a\n+b"
    );
    let harmless = FixTrial {
        existing_run: 37,
        ..some
    };
    assert!(
        candidate_fix(5, &harmless, &failing, &[]).contains(
            "with it all of them pass.\nIt breaks none of 37 existing tests of the same files that do not fail anyway.\n"
        )
    );
}

#[test]
fn printed_errors_supplement_message() {
    let printed = |message: &str, captured: &str| {
        let mut test = TestResult::new("t.py::test_a", TestOutcome::Failed);
        test.captured = captured.to_owned();
        test.failure = Some(Failure {
            phase: Phase::Call,
            class: FailureClass::Assertion,
            exception: "AssertionError".to_owned(),
            message: message.to_owned(),
            frames: Vec::new(),
            missing_name: None,
        });
        printed_errors(&test)
    };
    let child = "running: python run.py\nImportError while loading conftest 'a/conftest.py'.\nModuleNotFoundError: No module named 'a'\n";
    assert_eq!(
        printed("assert 4 == 0", child).as_deref(),
        Some(
            "ImportError while loading conftest 'a/conftest.py'.\nModuleNotFoundError: No module named 'a'"
        )
    );
    let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'";
    assert_eq!(
        printed("assert 1 == 0", traceback).as_deref(),
        Some(traceback)
    );
    let outside = "Traceback (most recent call last):\n  File \"/env/lib/pluggy.py\", line 1, in call\n    return f()\n  File \"a.py\", line 2, in f\n    g()\n  File \"/env/lib/pdb.py\", line 3, in g\n    x\nKeyError: 'a'";
    assert_eq!(
        printed("assert 1 == 0", outside).as_deref(),
        Some(
            "Traceback (most recent call last):\n  File \"a.py\", line 2, in f\n    g()\nKeyError: 'a'"
        )
    );
    let inner = "1 failed\nE   pkg.OwnError: no such thing";
    assert_eq!(
        printed("assert 1 == 0", inner).as_deref(),
        Some("E   pkg.OwnError: no such thing")
    );
    for (message, captured) in [
        ("assert 1 == 0", "done\nno Error was seen\n"),
        ("in the child:\nValueError: a", "ValueError: a\n"),
        ("assert 1 == 0", ""),
    ] {
        assert_eq!(printed(message, captured), None, "{captured}");
    }
    let long = "ValueError: a\n".repeat(100);
    assert_eq!(
        printed("assert 1 == 0", &long).map(|text| text.lines().count()),
        Some(30)
    );
}
