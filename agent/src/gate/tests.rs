#![allow(clippy::unwrap_used)]

use testwright_tools::outcomes::report::{
    CollectionError, Failure, FailureClass, Frame, Outcome, Phase, Place, TestReport, TestResult,
};
use testwright_tools::tools::submission::{
    Change, ChangedFile, ContributedTest, Problem, ProblemKind, Rerun, SiblingTests, Submission,
};

use super::*;

const ID: &str = "tests/test_slug.py::TestSlug::test_digits";
const ISSUE: &str =
    "Slugs lose digits\n\n`slugify('Version 2')` returns 'version'. Please add `keep_digits`.";

fn failure(class: FailureClass) -> Failure {
    Failure {
        phase: Phase::Call,
        class,
        exception: "AssertionError".into(),
        message: "assert 'version' == 'version-2'".into(),
        frames: vec![Frame {
            file: "tests/test_slug.py".into(),
            line: 9,
            function: "test_digits".into(),
            code: "assert slugify('Version 2') == 'version-2'".into(),
            place: Place::Test,
        }],
        missing_name: None,
    }
}

fn result(id: &str, outcome: Outcome) -> TestResult {
    TestResult {
        id: id.into(),
        outcome,
        failure: (outcome == Outcome::Failed).then(|| failure(FailureClass::Assertion)),
        captured: String::new(),
        seconds: 0.01,
        executed: vec!["slugs/core.py".into()],
    }
}

fn report(tests: Vec<TestResult>) -> TestReport {
    TestReport {
        tests,
        exit_code: Some(1),
        ..TestReport::default()
    }
}

#[test]
fn changes_of_unnamed_files_are_refused() {
    let verdict = |files: &[&str]| {
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        let mut verdict = decide(&sound(), ISSUE, &Ok(()));
        verdict.require_files(&sound(), &files);
        verdict
    };
    assert!(verdict(&[]).accepted() && verdict(&["tests/test_slug.py"]).accepted());
    let text = verdict(&["tests/test_other.py"]).text();
    assert!(text.contains("put back tests/test_slug.py"), "{text}");
}

/// Returns a submission without findings.
pub(super) fn sound() -> Submission {
    let rerun = |order: &str| Rerun {
        order: order.into(),
        report: report(vec![result(ID, Outcome::Failed)]),
    };
    Submission {
        patch: "diff --git a/tests/test_slug.py b/tests/test_slug.py\n".into(),
        files: vec![ChangedFile {
            path: "tests/test_slug.py".into(),
            change: Change::Modified,
            kept: true,
            reason: None,
        }],
        contributed: vec![ContributedTest {
            id: ID.into(),
            change: Change::Added,
            line: 8,
            source: "def test_digits(self): ...".into(),
            replaced_code: Vec::new(),
        }],
        problems: vec![],
        before: Some(report(vec![result(
            "tests/test_slug.py::test_old",
            Outcome::Passed,
        )])),
        changed_before: None,
        neighbours: None,
        old: report(vec![
            result("tests/test_slug.py::test_old", Outcome::Passed),
            result(ID, Outcome::Failed),
        ]),
        reruns: ["given", "reversed", "alone", "placebo"].map(rerun).into(),
        invented_frames: vec![],
    }
}

fn verdict(submission: &Submission) -> Verdict {
    decide(submission, ISSUE, &Ok(()))
}

/// Returns the rules with findings after `change`.
fn rules(change: impl FnOnce(&mut Submission)) -> Vec<Rule> {
    let mut submission = sound();
    change(&mut submission);
    verdict(&submission)
        .findings
        .into_iter()
        .map(|finding| finding.rule)
        .collect()
}

#[test]
fn sound_submission_is_accepted() {
    let verdict = verdict(&sound());
    assert!(verdict.accepted(), "{}", verdict.text());
    assert_eq!(verdict.failing[0].id, ID);
    assert_eq!(verdict.failing[0].frame.as_ref().unwrap().line, 9);
}

#[test]
fn static_problems_are_reported() {
    let broken_rules = rules(|s| {
        s.problems = vec![Problem {
            kind: ProblemKind::Vacuous,
            text: "test_digits is marked as skipped".into(),
        }]
    });
    assert_eq!(broken_rules, [Rule::TestsOnly]);
    assert_eq!(rules(|s| s.patch.clear()), [Rule::TestsOnly]);
}

