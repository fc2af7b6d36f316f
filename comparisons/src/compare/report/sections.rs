//! Converts the report to titles, remarks and tables.

use std::collections::BTreeSet;

use testwright_evals::document::format::{
    NONE, mean, old_class, p_value, percent, points, rate, seconds, share_of, short_rate,
};
use testwright_evals::document::{Cell, Figure, Section, Table};
use testwright_evals::statistics::Rate;
use testwright_evals::verdict::OldClass;
use testwright_tools::tools::count;

use super::data::length_place;
use super::{ComparisonReport, CostSummary, Group, Pair, Score, SystemSummary, confidence};
use crate::compare::trajectory_page;

/// Returns the facts about the comparison, by name.
pub(super) fn facts(report: &ComparisonReport) -> Vec<(String, String)> {
    let plan = &report.plan;
    let limits = &plan.limits;
    let mut each = format!("{} steps, {} minutes", limits.steps, limits.minutes);
    if let Some(tokens) = limits.tokens {
        each.push_str(&format!(", {tokens} tokens"));
    }
    if let Some(least) = limits.min_confidence {
        each.push_str(&format!(", a confidence of at least {least}"));
    }
    let runs: u64 = report.systems.iter().map(|s| s.cost.runs).sum();
    let dollars = report.dollars.or_else(|| dollars_of_runs(costs(report)));
    let mut facts = vec![
        ("Dataset", plan.dataset.clone()),
        ("Instances", plan.instances.len().to_string()),
        ("Systems", plan.systems.len().to_string()),
        ("Samples", plan.samples.to_string()),
        ("Runs", runs.to_string()),
        ("Limits per run", each),
        ("testwright", report.testwright.clone()),
    ];
    if let Some(patches) = &plan.code_patches {
        facts.push(("Other code patches given", patches.clone()));
    }
    if let Some(dollars) = dollars.filter(|dollars| *dollars > 0.0) {
        facts.push(("Dollars", format!("{dollars:.2}")));
    }
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    facts.into_iter().map(owned).collect()
}

pub(super) fn sections(report: &ComparisonReport) -> Vec<Section> {
    let repositories = ["repositories", "By repository"];
    let lengths = ["lengths", "By issue length in tokens"];
    let sections = [
        Some(rates(report)),
        (!report.ablations.is_empty()).then(|| ablations(report)),
        Some(cost(report)),
        confidence::section(report),
        Some(overlap(report)),
        Some(pairs(report)),
        Some(classes(report)),
        Some(groups(repositories, report, |s| &s.by_repository)),
        Some(groups(lengths, report, |s| &s.by_issue_length)),
        Some(stages(report)),
        (!report.not_judged.is_empty()).then(|| not_judged(report)),
    ];
    sections.into_iter().flatten().collect()
}

/// Formats a score: `37.0 % (n = 449, 32.6–41.5)`.
fn score(score: &Score) -> String {
    share_of(score.value, score.instances, score.interval)
}

/// Returns whether some system has extra inputs.
fn gives_more(report: &ComparisonReport) -> bool {
    report
        .systems
        .iter()
        .any(|s| !s.system.extra_inputs.is_empty())
}

const RATES: [Figure<SystemSummary>; 8] = [
    ("F→P, strict", |s| score(&s.fail_to_pass)),
    ("SWT-bench success", |s| score(&s.success)),
    ("TDD-Bench F→P", |s| score(&s.tdd_fail_to_pass)),
    ("tddScore", |s| mean(&s.tdd_score)),
    ("ΔC", |s| mean(&s.coverage_delta)),
    ("Submitted", |s| s.submitted.to_string()),
    ("Precision: F→P of submitted tests", |s| {
        rate(&s.precision)
    }),
    ("Runs not graded", |s| s.not_judged.to_string()),
];

