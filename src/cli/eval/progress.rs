//! Progress of an evaluation on stderr: a bar on a terminal, otherwise plain lines.

use testwright_evals::InstanceResult;
use testwright_evals::harness::Step;

use crate::cli::output::{ProgressLine, cut, escape_line};
use testwright_comparisons::grading::GradingListener;

pub(super) struct GradingProgress {
    live: ProgressLine,
    quiet: bool,
}

impl GradingProgress {
    /// Creates the progress of `all` gradings; `quiet` shows only notes (for `--json`).
    pub(super) fn new(all: usize, quiet: bool) -> GradingProgress {
        let live = ProgressLine::new(Some(all as u64), quiet);
        GradingProgress { live, quiet }
    }

    /// Removes the bar, so that results can be printed.
    pub(super) fn clear(&self) {
        self.live.clear();
    }
}

impl GradingListener for GradingProgress {
    fn note(&self, text: &str) {
        self.live.print_line(&escape_line(text));
    }

    fn step(&self, step: &Step) {
        match step {
            Step::Building { instance, step } => self.live.set_task(instance, step),
            Step::Grading {
                instance,
                prediction,
            } => {
                let tests = format!("running the tests of {prediction}");
                self.live.set_task(instance, &tests);
            }
            Step::Graded { result, fresh } => {
                self.live.end_task(&result.instance_id);
                self.live.advance(*fresh);
                if *fresh && !self.quiet {
                    self.live.print_row(&format_result(result));
                }
            }
        }
    }
}

/// Maximum characters of a verdict. Causes from git are long, and their hints come last.
const MAX_VERDICT_LEN: usize = 400;

fn format_result(result: &InstanceResult) -> String {
    let verdict = match &result.infrastructure {
        Some(trouble) => format!("infrastructure ({}): {}", trouble.stage, trouble.cause),
        None if result.strict.fail_to_pass => "fail-to-pass".to_owned(),
        None => format!("no: {}", result.strict.reason),
    };
    let first = verdict.lines().next().unwrap_or_default();
    let short = cut(first, MAX_VERDICT_LEN);
    format!(
        "{:<32} {:<20} {:>6.1} s  {short}",
        result.instance_id, result.prediction, result.seconds.total
    )
}
