//! Progress of an evaluation on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use testwright_evals::Graded;
use testwright_evals::harness::Step;

pub struct Bar {
    /// `None` where stderr is no terminal.
    bar: Option<ProgressBar>,
    quiet: bool,
}

const STYLE: &str = "{bar:30} {pos}/{len}  {per_sec}, {eta} left  {msg}";

impl Bar {
    /// `quiet` shows notes alone (for `--json`).
    pub fn new(all: usize, quiet: bool) -> Bar {
        let bar = (std::io::stderr().is_terminal() && !quiet).then(|| {
            let bar = ProgressBar::new(all as u64);
            if let Ok(style) = ProgressStyle::with_template(STYLE) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Bar { bar, quiet }
    }

    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => anstream::eprintln!("{text}"),
        }
    }

    pub fn step(&self, step: &Step) {
        match step {
            Step::Building { instance, step } => self.now(&format!("{instance}: {step}")),
            Step::Grading {
                instance,
                prediction,
            } => {
                self.now(&format!("{instance}: {prediction}"));
            }
            Step::Graded {
                result,
                fresh: true,
            } => {
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
                if !self.quiet {
                    self.note(&line(result));
                }
            }
            Step::Graded { fresh: false, .. } => {
                // What was there from before says nothing of the rate.
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                    bar.reset_eta();
                }
            }
        }
    }

    fn now(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    /// Takes the bar away, so that results can be printed.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(result: &Graded) -> String {
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
