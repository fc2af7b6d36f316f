//! The report as a page that needs no other file.

use std::collections::BTreeMap;

use super::{Report, Row, TITLE, tables};
use crate::clover::problem::{Budget, Task};
use crate::document::format::{letter, percent};
use crate::document::html::{self, LAYOUT, Page, RenderError, STYLE, SystemView};
use crate::document::svg::{Anchor, Svg};
use crate::document::{Plot, WIDTH};

/// Height of a plot, and what is left of and below it.
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 40.0;
const BELOW: f64 = 28.0;

pub fn page(report: &Report) -> Result<String, RenderError> {
    let names = names(report);
    let systems = names.iter().enumerate();
    let sections = report.sections().into_iter().map(|section| {
        let task = match section.id {
            "assertions" => Some(Task::Assertion),
            "targets" => Some(Task::Target),
            "blocks" => Some(Task::Blocks),
            _ => None,
        };
        let plots = task
            .map(|task| plot(report, task, &names))
            .into_iter()
            .collect();
        html::section_view(
            section,
            plots,
            &["assertions", "targets", "blocks", "contexts", "answers"],
        )
    });
    let page = Page {
        title: TITLE,
        style: STYLE.into(),
        script: None,
        facts: &report.facts,
        systems_label: "Systems",
        systems: systems
            .map(|(at, name)| SystemView::new(at, name))
            .collect(),
        sections: sections.collect(),
        own: (),
    };
    page.render(LAYOUT)
}

/// Systems with the forms of their answers.
fn names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = report
        .rows
        .iter()
        .map(|row| tables::system_name(&row.system, row.form))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The rate over the length of the context: a line for each system.
fn plot(report: &Report, task: Task, names: &[String]) -> Plot {
    let what = if task == Task::Assertion {
        "RER"
    } else {
        "Success"
    };
    let mut svg = Svg::new(WIDTH);
    let budgets = task.budgets();
    let width = WIDTH - LEFT - 12.0;
    let step = width / budgets.len().saturating_sub(1).max(1) as f64;
    let x = |at: usize| LEFT + step * at as f64;
    let y = |share: f64| 8.0 + (1.0 - share) * (HEIGHT - BELOW - 8.0);
    for tenth in [0.0, 0.25, 0.5, 0.75, 1.0] {
        svg.line("grid", (LEFT, y(tenth)), (LEFT + width, y(tenth)));
        let label = format!("{:.0} %", 100.0 * tenth);
        svg.text("axis", Anchor::End, (LEFT - 6.0, y(tenth) + 4.0), &label);
    }
    for (at, budget) in budgets.iter().enumerate() {
        svg.text(
            "axis",
            Anchor::Middle,
            (x(at), HEIGHT - 8.0),
            &budget.to_string(),
        );
    }
    let mut lines: BTreeMap<usize, Vec<(usize, &Row)>> = BTreeMap::new();
    for row in report.rows.iter().filter(|row| row.task == task) {
        let name = tables::system_name(&row.system, row.form);
        let system = names.iter().position(|known| *known == name);
        let place = |budget: Budget| budgets.iter().position(|known| *known == budget);
        if let (Some(system), Some(at)) = (system, place(row.budget)) {
            lines.entry(system).or_default().push((at, row));
        }
    }
    let mut said = Vec::new();
    for (system, rows) in lines {
        let class = format!("set s{}", system % 6);
        let whisker = format!("{class} whisker");
        let mut before: Option<(f64, f64)> = None;
        for (at, row) in rows {
            let share = row.success.rate.unwrap_or_default();
            let point = (x(at), y(share));
            if let Some([low, high]) = row.success.interval {
                svg.line(&whisker, (point.0, y(low)), (point.0, y(high)));
            }
            if let Some(before) = before {
                svg.line(&whisker, before, point);
            }
            before = Some(point);
            let about = format!(
                "{} at {}: {}",
                names[system],
                row.budget,
                percent(Some(share))
            );
            svg.dot(&class, point, &about);
            said.push(format!("{} {about}", letter(system)));
        }
    }
    Plot {
        caption: format!("{what} by context, 95 % intervals"),
        svg: svg.finish(HEIGHT, &format!("{what}: {}", said.join("; "))),
    }
}
