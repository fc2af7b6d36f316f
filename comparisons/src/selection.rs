//! Tables of patches that tests were tried on: `selection.csv` and `selection.md`.

use std::io;
use std::path::Path;

use testwright_evals::document::format::{score, short_rate};
use testwright_evals::document::{Section, Table, csv_table, markdown, text_cell};
use testwright_evals::folder::write_below;
use testwright_evals::selection::{
    SelectionResult, SelectionSummary, choices, codet_groups, group_results, rank_patches,
    summaries, tied_patches,
};

/// The table for programs, with all results.
const CSV_FILE: &str = "selection.csv";
/// The report for people.
const MARKDOWN_FILE: &str = "selection.md";

const COLUMNS: [&str; 11] = [
    "instance_id",
    "tests",
    "patch",
    "verdict",
    "passed",
    "failed",
    "regresses",
    "score",
    "tie",
    "resolves",
    "reasons",
];

/// Writes the tables. `facts` are shown at the head of the report.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_tables(
    folder: &Path,
    facts: &[(&str, String)],
    results: &[SelectionResult],
) -> io::Result<()> {
    write_below(folder, CSV_FILE, &csv(results)?)?;
    let report = report(facts, results);
    write_below(folder, MARKDOWN_FILE, report.as_bytes())
}

/// Returns a row for each instance, set of tests and patch.
fn csv(results: &[SelectionResult]) -> io::Result<Vec<u8>> {
    let groups = group_results(results, |r| (r.instance_id.as_str(), r.tests.as_str()));
    let mut rows = Vec::new();
    for group in groups.values() {
        let ranked = codet_groups(group);
        let tied = tied_patches(group);
        for result in group {
            let is_patch = |other: &&SelectionResult| other.patch == result.patch;
            let mut of_patch = ranked.iter();
            let of_patch = of_patch.find(|group| group.patches.iter().any(is_patch));
            rows.push([
                text_cell(&result.instance_id),
                text_cell(&result.tests),
                text_cell(&result.patch),
                result.verdict().as_str().to_owned(),
                result.passed.len().to_string(),
                result.failed.len().to_string(),
                result.regresses.len().to_string(),
                score(of_patch.map_or(0.0, |group| group.score)),
                (tied.len() > 1 && tied.iter().any(is_patch)).to_string(),
                result
                    .resolves
                    .map_or_else(String::new, |is| is.to_string()),
                text_cell(&reasons(result)),
            ]);
        }
    }
    Ok(csv_table(COLUMNS, rows)?)
}

fn reasons(result: &SelectionResult) -> String {
    result.reasons_or_default().join("; ")
}

fn report(facts: &[(&str, String)], results: &[SelectionResult]) -> String {
    let mut sections = vec![Section::new("ranking", "Ranking", [ranking(results)])];
    let choices = choices(results);
    if !choices.is_empty() {
        let mut table = Table::new("Best patch by each set of tests");
        table = table
            .words("Instance")
            .words("Tests")
            .words("Patch")
            .sentences("Ties with");
        for choice in choices {
            let others = choice.tied.iter().filter(|name| **name != choice.patch);
            let others: Vec<&str> = others.map(String::as_str).collect();
            let others = others.join(", ");
            table.labelled([choice.instance_id, choice.tests, choice.patch], [others]);
        }
        sections.push(Section::new("best", "Best patches", [table]));
    }
    let tests = test_sets(&summaries(results));
    sections.push(Section::new("tests", "Tests", [tests]));
    markdown("Selected patches", facts, &sections, CSV_FILE)
}

fn ranking(results: &[SelectionResult]) -> Table {
    let mut table = Table::new("Patches by all sets of tests, best first")
        .words("Instance")
        .words("Patch")
        .words("Verdict")
        .figures(&["Failing tests that pass", "Passed test sets", "Score"])
        .sentences("Reasons");
    let by_instance = group_results(results, |result| result.instance_id.as_str());
    for ranked in by_instance.values().flat_map(|all| rank_patches(all)) {
        let result = &ranked.result;
        let (passed, failed) = (result.passed.len(), result.failed.len());
        let cells = [
            result.patch.clone(),
            result.verdict().as_str().to_owned(),
            format!("{passed} of {}", passed + failed),
            format!("{} of {}", ranked.passed_sets, ranked.sets),
            score(ranked.score),
            reasons(result),
        ];
        table.labelled([result.instance_id.as_str()], cells);
    }
    table
}

/// Returns the table of summaries. It has rates only if golden tests decide on a patch.
fn test_sets(summaries: &[SelectionSummary]) -> Table {
    let has_rates = summaries.iter().any(SelectionSummary::has_rates);
    let mut table = Table::new("Patches by verdict").words("Tests").figures(&[
        "Patches",
        "Kept",
        "Regressing",
        "Forged",
        "Dropped",
        "Undecided",
    ]);
    if has_rates {
        table = table.figures(&["Precision", "Recall", "CodeT's choice"]);
    }
    for summary in summaries {
        let counts = [
            summary.patches,
            summary.kept(),
            summary.regressing,
            summary.forged,
            summary.dropped,
            summary.undecided,
        ];
        let mut cells: Vec<String> = counts.iter().map(u64::to_string).collect();
        if has_rates {
            let rates = [&summary.precision, &summary.recall, &summary.codet];
            cells.extend(rates.map(short_rate));
        }
        table.labelled([summary.tests.as_str()], cells);
    }
    table
}

#[cfg(test)]
mod tests;
