//! Renders the report for a terminal.

use testwright_evals::document::format::{NONE, fitting_cells, percent};

use super::ComparisonReport;

/// Returns a table with one line per system, and as many columns as fit `columns` characters.
pub(super) fn table(report: &ComparisonReport, columns: Option<usize>) -> String {
    let width = report.systems.iter().map(|s| s.name.chars().count()).max();
    let width = width.unwrap_or_default().max(6);
    let heads = [
        "runs",
        "submitted",
        "F→P strict",
        "interval",
        "calls",
        "tokens",
        "not graded",
    ];
    let fitting = fitting_cells(heads.len(), width, 12, columns);
    let mut text = format!("{:width$}", "system");
    heads[..fitting]
        .iter()
        .for_each(|head| text.push_str(&format!("  {head:>12}")));
    text.push('\n');
    for s in &report.systems {
        let interval = s.fail_to_pass.interval;
        let interval = interval.map_or_else(String::new, |[low, high]| {
            format!("{:.0}–{:.0} %", 100.0 * low, 100.0 * high)
        });
        let cost = |figure: f64, digits: usize| match s.system.has_runs() {
            true => format!("{figure:.digits$}"),
            false => NONE.to_owned(),
        };
        let cells = [
            s.judged.to_string(),
            s.submitted.to_string(),
            percent(s.fail_to_pass.value),
            interval,
            cost(s.cost.model_calls, 1),
            cost(s.cost.tokens, 0),
            s.not_judged.to_string(),
        ];
        text.push_str(&format!("{:width$}", s.name));
        cells[..fitting]
            .iter()
            .for_each(|cell| text.push_str(&format!("  {cell:>12}")));
        if s.system.oracle_samples.is_some() {
            text.push_str("  (upper bound)");
        }
        match s.given().as_str() {
            "" => {}
            label => text.push_str(&format!(" {label}")),
        }
        text.push('\n');
    }
    text
}
