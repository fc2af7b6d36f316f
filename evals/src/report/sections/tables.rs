//! Tables of the report, with one function per section.

use std::collections::BTreeMap;

use testwright_tools::outcomes::report::Outcome;

use super::Labels;
use crate::document::format::{
    NONE, mean, old_class, outcome, p_value, percent, points, rate, seconds, short_rate,
};
use crate::document::{Cell, Figure, Section, Table};
use crate::report::details::{Details, Group};
use crate::report::{GradingReport, Summary};
use crate::result::Seconds;

const RATES: [Figure<Summary>; 17] = [
    ("Instances", |s| s.instances.to_string()),
    ("Graded", |s| s.graded.to_string()),
    ("Infrastructure failures (not in any rate)", |s| {
        s.infrastructure.to_string()
    }),
    ("Not graded yet (not in any rate)", |s| {
        s.not_graded.to_string()
    }),
    ("Without a prediction (counts as 0)", |s| {
        s.missing_predictions.to_string()
    }),
    ("Applicability", |s| rate(&s.applicability)),
    ("F→×", |s| rate(&s.fail_to_any)),
    ("F→P, strict", |s| rate(&s.fail_to_pass)),
    ("SWT-bench success", |s| rate(&s.success)),
    ("SWT-bench F→P", |s| rate(&s.swt_fail_to_pass)),
    ("P→P", |s| rate(&s.pass_to_pass)),
    ("ΔC, all", |s| mean(&s.coverage_delta_all)),
    ("ΔC, successful", |s| mean(&s.coverage_delta_success)),
    ("ΔC, others", |s| mean(&s.coverage_delta_other)),
    ("TDD-Bench F→P", |s| rate(&s.tdd_fail_to_pass)),
    ("tddScore", |s| mean(&s.tdd_score)),
    ("Adequacy", |s| mean(&s.adequacy)),
];

pub(super) fn rates(report: &GradingReport, labels: &[String]) -> Section {
    let mut table = Table::new("Rates and means with 95 % intervals")
        .words("Measure")
        .figures(labels);
    for (name, of) in RATES {
        table.labelled([name], report.summary.values().map(of));
    }
    let mut powers = Table::new(
        "Minimum detectable difference in strict F→P to another approach, with 80 % power",
    )
    .words("Prediction set")
    .figures(&[
        "Instances",
        "If they disagree like two runs of one system",
        "If they are independent",
    ]);
    for (label, s) in labels.iter().zip(report.summary.values()) {
        let format_points = |least: Option<f64>| match least {
            Some(d) => format!("{:.1} points", 100.0 * d),
            None => "too few instances".to_owned(),
        };
        let power = [s.power.correlated, s.power.independent].map(format_points);
        powers.labelled([label], [s.graded.to_string()].into_iter().chain(power));
    }
    Section::new("rates", "Rates", [table, powers]).note("F→P: a test fails on the old code and passes on the new code. F→×: a test fails on the old code. P→P: all tests pass on \
             both.").note("Rates: share (count/graded, Wilson interval). Means: multiplied by 100 (number of instances, bootstrap interval). \
             Failures of the machine or the harness are not in any denominator; a missing prediction, or \
             one that does not apply, counts as 0.").note("Two published runs of one system with the same score disagreed on 70 of 433 instances: differences under \
             about 4 points between single runs are noise.")
}

pub(super) fn agreement(report: &GradingReport, labels: &Labels) -> Section {
    let mut counts = Table::new("Instances by verdict")
        .words("Prediction set")
        .words("Strict F→P compared with")
        .figures(&["Both", "Only strict", "Only official", "Neither"]);
    let mut list = Table::new("Instances with different verdicts")
        .words("Instance")
        .words("Prediction set")
        .words("Strict")
        .words("SWT-bench")
        .words("TDD-Bench")
        .sentences("Reason");
    let labels = labels.long.iter().zip(&labels.short);
    for ((label, short), details) in labels.zip(report.details.values()) {
        for (against, a) in [
            ("SWT-bench success", &details.strict_against_swt),
            ("TDD-Bench F→P", &details.strict_against_tdd),
        ] {
            let figures = [a.both, a.only_strict, a.only_official, a.neither];
            counts.labelled([label.as_str(), against], figures.map(|n| n.to_string()));
        }
        for d in &details.differing {
            let yes = |holds: bool| Cell::from(if holds { "yes" } else { "no" });
            list.row([
                d.instance_id.as_str().into(),
                short.as_str().into(),
                yes(d.fail_to_pass),
                yes(d.success),
                yes(d.tdd_fail_to_pass),
                d.reasons.join("; ").into(),
            ]);
        }
    }
    let mut tables = vec![counts];
    if !list.rows.is_empty() {
        tables.push(list);
    }
    Section::new("agreement", "Strict and official verdicts", tables)
}

