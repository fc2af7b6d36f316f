//! Progress of a comparison on stderr: a bar on a terminal, otherwise one line for each run.

use crate::cli::output::{ProgressLine, escape_line};
use testwright_comparisons::compare::{RunRecord, Step};

pub(super) struct CompareProgress {
    live: ProgressLine,
    quiet: bool,
}

const STYLE: &str = "{bar:30} {pos}/{len}  {eta} left  {msg}";

impl CompareProgress {
    /// Creates the progress of `all` runs; `quiet` shows only notes (for `--json`).
    pub(super) fn new(all: usize, quiet: bool) -> Self {
        let live = ProgressLine::new(Some(all as u64), STYLE, quiet);
        CompareProgress { live, quiet }
    }

    pub(super) fn note(&self, text: &str) {
        self.live.print_line(&escape_line(text));
    }

    pub(super) fn step(&self, step: &Step<'_>) {
        match step {
            Step::Building { instance, step } => {
                self.live.set_status(&format!("{instance}: {step}"))
            }
            Step::Working { cell, what } => {
                self.live.set_status(&format!("{}: {what}", cell.name()))
            }
            Step::Note { text } => self.note(&format!("note: {text}")),
            Step::Ended { run, fresh } => {
                self.live.advance(*fresh);
                if *fresh && !self.quiet {
                    self.note(&format_run(run));
                }
            }
        }
    }

    /// Removes the bar, so that results can be printed.
    pub(super) fn clear(&self) {
        self.live.clear();
    }
}

fn format_run(run: &RunRecord) -> String {
    let system = run.prediction_set();
    let outcome: String = run.outcome.chars().take(100).collect();
    format!(
        "{:<32} {system:<32} {:>3} calls {:>8} tokens  {outcome}",
        run.instance_id,
        run.cost.model_calls,
        run.cost.tokens()
    )
}
