//! Renders the report for a terminal.

use testwright_evals::document::Figure;
use testwright_evals::document::format::{NONE, percent, text_table};

use super::{ComparisonReport, SystemSummary};

const FIGURES: [Figure<SystemSummary>; 7] = [
    ("runs", |s| s.judged.to_string()),
    ("submitted", |s| s.submitted.to_string()),
    ("F→P strict", |s| percent(s.fail_to_pass.value)),
    ("interval", |s| match s.fail_to_pass.interval {
        Some([low, high]) => format!("{:.0}–{:.0} %", 100.0 * low, 100.0 * high),
        None => String::new(),
    }),
    ("calls", |s| {
        format_figure(s.cost.mean(|cost| cost.model_calls), 1)
    }),
    ("tokens", |s| {
        format_figure(s.cost.mean(|cost| cost.tokens), 0)
    }),
    ("not graded", |s| s.not_judged.to_string()),
];

fn format_figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns a table with one line per system, and as many columns as fit `columns` characters.
pub(super) fn table(report: &ComparisonReport, columns: Option<usize>) -> String {
    let rows = report.systems.iter().map(|s| (s.name.clone(), s));
    let mut lines = text_table("system", &FIGURES, rows, 12, columns);
    for (line, s) in lines[1..].iter_mut().zip(&report.systems) {
        if s.system.oracle_samples.is_some() {
            line.push_str("  (upper bound)");
        }
        match s.given().as_str() {
            "" => {}
            label => line.push_str(&format!(" {label}")),
        }
    }
    lines.join("\n") + "\n"
}
