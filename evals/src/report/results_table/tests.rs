#![allow(clippy::unwrap_used)]
use super::*;
use crate::report::sample;

#[test]
fn row_has_no_formulas_and_no_false_verdicts() {
    let mut graded = sample::results(&["=1+1"], 1, 1).remove(0);
    graded.infrastructure = None;
    (graded.has_patch, graded.applied) = (true, false);
    graded.strict.fail_to_pass = true;
    graded.coverage_delta = Some(-0.5);
    let cell = |graded: &InstanceResult, column: &str| {
        let (_, cell) = COLUMNS
            .into_iter()
            .find(|(name, _)| *name == column)
            .unwrap();
        cell(graded)
    };
    assert_eq!(cell(&graded, "prediction"), "'=1+1");
    // The patch does not apply.
    assert_eq!(cell(&graded, "fail_to_pass"), "false");
    let cells = |graded: &InstanceResult| {
        ["tdd_score", "adequacy", "coverage_delta"].map(|column| cell(graded, column))
    };
    (graded.coverage_lines, graded.adequacy_lines) = (Some(10), Some(12));
    assert_eq!(cells(&graded), ["0", "0", "0"]);
    // The adequacy of SymPy is omitted with and without a prediction.
    let of_sympy = InstanceResult {
        repo: "sympy/sympy".to_owned(),
        ..graded.clone()
    };
    assert_eq!(cells(&of_sympy), ["0", "", "0"]);
    // The report leaves out instances without lines to cover.
    (graded.coverage_lines, graded.adequacy_lines) = (Some(0), Some(0));
    assert_eq!(cells(&graded), ["0", "", ""]);
    (graded.coverage_lines, graded.adequacy_lines) = (None, Some(12));
    graded.coverage_problem = Some("no coverage".to_owned());
    assert_eq!(cells(&graded), ["0", "0", ""]);
    graded.coverage_problem = None;
    graded.applied = true;
    assert_eq!(cell(&graded, "fail_to_pass"), "true");
    assert_eq!(cell(&graded, "coverage_delta"), "-0.5");
}