fn rates(report: &ComparisonReport) -> Section {
    let mut table = Table::new("Rates and means with 95 % intervals")
        .words("System")
        .figures(&RATES.map(|(title, _)| title));
    for (at, s) in report.systems.iter().enumerate() {
        table.labelled([s.label(at)], RATES.map(|(_, figure)| figure(s)));
    }
    let mut tables = vec![table];
    let most = report.systems.iter().map(|s| s.pass_at.len()).max();
    if let Some(most) = most.filter(|most| *most > 1) {
        let names: Vec<String> = (1..=most).map(|k| format!("pass@{k}")).collect();
        let mut table = Table::new("pass@k by strict F→P (unbiased estimator)")
            .words("System")
            .figures(&names);
        for (at, s) in report.systems.iter().enumerate() {
            let figures = (0..most).map(|k| percent(s.pass_at.get(k).copied().flatten()));
            table.labelled([s.label(at)], figures);
        }
        tables.push(table);
    }
    let least = report.systems.iter().filter_map(|s| s.smallest_difference);
    let least = least.reduce(f64::min);
    let could = match least {
        Some(least) => format!(
            "With this number of instances, a difference of {:.1} points can be shown with 80 % power, if two systems disagree as often as two \
             runs of one system do (70 of 433 instances, published). Smaller differences are noise.",
            100.0 * least
        ),
        None => "With this few instances, no difference can be shown with 80 % power, if two systems disagree as often as two runs of one \
                 system do (70 of 433 instances, published)."
            .to_owned(),
    };
    let easier = "Systems marked `given` have more information than the issue (SWT-bench, Table 5). Their task is easier, so their rates are \
         not comparable with the others. The ablations show the effect of that information.";
    Section::new("rates", "Rates", tables)
        .note(
            "A run without a submission counts as 0; a run that could not be made or graded is not in any rate. With several samples, \
             intervals are bootstrapped over instances.",
        )
        .note(could)
        .notes(gives_more(report).then_some(easier))
}

fn ablations(report: &ComparisonReport) -> Section {
    let mut table =
        Table::new("Difference in strict F→P (with − without options) on the same instances")
            .words("System")
            .words("Base")
            .figures(&["Difference, points", "Gained", "Lost", "p (McNemar, exact)"]);
    for one in &report.ablations {
        let paired = &one.paired;
        let figures = [
            points(paired.difference),
            paired.only_first.to_string(),
            paired.only_second.to_string(),
            p_value(paired.p_value),
        ];
        table.labelled([&one.system, &one.base].map(String::as_str), figures);
    }
    let value = "An option that gives more than the issue is not part of the approach: its difference shows the value of that information.";
    Section::new("ablations", "Ablations", [table]).notes(gives_more(report).then_some(value))
}

const COSTS: [Figure<CostSummary>; 9] = [
    ("Model calls", |cost| format!("{:.1}", cost.model_calls)),
    ("Failed calls (total)", |cost| cost.failed_calls.to_string()),
    ("Malformed calls (total)", |cost| {
        cost.malformed_calls.to_string()
    }),
    ("Tool calls", |cost| format!("{:.1}", cost.tool_calls)),
    ("Tokens", |cost| format!("{:.0}", cost.tokens)),
    ("Cached tokens", |cost| percent(cost.cached)),
    ("Dollars", |cost| {
        let dollars = cost.dollars.map(|dollars| format!("{dollars:.4}"));
        dollars.unwrap_or_else(|| NONE.to_owned())
    }),
    ("Waiting for the model", |cost| seconds(cost.model_seconds)),
    ("Tools", |cost| seconds(cost.tool_seconds)),
];

fn cost(report: &ComparisonReport) -> Section {
    let mut table = Table::new("Mean per run")
        .words("System")
        .figures(&COSTS.map(|(title, _)| title));
    let systems = report.systems.iter().enumerate();
    for (at, s) in systems.filter(|(_, s)| s.cost.runs > 0) {
        table.labelled([s.label(at)], COSTS.map(|(_, figure)| figure(&s.cost)));
    }
    let unassigned = unassigned_dollars(report.dollars, dollars_of_runs(costs(report)));
    Section::new("cost", "Cost", [table])
        .note("Pareto front (line): no other system is better at the same cost.")
        .notes(unassigned.map(|dollars| {
            format!(
                "The dollars of the comparison include {dollars:.4} that belong to no run of the \
                 table: failed calls, or interrupted calls at their highest possible cost."
            )
        }))
}

