//! `results.csv`: one row for each prediction and instance, without nested values.

use csv::Writer;

use super::metric::{Metric, counts};
use super::prediction_sets::PredictionSet;
use crate::document::format::old_class;
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
    let figure = |value: Option<f64>| match value {
        Some(value) if is_judged && counts(graded) => value.to_string(),
        _ => String::new(),
    };
    let count = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let infrastructure = graded.infrastructure.as_ref();
    let [build, golden, base, old, new, waiting, other] =
        graded.seconds.parts().map(|seconds| seconds.to_string());
    [
        graded.instance_id.clone(),
        graded.prediction.clone(),
        graded.repo.clone(),
        graded.issue_tokens.to_string(),
        graded.has_patch.to_string(),
        graded.applied.to_string(),
        verdict(Metric::FailToPass.holds(graded)),
        verdict(Metric::Success.holds(graded)),
        verdict(graded.swt.fail_to_any),
        verdict(graded.swt.fail_to_pass),
        verdict(graded.swt.pass_to_pass),
        verdict(Metric::TddFailToPass.holds(graded)),
        figure(Some(graded.tdd.score)),
        figure(graded.tdd.adequacy),
        count(graded.adequacy_lines),
        figure(graded.coverage_delta),
        count(graded.coverage_lines),
        graded.coverage_problem.clone().unwrap_or_default(),
        match is_judged && counts(graded) {
            true => old_class(graded.old_class).to_owned(),
            false => String::new(),
        },
        graded.strict.reason.clone(),
        graded.differs.join("; "),
        graded.notes.join("; "),
        infrastructure.map_or_else(String::new, ToString::to_string),
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
        graded.cached.join("; "),
        graded.key.clone(),
    ]
}
