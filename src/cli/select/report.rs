//! The text of a selection: its tables, and a line for each result.

use std::collections::BTreeMap;

use testwright_evals::document::Figure;
use testwright_evals::document::format::{score, short_rate, text_table};
use testwright_evals::selection::{
    Choice, RankedPatch, SelectionResult, SelectionSummary, SelectionVerdict, rank_patches,
    without_existing_tests,
};

use super::Selection;
use crate::cli::output::{cut, escape_line};

/// Note for an instance whose patches were tried only with new test files.
pub(super) const NO_EXISTING_TESTS: &str = "no existing test ran, so a patch that breaks one is not noticed; add a test set \
                                 that changes an existing test file with --tests";

/// Formats the report of a selection. Its tables fit into `columns` characters.
pub(super) fn format_selection(selection: &Selection, columns: Option<usize>) -> String {
    let choices = selection.choices.iter().map(format_choice);
    let choices: String = choices.collect();
    let mut rankings = format_rankings(&selection.results);
    if let Some(columns) = columns {
        let lines = rankings.lines();
        let lines = lines.map(|line| format!("{}\n", cut(line, columns)));
        rankings = lines.collect();
    }
    let table = table(&selection.summaries, columns);
    let notes = format_notes(&selection.results);
    format!("{table}{rankings}{choices}{notes}")
}

fn format_notes(results: &[SelectionResult]) -> String {
    let note = |instance: &str| {
        let note = format!("{instance}: note: {NO_EXISTING_TESTS}");
        format!("{}\n", escape_line(&note))
    };
    let instances = without_existing_tests(results).into_iter();
    instances.map(note).collect()
}

fn format_choice(choice: &Choice) -> String {
    let Choice {
        instance_id,
        tests,
        patch,
        resolves,
        tied,
    } = choice;
    let resolution = describe_resolution(*resolves);
    let line = format!("{instance_id}: best patch by {tests}: {patch}, which {resolution}");
    let mut line = line.trim_end_matches(", which ").to_owned();
    let others: Vec<&str> = tied
        .iter()
        .map(String::as_str)
        .filter(|name| *name != patch)
        .collect();
    if !others.is_empty() {
        let others = others.join(", ");
        line.push_str(&format!(
            "; tied with {others}; {patch} is taken because it comes first"
        ));
    }
    format!("{}\n", escape_line(&line))
}

/// Formats the ranking of each instance with several patches, and that of a single instance, one line per patch.
fn format_rankings(results: &[SelectionResult]) -> String {
    let mut by_instance: BTreeMap<&str, Vec<&SelectionResult>> = BTreeMap::new();
    for result in results {
        let of_instance = by_instance.entry(&result.instance_id).or_default();
        of_instance.push(result);
    }
    let is_single = by_instance.len() == 1;
    let rankings = by_instance.values().map(|of_instance| {
        let ranked = rank_patches(of_instance);
        match ranked.len() {
            // In a dataset, the tables have the instances with one patch.
            0 | 1 if !is_single => String::new(),
            _ => format_ranking(&ranked),
        }
    });
    rankings.collect()
}

fn format_ranking(ranked: &[RankedPatch]) -> String {
    let name = |patch: &RankedPatch| escape_line(&patch.result.patch).into_owned();
    let width = ranked.iter().map(|patch| name(patch).chars().count()).max();
    let width = width.unwrap_or_default();
    let line = |patch: &RankedPatch| {
        let result = &patch.result;
        let verdict = result.verdict().as_str();
        let mut parts = Vec::new();
        if patch.sets > 0 {
            let mut text = format!(
                "{} of {} failing tests pass, passes {} of {} test sets",
                result.passed.len(),
                result.passed.len() + result.failed.len(),
                patch.passed_sets,
                patch.sets
            );
            if result.is_kept() {
                text.push_str(&format!(", score {}", score(patch.score)));
            }
            parts.push(text);
        }
        parts.extend(result.reasons_or_default());
        let line = format!(
            "{}: {:width$}  {verdict:<9}  {}",
            escape_line(&result.instance_id),
            name(patch),
            escape_line(&parts.join("; "))
        );
        format!("{}\n", line.trim_end())
    };
    ranked.iter().map(line).collect()
}

fn describe_resolution(resolves: Option<bool>) -> &'static str {
    match resolves {
        Some(true) => "resolves the issue",
        Some(false) => "does not resolve the issue",
        None => "",
    }
}

pub(super) fn format_result(result: &SelectionResult) -> String {
    let reasons = result.reasons().join("; ");
    let verdict = match (&result.infrastructure, &result.not_tried, result.verdict()) {
        (Some(why), ..) => format!("infrastructure: {why}"),
        (None, Some(why), _) => format!("not tried: {why}"),
        (.., SelectionVerdict::Undecided) => "undecided: no test fails on the old code".to_owned(),
        (.., verdict) if reasons.is_empty() => verdict.as_str().to_owned(),
        (.., verdict) => format!("{}: {reasons}", verdict.as_str()),
    };
    let line = format!(
        "{:<32} {:<28} {:<28} {verdict}",
        result.instance_id, result.tests, result.patch
    );
    match describe_resolution(result.resolves) {
        "" => line,
        truth => format!("{line}; {truth}"),
    }
}

/// The figures of a set of tests. The rates at the end need golden tests that decide on a patch.
const FIGURES: [Figure<SelectionSummary>; 9] = [
    ("patches", |s| s.patches.to_string()),
    ("kept", |s| s.kept().to_string()),
    ("regressing", |s| s.regressing.to_string()),
    ("forged", |s| s.forged.to_string()),
    ("dropped", |s| s.dropped.to_string()),
    ("undecided", |s| s.undecided.to_string()),
    ("precision", |s| short_rate(&s.precision)),
    ("recall", |s| short_rate(&s.recall)),
    ("CodeT's choice", |s| short_rate(&s.codet)),
];

fn table(summaries: &[SelectionSummary], columns: Option<usize>) -> String {
    let has_rates = summaries.iter().any(SelectionSummary::has_rates);
    let figures = &FIGURES[..if has_rates { 9 } else { 6 }];
    let rows = (summaries.iter()).map(|s| (escape_line(&s.tests).into_owned(), s));
    text_table("tests", figures, rows, 15, columns).join("\n") + "\n"
}

#[cfg(test)]
mod tests;