pub(super) fn classes(report: &GradingReport, labels: &[String]) -> Section {
    let mut table = Table::new("Strict F→P by class on the old code")
        .words("On the old code")
        .figures(labels);
    let rows = report.details.values().next();
    for (at, class) in rows.iter().flat_map(|d| d.by_old_class.iter().enumerate()) {
        let figures = report.details.values();
        let figures = figures.map(|d| match d.by_old_class.get(at) {
            Some(row) => short_rate(&row.fail_to_pass),
            None => NONE.to_owned(),
        });
        table.labelled([old_class(class.old_class)], figures);
    }
    Section::new("classes", "Class on the old code", [table])
}

pub(super) fn coverage(report: &GradingReport, labels: &[String]) -> Section {
    let mut table = Table::new("Instances by ΔC: SWT-bench successes + others")
        .words("ΔC")
        .figures(labels);
    for step in 0..10 {
        let name = match step {
            9 => "0.9–1.0".to_owned(),
            _ => format!("0.{step}–0.{}", step + 1),
        };
        let figures = report.details.values().map(|d| {
            let of = |side: &[u64]| side.get(step).copied().unwrap_or_default();
            format!("{} + {}", of(&d.coverage.success), of(&d.coverage.other))
        });
        table.labelled([name], figures);
    }
    let count = |of: fn(&Summary) -> u64| report.summary.values().map(move |s| of(s).to_string());
    table.labelled(["no lines"], count(|s| s.coverage_delta_no_lines));
    table.labelled(["not measured"], count(|s| s.coverage_delta_not_measured));
    Section::new("coverage", "Change coverage ΔC", [table]).note("The means exclude instances whose changed lines no test runs, and instances whose coverage could not be measured.")
}

pub(super) fn flows(report: &GradingReport, labels: &[String]) -> Section {
    let mut rows: BTreeMap<(Outcome, Outcome), Vec<u64>> = BTreeMap::new();
    for (at, details) in report.details.values().enumerate() {
        for flow in &details.flows {
            let counts = rows
                .entry((flow.old, flow.new))
                .or_insert_with(|| vec![0; labels.len()]);
            counts[at] = flow.tests;
        }
    }
    let mut table = Table::new("Contributed tests by outcome")
        .words("Old code")
        .words("New code")
        .figures(labels);
    for ((old, new), counts) in rows {
        table.labelled(
            [outcome(old), outcome(new)],
            counts.iter().map(u64::to_string),
        );
    }
    Section::new("flows", "Outcomes on the old and the new code", [table])
}

pub(super) fn repositories(report: &GradingReport, labels: &[String]) -> Section {
    let words = [
        "repositories",
        "By repository",
        "Strict F→P by repository",
        "Repository",
    ];
    groups(words, report, labels, |d| &d.by_repository)
}

pub(super) fn lengths(report: &GradingReport, labels: &[String]) -> Section {
    let caption = "Strict F→P by issue length in tokens";
    let words = ["lengths", "By issue length", caption, "Tokens"];
    groups(words, report, labels, |d| &d.by_issue_length)
}

