//! Progress of a comparison on stderr: a bar on a terminal, otherwise one line for each run.

use crate::cli::output::{ProgressLine, cut};
use testwright_comparisons::compare::{RunRecord, Step};

pub(super) fn show_step(live: &ProgressLine, step: &Step<'_>) {
    match step {
        Step::Building { instance, step } => live.set_task(instance, step),
        Step::Working { cell, what } => {
            live.end_task(&cell.instance);
            live.set_task(&cell.name(), what);
        }
        Step::Note { text } => live.print_note(text),
        Step::Ended { run, fresh } => {
            let name = format!("{}: {}", run.instance_id, run.prediction_set());
            live.end_task(&name);
            live.advance(*fresh);
            if *fresh {
                live.print_row(&format_run(run));
            }
        }
    }
}

/// Maximum characters of an outcome. Causes from git are long, and their hints come last.
const MAX_OUTCOME_LEN: usize = 400;

fn format_run(run: &RunRecord) -> String {
    let system = run.prediction_set();
    let outcome = cut(&run.outcome, MAX_OUTCOME_LEN);
    let number = run.cost.model_calls;
    let calls = if number == 1 { "call " } else { "calls" };
    format!(
        "{:<32} {system:<32} {number:>3} {calls} {:>8} tokens  {outcome}",
        run.instance_id,
        run.cost.tokens()
    )
}