pub(super) fn costs(report: &ComparisonReport) -> impl Iterator<Item = &CostSummary> {
    report.systems.iter().map(|s| &s.cost)
}

/// Returns the cost of all runs in dollars; `None` if a model has no price.
pub(super) fn dollars_of_runs<'s>(costs: impl Iterator<Item = &'s CostSummary>) -> Option<f64> {
    // Without a run that ended, a system has no mean.
    let costs = costs.filter(|cost| cost.runs > 0);
    costs
        .map(|cost| cost.dollars.map(|d| d * cost.runs as f64))
        .sum()
}

/// Returns the part of the ledger that is in no run's cost, if it is visible in a table.
fn unassigned_dollars(ledger: Option<f64>, of_runs: Option<f64>) -> Option<f64> {
    let difference = ledger? - of_runs?;
    (difference >= 0.00005).then_some(difference)
}

/// Maximum groups in the table; `report.json` contains all of them.
const GROUPS: usize = 30;

fn overlap(report: &ComparisonReport) -> Section {
    let overlap = &report.overlap;
    let mut table = Table::new("Instances solved by exactly these systems")
        .words("Systems")
        .figures(&["Instances"])
        .sentences("Instance ids");
    for group in overlap.groups.iter().take(GROUPS) {
        let names: Vec<&str> = group
            .systems
            .iter()
            .map(|at| report.systems[*at].name.as_str())
            .collect();
        table.row([
            names.join(", ").into(),
            group.instances.len().to_string().into(),
            group.instances.join(", ").into(),
        ]);
    }
    let more = "This includes systems that are given more than the issue.";
    Section::new("overlap", "Overlap", [table])
        .note(format!(
            "At least one system solves {} of the {} with a verdict for every system, and all systems solve {}.",
            overlap.union,
            count(overlap.instances, "instance"),
            overlap.intersection
        ))
        .notes(gives_more(report).then_some(more))
}

const PAIRS: [Figure<Pair>; 7] = [
    ("Instances", |pair| pair.instances.to_string()),
    ("Difference, points", |pair| points(pair.paired.difference)),
    ("Only first", |pair| pair.paired.only_first.to_string()),
    ("Only second", |pair| pair.paired.only_second.to_string()),
    ("p (McNemar, exact)", |pair| p_value(pair.paired.p_value)),
    ("p (Holm)", |pair| p_value(pair.p_value_holm)),
    ("Minimum detectable difference", |pair| {
        match pair.paired.smallest_difference {
            Some(least) => format!("{:.1}", 100.0 * least),
            None => "too few instances".to_owned(),
        }
    }),
];

fn pairs(report: &ComparisonReport) -> Section {
    let mut table = Table::new("Difference in strict F→P (first − second), first samples")
        .words("First")
        .words("Second")
        .figures(&PAIRS.map(|(title, _)| title));
    for pair in &report.pairs {
        let systems = [&pair.first, &pair.second].map(String::as_str);
        table.labelled(systems, PAIRS.map(|(_, figure)| figure(pair)));
    }
    let mut tables = vec![table];
    let differing = report.pairs.iter().filter(|p| !p.discordant.is_empty());
    tables.extend(differing.map(discordant));
    let more = "Systems that are given more than the issue are only compared with each other.";
    Section::new("pairs", "Pairwise comparison", tables)
        .note("Exact McNemar tests on the same instances; Holm's correction is over all pairs.")
        .notes(gives_more(report).then_some(more))
}

