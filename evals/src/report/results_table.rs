//! `results.csv`: one row for each prediction and instance, without nested values.

use super::metric::counts;
use super::prediction_sets::PredictionSet;
use super::summary::{counted_adequacy, counted_delta, counted_score};
use crate::document::format::old_class;
use crate::document::{Figure, csv_table, text_cell};
use crate::result::InstanceResult;

/// Name of the file in the results folder.
pub(super) const FILE: &str = "results.csv";

const COLUMNS: [Figure<InstanceResult>; 36] = [
    ("instance_id", |of| text_cell(&of.instance_id)),
    ("prediction", |of| text_cell(&of.prediction)),
    ("repo", |of| text_cell(&of.repo)),
    ("issue_tokens", |of| of.issue_tokens.to_string()),
    ("has_patch", |of| of.has_patch.to_string()),
    ("applied", |of| of.applied.to_string()),
    ("fail_to_pass", |of| verdict(of, of.strict.fail_to_pass)),
    ("swt_success", |of| verdict(of, of.swt.success)),
    ("swt_fail_to_any", |of| verdict(of, of.swt.fail_to_any)),
    ("swt_fail_to_pass", |of| verdict(of, of.swt.fail_to_pass)),
    ("swt_pass_to_pass", |of| verdict(of, of.swt.pass_to_pass)),
    ("tdd_fail_to_pass", |of| verdict(of, of.tdd.fail_to_pass)),
    ("tdd_score", |of| figure(of, Some(counted_score(of)))),
    ("adequacy", |of| figure(of, counted_adequacy(of))),
    ("adequacy_lines", |of| count(of.adequacy_lines)),
    ("coverage_delta", |of| figure(of, counted_delta(of))),
    ("coverage_lines", |of| count(of.coverage_lines)),
    ("coverage_problem", |of| {
        text_cell(of.coverage_problem.as_deref().unwrap_or_default())
    }),
    ("class_on_old_code", |of| {
        match is_judged(of) && counts(of) {
            true => old_class(of.old_class).to_owned(),
            false => String::new(),
        }
    }),
    ("reason", |of| text_cell(&of.strict.reason)),
    ("differs", |of| text_cell(&of.differs.join("; "))),
    ("notes", |of| text_cell(&of.notes.join("; "))),
    ("infrastructure", |of| {
        let failure = of.infrastructure.as_ref();
        failure.map_or_else(String::new, |failure| text_cell(&failure.to_string()))
    }),
    ("contributed", |of| of.contributed.len().to_string()),
    ("tests", |of| of.tests.len().to_string()),
    ("seconds", |of| of.seconds.total.to_string()),
    ("build_seconds", |of| of.seconds.build.to_string()),
    ("golden_seconds", |of| of.seconds.golden.to_string()),
    ("base_seconds", |of| of.seconds.base.to_string()),
    ("old_seconds", |of| of.seconds.old.to_string()),
    ("new_seconds", |of| of.seconds.new.to_string()),
    ("repeats_seconds", |of| of.seconds.repeats.to_string()),
    ("waiting_seconds", |of| of.seconds.waiting.to_string()),
    ("other_seconds", |of| of.seconds.other.to_string()),
    ("cached", |of| text_cell(&of.cached.join("; "))),
    ("key", |of| text_cell(&of.key)),
];

/// Returns the table of all results. Cells of figures that are missing are empty.
pub(super) fn results_table(sets: &[PredictionSet]) -> csv::Result<Vec<u8>> {
    let results = sets.iter().flat_map(|set| &set.all);
    let rows = results.map(|graded| COLUMNS.map(|(_, cell)| cell(graded)));
    csv_table(COLUMNS.map(|(name, _)| name), rows)
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn is_judged(graded: &InstanceResult) -> bool {
    graded.infrastructure.is_none()
}

/// Formats a verdict, which holds only with a prediction that applies, as in the rates.
fn verdict(graded: &InstanceResult, holds: bool) -> String {
    match is_judged(graded) {
        true => (holds && counts(graded)).to_string(),
        false => String::new(),
    }
}

fn figure(graded: &InstanceResult, value: Option<f64>) -> String {
    let value = value.filter(|_| is_judged(graded));
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests;
