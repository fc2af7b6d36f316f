use super::*;

const PATCH: &str = "diff --git a/pkg/a.py b/pkg/a.py\nindex 1..2 100644\n--- a/pkg/a.py\n+++ b/pkg/a.py\n\
    @@ -10,5 +10,6 @@ def f():\n x\n-y\n+z\n+--- a/other.py\n x\n x\n x\n@@ -40,2 +41,3 @@\n x\n+w\n x\n";

fn recorded(patch: &str, call: usize) -> RecordedTrial {
    RecordedTrial {
        trial: FixTrial {
            patch: patch.to_owned(),
            ..FixTrial::default()
        },
        edits: Vec::new(),
        state: String::new(),
        call,
        contributed: true,
    }
}

#[test]
fn patch_edits_have_line_ranges() {
    let edits = edits(PATCH);
    let line_ranges: Vec<_> = (edits.iter())
        .map(|edit| {
            (
                edit.path.as_str(),
                edit.at,
                edit.removed,
                edit.added.clone(),
            )
        })
        .collect();
    assert_eq!(
        line_ranges,
        [("pkg/a.py", 11, 1, 11..13), ("pkg/a.py", 41, 0, 42..43)]
    );
}

#[test]
fn changed_code_precedes_added_functions() {
    let lines = |hunks: &str| -> Vec<usize> {
        let patch = format!("diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n{hunks}");
        places(&patch).iter().map(|place| place.line).collect()
    };
    let helper = "@@ -10,2 +10,6 @@\n     return 1\n+\n+\n+def helper():\n+    return 2\n x\n";
    let inside = "@@ -40,2 +44,3 @@\n x = 1\n+    y = 2\n z = 3\n";
    let decorator = "@@ -60,2 +60,3 @@\n \n+@cached\n def f():\n";
    assert_eq!(lines(helper), [10]);
    assert_eq!(lines(&format!("{helper}{inside}")), [40]);
    assert_eq!(lines(decorator), [61]);
    assert_eq!(lines("@@ -70,2 +70,2 @@\n \n-def f():\n+def g():\n"), [71]);
}

#[test]
fn last_form_of_fix_counts() {
    let at = |line: usize| {
        format!("diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -{line} +{line} @@\n-x\n+y\n")
    };
    let (first, second, other) = (at(10), at(12), at(90));
    let trials = [
        recorded(&first, 0),
        recorded(&other, 1),
        recorded(&second, 2),
        // Variants of one call are separate fixes.
        recorded(&first, 2),
    ];
    let patches: Vec<&str> = (latest_versions(&trials).iter())
        .map(|trial| trial.trial.patch.as_str())
        .collect();
    assert_eq!(patches, [&other, &second, &first]);
}

#[test]
fn mistake_in_edit_is_not_a_verdict() {
    use testwright_tools::outcomes::report::{FailureClass, Frame, Phase};
    let report = |exception: &str, line| TestReport {
        tests: vec![TestResult {
            failure: Some(Failure {
                phase: Phase::Call,
                class: FailureClass::Exception,
                exception: exception.to_owned(),
                message: "name 'z' is not defined".to_owned(),
                frames: vec![Frame {
                    file: "pkg/a.py".to_owned(),
                    line,
                    function: "f".to_owned(),
                    code: "z".to_owned(),
                    place: Place::Source,
                }],
                missing_name: None,
            }),
            ..TestResult::new("t.py::test_a", TestOutcome::Failed)
        }],
        ..TestReport::default()
    };
    let of = |exception, line| crash(PATCH, &report(exception, line));
    assert_eq!(
        of("NameError", 11).as_deref(),
        Some("NameError: name 'z' is not defined (pkg/a.py:11: z)")
    );
    assert_eq!(of("NameError", 10), None);
    assert_eq!(of("ValueError", 11), None);
}

#[test]
fn placebo_is_not_a_verdict() {
    let data = serde_json::json!({
        "patch": PATCH,
        "report": TestReport {
            tests: vec![TestResult::new("t.py::test_a", TestOutcome::Passed)],
            ..TestReport::default()
        },
        "placebo": true,
    });
    let trials = RecordedTrial::read(&data, 0);
    let fix = &trials[0].trial;
    assert_eq!(
        fix.crash_text().map(|text| text.0),
        Some("it changes no behaviour")
    );
    let real = serde_json::json!({ "patch": PATCH, "report": TestReport::default() });
    assert_eq!(RecordedTrial::read(&real, 0)[0].trial.crash, None);
}

#[test]
fn assertion_shows_line_of_test() {
    use testwright_tools::outcomes::report::{FailureClass, Frame, Phase};
    let frame = |file: &str, line, code: &str, place| Frame {
        file: file.to_owned(),
        line,
        function: "f".to_owned(),
        code: code.to_owned(),
        place,
    };
    let mut failure = Failure {
        phase: Phase::Call,
        class: FailureClass::Assertion,
        exception: "Failed".to_owned(),
        message: "nomatch: 'a'\nremains unmatched: 'a'".to_owned(),
        frames: vec![
            frame(
                "testing/test_a.py",
                7,
                "result.fnmatch_lines(['a'])",
                Place::Test,
            ),
            frame(
                "src/_pytest/outcomes.py",
                196,
                "raise Failed(reason)",
                Place::Source,
            ),
        ],
        missing_name: None,
    };
    assert_eq!(
        line(&failure),
        "Failed: nomatch: 'a' (testing/test_a.py:7: result.fnmatch_lines(['a']))"
    );
    failure.class = FailureClass::Exception;
    assert!(line(&failure).ends_with("(src/_pytest/outcomes.py:196: raise Failed(reason))"));
}
