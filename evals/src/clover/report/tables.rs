//! Tables of the report.

use super::{CloverReport, MeanCost, Row, Utilisation};
use crate::clover::answer::Form;
use crate::clover::evaluation::AnswerClass;
use crate::clover::problem::Task;
use crate::document::format::{NONE, p_value, points, rate};
use crate::document::{Section, Table};

/// Published figures for comparison. Columns: system; task I without context (EM, ER, RER); best RER; task II without
/// context and best; task III success and execution at 64k and 128k.
const PUBLISHED: &str = "\
GPT-4o             | 55.2 | 72.0 | 68.0 | 71.5 | 28.7 | 48.4 | 32.7 / 42.1 | 31.8 / 39.3
Claude 3.5 Sonnet  | 56.3 | 78.2 | 72.4 | 75.4 | 26.9 | 48.4 | 29.0 / 34.6 | 30.8 / 35.5
Gemini 1.5 Flash   | 49.7 | 71.9 | 67.0 | 67.6 | 17.9 | 23.2 | 28.0 / 38.3 | 27.1 / 36.4
GPT-4o mini        | 43.1 | 70.8 | 66.3 | 67.7 | 17.0 | 26.6 | 19.6 / 25.2 | 21.5 / 25.2
Llama 3.1 70B      | 49.9 | 74.2 | 69.0 | 72.7 | 12.9 | 24.7 | 6.5 / 8.4   | 3.7 / 10.3
Qwen 2.5 Coder 14B | 52.6 | 64.7 | 59.8 | 60.4 | 23.2 | 25.3 | –           | –
Codestral 22B      | 45.5 | 68.2 | 63.3 | 65.0 | 20.0 | 28.4 | –           | –
Llama 3.1 8B       | 35.7 | 57.4 | 53.5 | 53.5 | 5.3  | 9.5  | 1.9 / 2.8   | 0.9 / 4.7
StarCoder2 15B     | 32.7 | 52.4 | 41.1 | 41.1 | 13.8 | 19.1 | –           | –";

/// Returns the system's name, with the form of its answers unless that is the default form.
pub fn system_name(system: &str, form: Form) -> String {
    match form {
        Form::Assertion | Form::Full => system.to_owned(),
        Form::Operand => format!("{system} (operand alone)"),
        Form::Part => format!("{system} (completion alone)"),
    }
}

pub(super) fn sections(report: &CloverReport) -> Vec<Section> {
    let mut sections: Vec<Section> = Task::ALL
        .iter()
        .filter_map(|task| of_task(report, *task))
        .collect();
    if !report.utilisation.is_empty() {
        sections.push(utilisation(&report.utilisation));
    }
    sections.push(answers(report));
    if !report.pairs.is_empty() {
        sections.push(pairs(report));
    }
    sections.push(published());
    sections
}

/// Returns the titles of the figures in the tables of a task.
pub fn figures(task: Task) -> &'static [&'static str] {
    match task {
        Task::Assertion => &["problems", "EM", "ER", "RER", "calls", "tokens", "dollars"],
        Task::Target | Task::Blocks => &[
            "problems",
            "execution",
            "success",
            "calls",
            "tokens",
            "dollars",
        ],
    }
}

fn of_task(report: &CloverReport, task: Task) -> Option<Section> {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.task == task).collect();
    if rows.is_empty() {
        return None;
    }
    let (id, title, note) = match task {
        Task::Assertion => (
            "assertions",
            "Task I: fill the blank of an assertion",
            "EM: the answer equals the reference. ER: the test passes with it. RER: the test passes, and the assertion is neither trivial nor copied from the context.",
        ),
        Task::Target => (
            "targets",
            "Task II: a test that calls a given class or function",
            "Execution: the test runs and passes. Success: it also calls the target, according to the syntax tree with names resolved.",
        ),
        Task::Blocks => (
            "blocks",
            "Task III: a test that covers given blocks",
            "Execution: the test runs and passes. Success: it also covers every line of every block.",
        ),
    };
    let mut table = Table::new(
        "Rates by system and context with 95 % intervals; mean calls, tokens and dollars per problem",
    )
    .words("system")
    .words("context")
    .figures(figures(task));
    for row in rows {
        let words = [system_name(&row.system, row.form), row.budget.to_string()];
        let mut figures = vec![row.success.denominator.to_string()];
        if task == Task::Assertion {
            figures.push(rate(&row.exact));
        }
        figures.extend([rate(&row.executed), rate(&row.success)]);
        figures.extend(costs(row.cost.as_ref()));
        table.labelled(words, figures);
    }
    Some(Section::new(id, title, [table]).note(note))
}