fn discordant(pair: &Pair) -> Table {
    let (first, second) = (&pair.first, &pair.second);
    let mut table = Table::new(&format!("Solved by only one of {first} and {second}"))
        .words("Instance")
        .words("Solved by")
        .words("Run of the first")
        .words("Run of the second");
    let run = |folder: &str| match folder {
        // The system is given by its predictions.
        "" => Cell::from(NONE),
        folder => Cell {
            text: "trajectory".to_owned(),
            file: Some(format!("{folder}/{}", trajectory_page::FILE)),
        },
    };
    for one in &pair.discordant {
        let winner = if one.first_solves { first } else { second };
        table.row([
            one.instance.as_str().into(),
            winner.as_str().into(),
            run(&one.first_run),
            run(&one.second_run),
        ]);
    }
    table
}

fn classes(report: &ComparisonReport) -> Section {
    let mut table = Table::new("Runs by class on the old code, with the number of F→P")
        .words("System")
        .figures(&OldClass::ALL.map(old_class));
    for (at, s) in report.systems.iter().enumerate() {
        let cell = |rate: &Rate| match rate.denominator {
            0 => "0".to_owned(),
            of => format!("{of}, {} F→P ({})", rate.numerator, percent(rate.rate)),
        };
        table.labelled([s.label(at)], s.classes.iter().map(|(_, rate)| cell(rate)));
    }
    Section::new("classes", "Class of failure on the old code", [table])
}

fn groups(
    [id, title]: [&'static str; 2],
    report: &ComparisonReport,
    of: fn(&SystemSummary) -> &[Group],
) -> Section {
    let all = report.systems.iter().map(of);
    let titles: Vec<String> = report
        .systems
        .iter()
        .enumerate()
        .map(|(at, s)| s.label(at))
        .collect();
    let mut table = Table::new("Strict F→P of first samples")
        .words("Group")
        .figures(&titles);
    for name in group_names(all) {
        let figure = |s: &SystemSummary| {
            let group = of(s).iter().find(|group| group.name == name);
            group.map_or_else(|| NONE.to_owned(), |g| short_rate(&g.fail_to_pass))
        };
        table.labelled([name], report.systems.iter().map(figure));
    }
    Section::new(id, title, [table])
}

/// Returns each name once: repositories sorted by name, lengths by length.
fn group_names<'g>(all: impl Iterator<Item = &'g [Group]>) -> Vec<&'g str> {
    let names = all.flatten().map(|group| group.name.as_str());
    let sorted: BTreeSet<(usize, &str)> = names.map(|name| (length_place(name), name)).collect();
    sorted.into_iter().map(|(_, name)| name).collect()
}

fn stages(report: &ComparisonReport) -> Section {
    let mut table = Table::new("Totals over all runs")
        .words("System")
        .words("Stage")
        .figures(&[
            "Model calls",
            "Tokens",
            "Share of tokens",
            "Waiting for the model",
            "Tools",
        ]);
    for (at, s) in report.systems.iter().enumerate() {
        let all: u64 = s.stages.values().map(|stage| stage.tokens).sum();
        let mut stages: Vec<_> = s.stages.iter().collect();
        stages.sort_by_key(|(_, stage)| std::cmp::Reverse(stage.tokens));
        for (name, stage) in stages {
            let share = (all > 0).then(|| stage.tokens as f64 / all as f64);
            table.row([
                s.label(at).into(),
                name.as_str().into(),
                stage.model_calls.to_string().into(),
                stage.tokens.to_string().into(),
                percent(share).into(),
                seconds(stage.model_seconds).into(),
                seconds(stage.tool_seconds).into(),
            ]);
        }
    }
    Section::new("stages", "Tokens and time by stage", [table])
}

fn not_judged(report: &ComparisonReport) -> Section {
    let mut table = Table::new("Missing runs and verdicts")
        .sentences("Reason")
        .figures(&["Runs"]);
    for (reason, runs) in &report.not_judged {
        table.row([reason.as_str().into(), runs.to_string().into()]);
    }
    Section::new("not-judged", "Not graded", [table]).note("They do not count against any system.")
}

#[cfg(test)]
mod tests;
