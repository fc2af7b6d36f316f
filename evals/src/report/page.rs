//! Renders `report.html`, a self-contained page with light and dark styles and a table of all instances that can be
//! searched and sorted. All data is escaped, and the page's content security policy allows no scripts but its own.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use testwright_tools::tools::count;

use super::metric::{Metric, counts};
use super::prediction_sets::PredictionSet;
use super::sections::{Labels, facts, sections};
use super::{GradingReport, ReportError};
use crate::document::format::{NONE, letter, old_class, percent, short_rate};
use crate::document::html::{self, Page, STYLE, SystemView};
use crate::document::{Column, Table, href};
use crate::result::InstanceResult;

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

#[derive(Serialize)]
struct InstanceTable {
    repositories: BTreeSet<String>,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Log {
    name: String,
    href: String,
}

/// A row in the table of all predictions.
#[derive(Serialize)]
struct Row {
    id: String,
    letter: String,
    class: String,
    repo: String,
    tokens: u64,
    old_class: &'static str,
    strict: &'static str,
    swt: &'static str,
    tdd: &'static str,
    delta: String,
    adequacy: String,
    seconds: String,
    state: &'static str,
    why: String,
    differs: String,
    logs: Vec<Log>,
}

pub(super) fn page(report: &GradingReport, sets: &[PredictionSet]) -> Result<String, ReportError> {
    let names = report.summary.keys().enumerate();
    let labels = Labels {
        long: names
            .clone()
            .map(|(at, name)| format!("{} {name}", letter(at)))
            .collect(),
        short: names.map(|(at, _)| letter(at)).collect(),
    };
    let results = sets.iter().flat_map(|set| &set.all);
    let repositories: BTreeSet<String> = results.map(|g| g.repo.clone()).collect();
    let page = Page {
        title: &title(sets),
        style: STYLE.into(),
        script: Some(SCRIPT),
        facts: &facts(&report.run),
        systems_label: "Prediction sets",
        systems: cards(report),
        sections: (sections(report, &labels).into_iter())
            .map(|section| section.with_plots(Vec::new(), &["rates", "classes", "comparison"]))
            .collect(),
        own: InstanceTable {
            repositories,
            columns: columns(),
            rows: rows(sets),
        },
    };
    page.render(TEMPLATE).map_err(ReportError::Render)
}

fn title(sets: &[PredictionSet]) -> String {
    let instances = sets.iter().map(|s| s.instances).max().unwrap_or_default();
    let (sets, instances) = (
        count(sets.len(), "prediction set"),
        count(instances, "instance"),
    );
    format!("Evaluation of {sets} on {instances}")
}

fn cards(report: &GradingReport) -> Vec<SystemView> {
    let summaries = report.summary.iter().enumerate();
    summaries
        .map(|(at, (name, summary))| SystemView {
            figure: Some(percent(summary.fail_to_pass.rate)),
            about: Some(format!(
                "strict F→P, {} of {} graded; SWT-bench success {}",
                summary.fail_to_pass.numerator,
                summary.graded,
                short_rate(&summary.success)
            )),
            ..SystemView::new(at, name)
        })
        .collect()
}

fn columns() -> Vec<Column> {
    let words = ["Instance", "Set", "Strict", "SWT", "TDD", "On the old code"];
    let table = words.into_iter().fold(Table::new(""), Table::words);
    let table = table.figures(&["ΔC", "Adequacy", "Seconds", "Tokens"]);
    table.words("Logs").words("Reason").columns
}

fn rows(sets: &[PredictionSet]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        rows.extend(set.all.iter().map(|graded| row(at, graded)));
    }
    rows.sort_by(|a, b| a.id.cmp(&b.id).then_with(|| a.letter.cmp(&b.letter)));
    rows
}

fn row(set: usize, graded: &InstanceResult) -> Row {
    let is_judged = graded.infrastructure.is_none();
    let verdict = |measure: Metric| match measure.holds(graded) {
        _ if !is_judged => NONE,
        true => "yes",
        false => "no",
    };
    let share = |value: Option<f64>| match value {
        Some(value) if is_judged && counts(graded) => format!("{value:.2}"),
        _ => NONE.to_owned(),
    };
    let (state, why) = state(graded);
    Row {
        id: graded.instance_id.clone(),
        letter: letter(set),
        class: html::class(set),
        repo: graded.repo.clone(),
        tokens: graded.issue_tokens,
        old_class: old_class(graded.old_class),
        strict: verdict(Metric::FailToPass),
        swt: verdict(Metric::Success),
        tdd: verdict(Metric::TddFailToPass),
        delta: share(graded.coverage_delta),
        adequacy: share(graded.tdd.adequacy),
        seconds: match graded.seconds.total {
            0.0 => NONE.to_owned(),
            total => format!("{total:.1}"),
        },
        state,
        why,
        differs: graded.differs.join("; "),
        logs: logs(graded),
    }
}

fn state(graded: &InstanceResult) -> (&'static str, String) {
    let notes = |lead: &str| match graded.notes.is_empty() {
        true => lead.to_owned(),
        false => format!("{lead}: {}", graded.notes.join("; ")),
    };
    if let Some(failed) = &graded.infrastructure {
        return ("infrastructure", failed.to_string());
    }
    if !graded.has_patch {
        return ("none", notes("the prediction is missing"));
    }
    if !graded.applied {
        return ("unapplied", notes("the patch does not apply"));
    }
    let why = notes(&graded.strict.reason);
    match graded.strict.fail_to_pass {
        true => ("yes", why),
        false => ("no", why),
    }
}

fn logs(graded: &InstanceResult) -> Vec<Log> {
    let mut logs: Vec<Log> = graded
        .logs
        .iter()
        .filter_map(|(name, path)| {
            Some(Log {
                name: name.clone(),
                href: href(path)?,
            })
        })
        .collect();
    let failed = graded.infrastructure.as_ref();
    if let Some(href) = failed.and_then(|i| href(i.log.as_deref()?))
        && logs.iter().all(|log| log.href != href)
    {
        let name = "failure".to_owned();
        logs.push(Log { name, href });
    }
    logs
}

/// Converts log paths, which are relative to one results folder, to paths relative to another folder.
pub(super) fn move_logs(graded: &mut [InstanceResult], from: &Path, to: &Path) {
    let canonical_path = |path: &Path| path.canonicalize().ok();
    let Some((from, to)) = canonical_path(from).zip(canonical_path(to)) else {
        return;
    };
    let common = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    let mut way = PathBuf::new();
    way.extend(to.components().skip(common).map(|_| Component::ParentDir));
    way.extend(from.components().skip(common));
    for one in graded {
        let failed = one.infrastructure.iter_mut().filter_map(|i| i.log.as_mut());
        for log in one.logs.values_mut().chain(failed) {
            if Path::new(&*log).is_relative() {
                *log = way.join(&*log).to_string_lossy().into_owned();
            }
        }
    }
}
