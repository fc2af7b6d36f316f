//! Progress of a comparison on stderr: a bar on a terminal, otherwise one line for each run.

use crate::cli::output::{ProgressLine, cut, escape_line};
use testwright_comparisons::compare::{RunRecord, Step};

pub(super) struct CompareProgress {
    live: ProgressLine,
    quiet: bool,
}

impl CompareProgress {
    /// Creates the progress of `all` runs; `quiet` shows only notes (for `--json`).
    pub(super) fn new(all: usize, quiet: bool) -> Self {
        let live = ProgressLine::new(Some(all as u64), quiet);
        CompareProgress { live, quiet }
    }

    pub(super) fn note(&self, text: &str) {
        self.live.print_line(&escape_line(text));
    }

    pub(super) fn step(&self, step: &Step<'_>) {
        match step {
            Step::Building { instance, step } => self.live.set_task(instance, step),
            Step::Working { cell, what } => {
                self.live.end_task(&cell.instance);
                self.live.set_task(&cell.name(), what);
            }
            Step::Note { text } => self.note(&format!("note: {text}")),
            Step::Ended { run, fresh } => {
                let name = format!("{}: {}", run.instance_id, run.prediction_set());
                self.live.end_task(&name);
                self.live.advance(*fresh);
                if *fresh && !self.quiet {
                    self.live.print_row(&format_run(run));
                }
            }
        }
    }

    /// Removes the bar, so that results can be printed.
    pub(super) fn clear(&self) {
        self.live.clear();
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
