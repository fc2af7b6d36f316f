//! Renders `report.html`, a self-contained page with a searchable table of all instances.

use serde::Serialize;
use testwright_evals::document::format::{percent, short_rate};
use testwright_evals::document::html::{Page, RenderError, STYLE, SystemView};
use testwright_evals::document::{Section, href};
use testwright_evals::statistics::Rate;
use testwright_tools::tools::count;

use super::data::{Data, Judgement, ScoredRun};
use super::plots::plots;
use super::{ComparisonReport, TITLE};
use crate::compare::trajectory_page;

const TEMPLATE: &str = include_str!("report.html");
const SCRIPT: &str = include_str!("report.js");
const OWN_STYLE: &str = include_str!("report.css");

#[derive(Serialize)]
struct InstanceTable {
    rows: Vec<Row>,
}

/// A row in the table of instances.
#[derive(Serialize)]
struct Row {
    id: String,
    repository: String,
    tokens: u64,
    /// Number of systems that solve the instance.
    solved: usize,
    /// Runs by system, then by sample.
    cells: Vec<Vec<RunView>>,
}

#[derive(Serialize)]
struct RunView {
    sign: &'static str,
    /// CSS class of the sign, also a hint for screen readers.
    class: &'static str,
    href: Option<String>,
}

fn submitted(precision: &Rate) -> String {
    match precision.denominator {
        0 => "no tests were submitted".to_owned(),
        _ => format!("{} of the submitted tests are F→P", short_rate(precision)),
    }
}

pub(super) fn page(
    report: &ComparisonReport,
    data: &Data,
    facts: &[(String, String)],
    sections: Vec<Section>,
) -> Result<String, RenderError> {
    let systems = report.systems.iter().enumerate().map(|(at, s)| {
        let bound = match s.system.oracle_samples {
            Some(samples) => format!("upper bound: the best of {samples} samples; "),
            None => String::new(),
        };
        let inputs_text = match s.system.extra_inputs.as_slice() {
            [] => String::new(),
            inputs => format!("extra inputs: {}; ", inputs.join(", ")),
        };
        let cost = match (s.system.has_runs(), s.cost.runs) {
            (true, 0) => "no run has ended".to_owned(),
            (true, _) => format!(
                "{:.1} model calls and {:.0} tokens per run",
                s.cost.model_calls, s.cost.tokens
            ),
            (false, _) => "given as predictions".to_owned(),
        };
        SystemView {
            figure: Some(percent(s.fail_to_pass.value)),
            about: Some(format!(
                "{bound}{inputs_text}strict F→P of {}; {}; {cost}",
                count(s.fail_to_pass.instances, "instance"),
                submitted(&s.precision),
            )),
            ..SystemView::new(at, &s.name)
        }
    });
    let page = Page {
        title: TITLE,
        style: format!("{STYLE}{OWN_STYLE}").into(),
        script: Some(SCRIPT),
        facts,
        systems_label: "Systems",
        systems: systems.collect(),
        sections: (sections.into_iter())
            .map(|section| {
                let plots = plots(section.id, report);
                section.with_plots(plots, &["rates", "ablations", "cost"])
            })
            .collect(),
        own: InstanceTable { rows: rows(data) },
    };
    page.render(TEMPLATE)
}

fn rows(data: &Data) -> Vec<Row> {
    let row = |(at, instance): (usize, &crate::compare::plan::PlannedInstance)| {
        let solved = data.systems.iter().filter(|s| {
            let verdicts = s.runs[at].iter().flatten().filter_map(ScoredRun::verdict);
            verdicts.into_iter().any(|v| v.fail_to_pass)
        });
        Row {
            id: instance.id.clone(),
            repository: instance.repository.clone(),
            tokens: instance.issue_tokens,
            solved: solved.count(),
            cells: data
                .systems
                .iter()
                .map(|s| s.runs[at].iter().map(|run| view(run.as_ref())).collect())
                .collect(),
        }
    };
    data.plan.instances.iter().enumerate().map(row).collect()
}

fn view(run: Option<&ScoredRun>) -> RunView {
    let (sign, class) = match run.map(|run| &run.judgement) {
        None => ("·", "not run"),
        Some(Judgement::NotJudged(_)) => ("?", "u"),
        Some(Judgement::Verdict(v)) if v.fail_to_pass => ("✓", "y"),
        Some(Judgement::Verdict(v)) if v.old_class.is_none() => ("–", "n"),
        Some(Judgement::Verdict(_)) => ("✗", "n"),
    };
    let page = |run: &ScoredRun| format!("{}/{}", run.folder, trajectory_page::FILE);
    RunView {
        sign,
        class,
        href: run.and_then(|run| href(&page(run))),
    }
}
