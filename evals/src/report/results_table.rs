//! `results.csv`: one row for each prediction and instance, without nested values.

use csv::Writer;

use super::metric::{Metric, counts};
use super::prediction_sets::PredictionSet;
use super::summary::{counted_adequacy, counted_delta};
use crate::document::format::old_class;
use crate::document::text_cell;
use crate::result::InstanceResult;

/// Name of the file in the results folder.
pub(super) const FILE: &str = "results.csv";

const COLUMNS: [&str; 35] = [
    "instance_id",
    "prediction",
    "repo",
    "issue_tokens",
    "has_patch",
    "applied",
    "fail_to_pass",
    "swt_success",
    "swt_fail_to_any",
    "swt_fail_to_pass",
    "swt_pass_to_pass",
    "tdd_fail_to_pass",
    "tdd_score",
    "adequacy",
    "adequacy_lines",
    "coverage_delta",
    "coverage_lines",
    "coverage_problem",
    "class_on_old_code",
    "reason",
    "differs",
    "notes",
    "infrastructure",
    "contributed",
    "tests",
    "seconds",
    "build_seconds",
    "golden_seconds",
    "base_seconds",
    "old_seconds",
    "new_seconds",
    "waiting_seconds",
    "other_seconds",
    "cached",
    "key",
];

/// Returns the table of all results. Cells of figures that are missing are empty.
pub(super) fn results_table(sets: &[PredictionSet]) -> csv::Result<Vec<u8>> {
    let mut table = Writer::from_writer(Vec::new());
    table.write_record(COLUMNS)?;
    for graded in sets.iter().flat_map(|set| &set.all) {
        table.write_record(row(graded))?;
    }
    table
        .into_inner()
        .map_err(|error| error.into_error().into())
}

fn row(graded: &InstanceResult) -> [String; COLUMNS.len()] {
    let is_judged = graded.infrastructure.is_none();
    // A verdict holds only with a prediction that applies, as in the rates.
    let verdict = |holds: bool| match is_judged {
        true => (holds && counts(graded)).to_string(),
        false => String::new(),
    };
    // Without a prediction that applies, the report counts 0.
    let score = match counts(graded) {
        true => graded.tdd.score,
        false => 0.0,
    };
    let figure = |value: Option<f64>| match value {
        Some(value) if is_judged => value.to_string(),
        _ => String::new(),
    };
    let text = |text: &str| text_cell(text).into_owned();
    let count = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let infrastructure = graded.infrastructure.as_ref();
    let [build, golden, base, old, new, waiting, other] =
        graded.seconds.parts().map(|seconds| seconds.to_string());
    [
        text(&graded.instance_id),
        text(&graded.prediction),
        text(&graded.repo),
        graded.issue_tokens.to_string(),
        graded.has_patch.to_string(),
        graded.applied.to_string(),
        verdict(Metric::FailToPass.holds(graded)),
        verdict(Metric::Success.holds(graded)),
        verdict(graded.swt.fail_to_any),
        verdict(graded.swt.fail_to_pass),
        verdict(graded.swt.pass_to_pass),
        verdict(Metric::TddFailToPass.holds(graded)),
        figure(Some(score)),
        figure(counted_adequacy(graded)),
        count(graded.adequacy_lines),
        figure(counted_delta(graded)),
        count(graded.coverage_lines),
        text(graded.coverage_problem.as_deref().unwrap_or_default()),
        match is_judged && counts(graded) {
            true => old_class(graded.old_class).to_owned(),
            false => String::new(),
        },
        text(&graded.strict.reason),
        text(&graded.differs.join("; ")),
        text(&graded.notes.join("; ")),
        infrastructure.map_or_else(String::new, |failure| text(&failure.to_string())),
        graded.contributed.len().to_string(),
        graded.tests.len().to_string(),
        graded.seconds.total.to_string(),
        build,
        golden,
        base,
        old,
        new,
        waiting,
        other,
        text(&graded.cached.join("; ")),
        text(&graded.key),
    ]
}

#[cfg(test)]
mod tests {
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
            let at = COLUMNS.iter().position(|name| *name == column).unwrap();
            row(graded)[at].clone()
        };
        assert_eq!(cell(&graded, "prediction"), "'=1+1");
        // The patch does not apply.
        assert_eq!(cell(&graded, "fail_to_pass"), "false");
        let cells = |graded: &InstanceResult| {
            ["tdd_score", "adequacy", "coverage_delta"].map(|column| cell(graded, column))
        };
        (graded.coverage_lines, graded.adequacy_lines) = (Some(10), Some(12));
        assert_eq!(cells(&graded), ["0", "0", "0"]);
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
}