#[test]
fn inapplicable_patch_is_refused() {
    let verdict = decide(&sound(), ISSUE, &Err("corrupt patch at line 3".into()));
    assert_eq!(verdict.findings[0].rule, Rule::Applies);
    assert!(verdict.text().contains("corrupt patch at line 3"));
}

#[test]
fn submission_without_test_is_refused() {
    assert_eq!(rules(|s| s.contributed.clear()), [Rule::Contributes]);
    assert_eq!(
        rules(|s| s.contributed[0].change = Change::Deleted),
        [Rule::Contributes]
    );
}

#[test]
fn test_without_failure_is_refused() {
    for outcome in [Outcome::Passed, Outcome::Skipped, Outcome::Xfailed] {
        assert_eq!(
            rules(|s| s.old.tests[1] = result(ID, outcome)),
            [Rule::Fails]
        );
    }
    assert_eq!(rules(|s| drop(s.old.tests.pop())), [Rule::Fails]);
}

#[test]
fn own_error_needs_missing_name() {
    let error = |name: Option<&str>| Failure {
        missing_name: name.map(str::to_owned),
        ..failure(FailureClass::Error)
    };
    assert_eq!(
        rules(|s| s.old.tests[1].failure = Some(error(None))),
        [Rule::Sound]
    );
    assert_eq!(
        rules(|s| s.old.tests[1].failure = Some(error(Some("keep_digit")))),
        [Rule::Sound]
    );
    assert_eq!(
        rules(|s| s.old.tests[1].failure = Some(error(Some("keep_digits")))),
        []
    );
    assert_eq!(
        rules(|s| s.old.tests[1].failure = Some(error(Some("slugs.core.keep_digits")))),
        []
    );
}

#[test]
fn reported_error_is_accepted() {
    let issue =
        "The length is wrong:\n\n    >>> len(x)\n    ValueError: __len__() should return >= 0\n";
    let accepted = |exception: &str, message: &str, code: &str| {
        let mut submission = sound();
        let failure = submission.old.tests[1].failure.as_mut().unwrap();
        failure.class = FailureClass::Error;
        failure.exception = exception.to_owned();
        failure.message = message.to_owned();
        failure.frames[0].code = code.to_owned();
        decide(&submission, issue, &Ok(())).accepted()
    };
    let message = "__len__() should return >= 0";
    assert!(accepted("ValueError", message, "assert len(x) == 0"));
    assert!(!accepted("TypeError", message, "assert len(x) == 0"));
    assert!(!accepted("ValueError", "", "assert len(x) == 0"));
    assert!(!accepted("ValueError", "__len__()", "assert len(x) == 0"));
    assert!(!accepted("ValueError", message, "raise ValueError(TEXT)"));
}

#[test]
fn network_failure_is_refused() {
    let message =
        "HTTPConnectionPool(host='example.com'): [Errno -3] Temporary failure in name resolution";
    let accepted = |class: FailureClass, issue: &str| {
        let mut submission = sound();
        let failure = submission.old.tests[1].failure.as_mut().unwrap();
        failure.class = class;
        failure.message = message.to_owned();
        decide(&submission, issue, &Ok(())).accepted()
    };
    assert!(!accepted(FailureClass::Exception, ISSUE));
    assert!(accepted(FailureClass::Assertion, ISSUE));
    let issue = "`ping()` raises gaierror: Temporary failure in name resolution";
    assert!(accepted(FailureClass::Exception, issue));
}

#[test]
fn assertion_in_helper_belongs_to_test() {
    let mut submission = sound();
    let frames = &mut submission.old.tests[1].failure.as_mut().unwrap().frames;
    let helper = Frame {
        place: Place::Source,
        file: "slugs/testing.py".into(),
        function: "fail".into(),
        ..frames[0].clone()
    };
    frames.push(helper);
    assert_eq!(
        verdict(&submission).failing[0]
            .frame
            .as_ref()
            .unwrap()
            .function,
        "test_digits"
    );
}

#[test]
fn unimportable_module_fails_its_tests() {
    let import = |name: &str, s: &mut Submission| {
        let error = CollectionError {
            id: "tests/test_slug.py".into(),
            failure: Failure {
                phase: Phase::Collect,
                exception: "ImportError".into(),
                missing_name: Some(name.into()),
                ..failure(FailureClass::Error)
            },
        };
        s.before = None;
        s.old = TestReport {
            collection_errors: vec![error],
            ..TestReport::default()
        };
        for rerun in &mut s.reruns {
            rerun.report = s.old.clone();
        }
    };
    assert_eq!(rules(|s| import("keep_digits", s)), []);
    assert_eq!(rules(|s| import("nowhere", s)), [Rule::Sound]);
}

