//! Progress of an evaluation on stderr: a bar with rate and remaining time on a terminal, otherwise plain lines.

use testwright_evals::InstanceResult;
use testwright_evals::harness::Step;

use crate::cli::output::{ProgressLine, escape_line};
use testwright_comparisons::grading::GradingListener;

pub(super) struct GradingProgress {
    live: ProgressLine,
    quiet: bool,
}

const STYLE: &str = "{bar:30} {pos}/{len}  {per_sec}, {eta} left  {msg}";

impl GradingProgress {
    /// Creates the progress of `all` gradings; `quiet` shows only notes (for `--json`).
    pub(super) fn new(all: usize, quiet: bool) -> GradingProgress {
        let live = ProgressLine::new(Some(all as u64), STYLE, quiet);
        GradingProgress { live, quiet }
    }

    fn set_status(&self, text: &str) {
        self.live.set_status(text);
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
            Step::Building { instance, step } => self.set_status(&format!("{instance}: {step}")),
            Step::Grading {
                instance,
                prediction,
            } => {
                self.set_status(&format!("{instance}: {prediction}"));
            }
            Step::Graded {
                result,
                fresh: true,
            } => {
                self.live.advance(true);
                if !self.quiet {
                    self.note(&format_result(result));
                }
            }
            Step::Graded { fresh: false, .. } => self.live.advance(false),
        }
    }
}

fn format_result(result: &InstanceResult) -> String {
    let verdict = match &result.infrastructure {
        Some(trouble) => format!("infrastructure ({}): {}", trouble.stage, trouble.cause),
        None if result.strict.fail_to_pass => "fail-to-pass".to_owned(),
        None => format!("no: {}", result.strict.reason),
    };
    let first = verdict.lines().next().unwrap_or_default();
    let short: String = first.chars().take(140).collect();
    format!(
        "{:<32} {:<20} {:>6.1} s  {short}",
        result.instance_id, result.prediction, result.seconds.total
    )
}