/// Formats the mean calls, tokens and dollars.
pub fn costs(cost: Option<&MeanCost>) -> [String; 3] {
    let Some(cost) = cost else {
        return [NONE; 3].map(str::to_owned);
    };
    let dollars = cost.dollars.map(|dollars| format!("{dollars:.4}"));
    [
        format!("{:.1}", cost.calls),
        format!("{:.0}", cost.tokens),
        dollars.unwrap_or_else(|| NONE.to_owned()),
    ]
}

/// Formats a difference in percentage points, with its interval.
fn difference(value: Option<f64>, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) => format!(
            "{} ({} to {})",
            points(value),
            points(Some(low)),
            points(Some(high))
        ),
        None => points(value),
    }
}

fn utilisation(all: &[Utilisation]) -> Section {
    let mut table = Table::new(
        "Difference from the rate without context, in points; bootstrap intervals over problems",
    )
    .words("system")
    .words("task")
    .figures(&["problems", "Δmax", "Δmin"]);
    for of in all {
        table.row([
            system_name(&of.system, of.form).into(),
            of.task.numeral().into(),
            of.problems.to_string().into(),
            difference(Some(of.maximum), of.maximum_interval).into(),
            difference(Some(of.minimum), of.minimum_interval).into(),
        ]);
    }
    Section::new("contexts", "Effect of the context", [table]).note("Δmax and Δmin: rate with the best and the worst context minus the rate without context (RER in task I, success in task II). Only problems that were asked with every context count. Ideal: Δmax > Δmin > 0.")
}

fn answers(report: &CloverReport) -> Section {
    let classes = [
        ("run", AnswerClass::Run),
        ("refused", AnswerClass::Refused),
        ("gibberish", AnswerClass::Gibberish),
        ("too long", AnswerClass::TooLong),
        ("cut off", AnswerClass::CutOff),
        ("no reply", AnswerClass::NoReply),
    ];
    let mut table = Table::new("Answers by class")
        .words("system")
        .words("task")
        .words("context")
        .figures(&classes.map(|(name, _)| name));
    for row in &report.rows {
        let counts = classes.map(|(_, class)| row.classes.get(&class).copied().unwrap_or_default());
        let words = [
            system_name(&row.system, row.form),
            row.task.numeral().to_owned(),
            row.budget.to_string(),
        ];
        table.labelled(words, counts.map(|count| count.to_string()));
    }
    Section::new("answers", "Answers", [table]).note("Answers that are not run count as wrong in every rate. Gibberish is not Python, or does not address the question.")
}

fn pairs(report: &CloverReport) -> Section {
    let mut table = Table::new("Success on the same problems: difference (first − second) in points with bootstrap intervals, and McNemar's exact test")
        .words("task")
        .words("context")
        .words("first")
        .words("second")
        .figures(&[
            "both",
            "only first",
            "only second",
            "neither",
            "points",
            "p",
        ]);
    for pair in &report.pairs {
        let of = &pair.compared;
        let words = [
            pair.task.numeral().to_owned(),
            pair.budget.to_string(),
            pair.first.clone(),
            pair.second.clone(),
        ];
        let counts = [of.both, of.only_first, of.only_second, of.neither].map(|n| n.to_string());
        let points = difference(of.difference, pair.interval);
        let figures = [points, p_value(of.p_value)];
        table.labelled(words, counts.into_iter().chain(figures));
    }
    Section::new("pairs", "Pairwise comparison", [table])
}

fn published() -> Section {
    let mut table =
        Table::new("Published rates in % (Xu et al. 2025), measured on different problems")
            .words("system")
            .figures(&[
                "I EM, po",
                "I ER, po",
                "I RER, po",
                "I best RER",
                "II po",
                "II best",
                "III 64k",
                "III 128k",
            ]);
    for line in PUBLISHED.lines() {
        table.row(line.split('|').map(|cell| cell.trim().into()));
    }
    Section::new("published", "Published results", [table]).note("Task III: success / execution.")
}