#[test]
fn passing_test_must_not_break() {
    assert_eq!(
        rules(|s| s.old.tests[0] = result("tests/test_slug.py::test_old", Outcome::Failed)),
        [Rule::BreaksNothing]
    );
    assert_eq!(
        rules(|s| drop(s.old.tests.remove(0))),
        [Rule::BreaksNothing]
    );
}

#[test]
fn rerun_without_failure_is_flaky() {
    assert_eq!(
        rules(|s| s.reruns[1].report.tests[0] = result(ID, Outcome::Passed)),
        [Rule::FailsAgain]
    );
    assert_eq!(rules(|s| s.reruns.clear()), [Rule::FailsAgain]);
}

#[test]
fn test_of_text_is_refused() {
    let passes = |s: &mut Submission| s.reruns[3].report.tests[0] = result(ID, Outcome::Passed);
    assert_eq!(rules(passes), [Rule::HoldsWithPlacebo]);
    assert_eq!(
        rules(|s| s.reruns[3].report.tests.clear()),
        [Rule::HoldsWithPlacebo]
    );
    // A run without outcomes says nothing.
    let is_late = |s: &mut Submission| {
        s.reruns[3].report.tests.clear();
        s.reruns[3].report.timed_out = true;
    };
    assert_eq!(rules(is_late), []);
    let is_flaky = |s: &mut Submission| {
        s.reruns[0].report.tests[0] = result(ID, Outcome::Passed);
        passes(s);
    };
    assert_eq!(rules(is_flaky), [Rule::FailsAgain]);
    // Code under test that did not run has no placebo.
    assert_eq!(rules(|s| drop(s.reruns.pop())), []);
    assert_eq!(rules(|s| drop(s.reruns.drain(..3))), [Rule::FailsAgain]);
}

#[test]
fn invented_frame_is_refused() {
    let mut submission = sound();
    submission.invented_frames = vec![format!(
        "{ID}: tests/test_slug.py:9 shows `assert 5 == 4`, but the file has `x = 1`"
    )];
    let verdict = verdict(&submission);
    assert_eq!(verdict.findings[0].rule, Rule::Sound);
    let text = format!(
        "the record of {ID} shows a line that its file does not have: tests/test_slug.py:9 shows"
    );
    assert!(verdict.text().contains(&text), "{}", verdict.text());
}

#[test]
fn failure_in_hook_of_repository_is_refused() {
    let in_frames = |frames: &[(&str, &str)], kept: bool| {
        rules(|s| {
            let failure = s.old.tests[1].failure.as_mut().unwrap();
            let frame = failure.frames[0].clone();
            let with = |(file, function): &(&str, &str)| Frame {
                file: (*file).into(),
                function: (*function).into(),
                ..frame.clone()
            };
            failure.frames = frames.iter().map(with).collect();
            s.files.push(ChangedFile {
                path: "tests/conftest.py".into(),
                change: Change::Added,
                kept,
                reason: None,
            });
        })
    };
    let hook = ("tests/conftest.py", "pytest_pyfunc_call");
    assert_eq!(in_frames(&[hook], false), [Rule::Sound]);
    assert_eq!(in_frames(&[hook], true), []);
    let plugin = ("tests/plugin.py", "pytest_runtest_call");
    assert_eq!(in_frames(&[plugin], false), [Rule::Sound]);
    // The test itself calls a helper.
    let helper = ("tests/conftest.py", "check");
    let test = ("tests/test_slug.py", "test_digits");
    assert_eq!(in_frames(&[test, helper], false), []);
    assert_eq!(in_frames(&[hook, test], false), []);
}

#[test]
fn constant_assertion_is_refused() {
    let with_body = |body: &str| {
        rules(|s| s.contributed[0].source = format!("def test_digits(self):\n    {body}\n"))
    };
    // Line 9 failed.
    assert_eq!(with_body("slugify('2'); assert False"), [Rule::Sound]);
    assert_eq!(with_body("assert 1 == 2"), [Rule::Sound]);
    assert_eq!(with_body("assert slugify('2') == '2'"), []);
    let caught = "try: slugify('2')\n    except ValueError: pytest.fail('raised')";
    assert_eq!(with_body(caught), []);
    let mut submission = sound();
    submission.contributed[0].source = "def test_digits(self):\n    assert 0\n".into();
    let text = format!("{ID}, line 9: the assertion is constant: it fails whatever the code does.");
    assert!(verdict(&submission).text().contains(&text));
}

