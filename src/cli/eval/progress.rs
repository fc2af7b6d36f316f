//! Progress of an evaluation on stderr: a bar on a terminal, otherwise plain lines.

use testwright_evals::InstanceResult;
use testwright_evals::harness::Step;

use crate::cli::output::{ProgressLine, cut};
use testwright_comparisons::grading::GradingListener;

impl GradingListener for ProgressLine {
    fn note(&self, text: &str) {
        self.print_line(text);
    }

    fn step(&self, step: &Step) {
        match step {
            Step::Building { instance, step } => self.set_task(instance, step),
            Step::Grading {
                instance,
                prediction,
            } => {
                let tests = format!("running the tests of {prediction}");
                self.set_task(instance, &tests);
            }
            Step::Graded { result, fresh } => {
                self.end_task(&result.instance_id);
                self.advance(*fresh);
                if *fresh {
                    self.print_row(&format_result(result));
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
