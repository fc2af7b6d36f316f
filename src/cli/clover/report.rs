//! `testwright clover report`: writes the tables and the page again from the stored results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use testwright_evals::clover::Task;
use testwright_evals::clover::report::{CloverReport, costs, figures, system_name};
use testwright_evals::document::format::{percent, points};
use testwright_evals::folder::Versioned;

use crate::cli::output::{self, escape_line};
use crate::cli::output_folder;
use testwright_comparisons::clover::evaluation::{self, answer_costs, cost_facts, judgements};
use testwright_comparisons::clover::{JUDGEMENTS, plan::Plan};
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders from `testwright clover eval` on the same problems; the report is written to the
    /// first
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Print only the report (report.json), for programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    output_folder::check_each_once(&args.folders)?;
    let mut all = Vec::new();
    let mut paid = BTreeMap::new();
    let mut facts = Vec::new();
    let mut first: Option<Plan> = None;
    for folder in &args.folders {
        let plan = Plan::read(folder)?.filter(|_| folder.join(JUDGEMENTS).is_file());
        let Some(plan) = plan else {
            return Err(Error::usage(format!("read {}", folder.display()))
                .cause(format!("it has no {JUDGEMENTS}"))
                .hint("pass a folder that `testwright clover eval --out` wrote"));
        };
        let first = first.get_or_insert_with(|| plan.clone());
        if let Some(what) = first.difference(&plan) {
            return Err(Error::usage("combine the folders")
                .cause(format!("{} was evaluated on {what}", folder.display()))
                .hint("pass folders of evaluations on the same problems by the same version"));
        }
        let grades = judgements(folder)?;
        let name = match args.folders.len() {
            1 => String::new(),
            _ => format!("{}: ", folder.display()),
        };
        let costs = cost_facts(folder)?.into_iter();
        facts.push((format!("{name}Judged answers"), grades.len().to_string()));
        facts.extend(costs.map(|(fact, value)| (format!("{name}{fact}"), value)));
        paid.extend(answer_costs(folder)?);
        all.extend(grades);
    }
    let report = CloverReport::from_grades(&all, &paid, facts);
    let page = evaluation::write(&args.folders[0], &report)?;
    match args.json {
        true => output::print_json(&Versioned::new(&report))?,
        false => print(&report, &page),
    }
    Ok(0)
}

/// Reads the rates of a folder that `testwright clover eval` wrote; `None` if it has no judgements.
pub(in crate::cli) fn read(folder: &Path) -> Result<Option<String>> {
    if !folder.join(JUDGEMENTS).is_file() {
        return Ok(None);
    }
    let report =
        CloverReport::from_grades(&judgements(folder)?, &answer_costs(folder)?, Vec::new());
    Ok(Some(table(&report)))
}

/// Prints the rates and the path of the page.
pub(super) fn print(report: &CloverReport, page: &Path) {
    output::print_stdout(table(report));
    output::print_status(escape_line(&format!("report: {}", page.display())));
}

fn table(report: &CloverReport) -> String {
    let mut text = String::new();
    let width = report
        .systems()
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(6);
    for task in Task::ALL {
        let rows: Vec<_> = report.rows.iter().filter(|row| row.task == task).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "{:<width$}  {:<7}",
            format!("task {}", task.numeral()),
            "context"
        );
        for head in figures(task) {
            let _ = write!(text, "  {head:>9}");
        }
        text.push('\n');
        for row in rows {
            let _ = write!(
                text,
                "{:<width$}  {:<7}",
                escape_line(&system_name(&row.system, row.form)),
                row.budget.to_string()
            );
            let mut rates = vec![row.executed.rate, row.success.rate];
            if task == Task::Assertion {
                rates.insert(0, row.exact.rate);
            }
            let _ = write!(text, "  {:>9}", row.success.denominator);
            for rate in rates {
                let _ = write!(text, "  {:>9}", percent(rate));
            }
            for cost in costs(row.cost.as_ref()) {
                let _ = write!(text, "  {cost:>9}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    for of in &report.utilisation {
        let _ = writeln!(
            text,
            "{:<width$}  task {}: Δmax {}, Δmin {} points",
            escape_line(&system_name(&of.system, of.form)),
            of.task.numeral(),
            points(Some(of.maximum)),
            points(Some(of.minimum))
        );
    }
    text
}

#[cfg(test)]
mod tests;