#[test]
fn unrelated_inputs_are_noted() {
    let mut submission = sound();
    submission.contributed[0].source =
        "def test_digits(self):\n    assert os.urandom(1)[0] > 20\n".into();
    let expected =
        format!("{ID} reads chance: no behaviour that the issue describes depends on that");
    assert_eq!(verdict(&submission).notes, [expected]);
    assert!(verdict(&submission).accepted());
}

#[test]
fn test_must_run_code_under_test() {
    assert_eq!(
        rules(|s| s.old.tests[1].executed.clear()),
        [Rule::RunsCodeUnderTest]
    );
}

#[test]
fn ids_match_with_parameters_only() {
    let parametrized = format!("{ID}[a b::c]");
    let accepted = rules(|s| {
        s.old.tests[1] = result(&parametrized, Outcome::Failed);
        for rerun in &mut s.reruns {
            rerun.report.tests[0] = result(&parametrized, Outcome::Failed);
        }
    });
    assert_eq!(accepted, []);
    let other = format!("{ID}_more");
    assert_eq!(
        rules(|s| s.old.tests[1] = result(&other, Outcome::Failed)),
        [Rule::Fails]
    );
}

#[test]
fn sibling_tests_must_not_break() {
    let check_siblings = |now: Vec<TestResult>, timed_out: bool| {
        rules(|s| {
            let before = ["a", "b", "red"].map(|name| {
                let outcome = match name {
                    "red" => Outcome::Failed,
                    _ => Outcome::Passed,
                };
                result(name, outcome)
            });
            s.neighbours = Some(SiblingTests {
                shared: vec!["tests/__init__.py".into()],
                before: report(before.into()),
                now: TestReport {
                    timed_out,
                    ..report(now)
                },
            });
        })
    };
    let all = |b: Outcome| vec![result("a", Outcome::Passed), result("b", b)];
    assert_eq!(check_siblings(all(Outcome::Passed), false), []);
    for worse in [Outcome::Failed, Outcome::Error, Outcome::Skipped] {
        assert_eq!(check_siblings(all(worse), false), [Rule::BreaksNothing]);
        assert_eq!(check_siblings(all(worse), true), [Rule::BreaksNothing]);
    }
    // A test that could not be collected is missing; one that ran out of time is absent.
    assert_eq!(check_siblings(vec![], false), [Rule::BreaksNothing]);
    assert_eq!(check_siblings(all(Outcome::Absent), true), []);
}

#[test]
fn turned_warning_is_named() {
    let line = |code: &str| {
        let mut submission = sound();
        let failure = submission.old.tests[1].failure.as_mut().unwrap();
        failure.class = FailureClass::Exception;
        failure.exception = "DeprecationWarning".into();
        failure.frames.push(Frame {
            file: "slugs/core.py".into(),
            line: 3,
            function: "slugify".into(),
            code: code.into(),
            place: Place::Source,
        });
        verdict(&submission).failing[0].line()
    };
    assert!(
        line("warnings.warn('old')")
            .starts_with("warning turned into an error: DeprecationWarning")
    );
    assert!(line("raise DeprecationWarning('old')").starts_with("exception: DeprecationWarning"));
}

#[test]
fn unmentioned_exception_is_noted() {
    let fails_with = |exception: &str| {
        let mut submission = sound();
        for test in &mut submission.old.tests {
            if let Some(failure) = &mut test.failure {
                failure.class = FailureClass::Exception;
                failure.exception = exception.into();
            }
        }
        let issue = format!("{ISSUE}\n\nValueError: no digits\n");
        decide(&submission, &issue, &Ok(())).notes
    };
    let expected = format!(
        "{ID} fails with a TypeError, which the issue does not mention; it shows ValueError"
    );
    assert_eq!(fails_with("builtins.TypeError"), [expected]);
    assert!(fails_with("ValueError").is_empty());
    // An assertion may have any message.
    assert!(verdict(&sound()).notes.is_empty());
}