/// Returns a section with a table of groups, whose names are in the first column.
fn groups(
    [id, title, caption, name]: [&'static str; 4],
    report: &GradingReport,
    labels: &[String],
    of: fn(&Details) -> &[Group],
) -> Section {
    let mut table = Table::new(caption).words(name).figures(labels);
    for group in names(report, of) {
        let figures = report.details.values().map(|d| {
            let matching_group = of(d).iter().find(|g| g.name == group);
            matching_group.map_or(NONE.to_owned(), |g| rate(&g.fail_to_pass))
        });
        table.labelled([group], figures);
    }
    Section::new(id, title, [table])
}

/// Returns the names of the groups of all sets, in order.
fn names(report: &GradingReport, of: fn(&Details) -> &[Group]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for group in report.details.values().flat_map(of) {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    names
}

pub(super) fn comparison(report: &GradingReport, labels: &Labels) -> Option<Section> {
    let comparison = report.comparison.as_ref()?;
    let by_name: BTreeMap<&str, &str> = report
        .summary
        .keys()
        .zip(&labels.short)
        .map(|(name, label)| (name.as_str(), label.as_str()))
        .collect();
    let label = |name: &str| by_name.get(name).copied().unwrap_or_default();
    let mut pairs = Table::new("Pairwise comparison on the same instances")
        .words("Measure")
        .words("First")
        .words("Second")
        .figures(&[
            "Instances",
            "Both",
            "Only first",
            "Only second",
            "Neither",
            "Difference, points",
            "p (McNemar, exact)",
            "Minimum detectable difference",
        ]);
    for pair in &comparison.pairs {
        let p = &pair.paired;
        let words = [
            pair.measure.title(),
            label(&pair.first),
            label(&pair.second),
        ];
        let counts = [
            pair.instances,
            p.both,
            p.only_first,
            p.only_second,
            p.neither,
        ];
        let figures = [
            points(p.difference),
            p_value(p.p_value),
            percent(p.smallest_difference).replace(" %", ""),
        ];
        let counts = counts.map(|n| n.to_string()).into_iter();
        pairs.labelled(words, counts.chain(figures));
    }
    let mut overlap = Table::new("Instances solved by any, by all, and by only one prediction set")
        .words("Measure")
        .figures(&["Instances", "Any", "All"])
        .figures(
            &labels
                .long
                .iter()
                .map(|label| format!("Only {label}"))
                .collect::<Vec<_>>(),
        );
    for row in &comparison.overlap {
        let only = report.summary.keys();
        let only = only.map(|name| row.only.get(name).map_or(0, Vec::len).to_string());
        let figures = [row.instances, row.union, row.intersection];
        let figures = figures.map(|n| n.to_string()).into_iter();
        overlap.labelled([row.measure.title()], figures.chain(only));
    }
    Some(Section::new("comparison", "Comparison", [pairs, overlap]).note("Instances without a verdict in one of the compared sets are excluded. p is not corrected for the number of \
             comparisons."))
}

pub(super) fn time(report: &GradingReport, labels: &Labels) -> Section {
    let mut table = Table::new("Time for grading")
        .words("Prediction set")
        .figures(&["Total", "Median"]);
    let mut slowest = Table::new("Slowest instances")
        .words("Instance")
        .words("Prediction set")
        .figures(&["Total"])
        .figures(&Seconds::PARTS);
    let labels = labels.long.iter().zip(&labels.short);
    for ((label, short), details) in labels.zip(report.details.values()) {
        let median = details.time.median.map_or(NONE.to_owned(), seconds);
        table.labelled([label], [seconds(details.time.total), median]);
        for slow in &details.time.slowest {
            let s = &slow.seconds;
            let figures = [s.total].into_iter().chain(s.parts());
            let words = [&slow.instance_id, short].map(String::as_str);
            slowest.labelled(words, figures.map(seconds));
        }
    }
    Section::new("time", "Time", [table, slowest])
}

pub(super) fn infrastructure(report: &GradingReport, labels: &[String]) -> Option<Section> {
    let mut table = Table::new("Failures not caused by the prediction")
        .words("Instance")
        .words("Prediction set")
        .words("Stage")
        .sentences("Cause")
        .words("Log");
    let mut causes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (label, details) in labels.iter().zip(report.details.values()) {
        for failed in &details.infrastructure {
            *causes.entry((&failed.stage, &failed.cause)).or_default() += 1;
            table.row([
                failed.instance_id.as_str().into(),
                label.as_str().into(),
                failed.stage.as_str().into(),
                failed.cause.as_str().into(),
                Cell {
                    text: failed.log.clone().unwrap_or_default(),
                    file: failed.log.clone(),
                },
            ]);
        }
    }
    let mut by_cause = Table::new("By cause")
        .words("Stage")
        .sentences("Cause")
        .figures(&["Results"]);
    for (words, count) in causes {
        by_cause.labelled(<[&str; 2]>::from(words), [count.to_string()]);
    }
    (!table.rows.is_empty()).then(|| {
        Section::new("infrastructure", "Infrastructure", [by_cause, table])
            .note("None of these counts against a prediction.")
    })
}
