//! Progress on stderr: a live line on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::agent::{Progress, Spent, StepView};

pub struct Terminal {
    /// The live line; `None` where stderr is no terminal.
    bar: Option<ProgressBar>,
    started: Instant,
    quiet: bool,
}

/// Characters of arguments and answers that are shown.
const WIDTH: usize = 90;

impl Terminal {
    /// `quiet` shows nothing but notes (for `--json`).
    pub fn new(quiet: bool) -> Self {
        let bar = (std::io::stderr().is_terminal() && !quiet).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Terminal {
            bar,
            started: Instant::now(),
            quiet,
        }
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.println(text),
            None => anstream::eprintln!("{text}"),
        }
    }

    fn status(&self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        }
    }

    /// Takes the live line away, so that results can be printed.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Terminal {
    fn phase(&self, name: &str, detail: &str) {
        self.line(&format!("{name}: {detail}"));
        self.status(format!("{name} {}", clock(self.started.elapsed())));
    }

    fn begins(&self, view: &StepView<'_>) {
        self.status(format!(
            "step {} · {} {} · {}",
            view.step,
            view.what,
            cut(view.detail, WIDTH / 2),
            totals(view.spent, self.started.elapsed())
        ));
    }

    fn ended(&self, view: &StepView<'_>) {
        self.line(&format!(
            "step {:>3}  {:<16} {:>7}  {}",
            view.step,
            view.what,
            format!("{:.1} s", view.seconds),
            cut(view.detail, WIDTH)
        ));
        self.status(format!(
            "step {} · {}",
            view.step,
            totals(view.spent, self.started.elapsed())
        ));
    }

    fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("note: {text}")),
            None => anstream::eprintln!("note: {text}"),
        }
    }
}

/// `12.3k tokens (80 % cached) · $0.02 · 0:41`
pub fn totals(spent: &Spent, elapsed: Duration) -> String {
    let mut parts = Vec::new();
    if spent.tokens() > 0 {
        let cached = match (100 * spent.cached_tokens).checked_div(spent.prompt_tokens) {
            Some(share) if share > 0 => format!(" ({share} % cached)"),
            _ => String::new(),
        };
        parts.push(format!("{} tokens{cached}", thousands(spent.tokens())));
    }
    if let Some(dollars) = spent.dollars {
        parts.push(format!("${dollars:.2}"));
    }
    parts.push(clock(elapsed));
    parts.join(" · ")
}

fn thousands(n: u64) -> String {
    if n < 10_000 {
        n.to_string()
    } else {
        format!("{:.1}k", n as f64 / 1000.0)
    }
}

fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn cut(text: &str, most: usize) -> String {
    // Whatever a repository or a model prints must not reach the terminal as control characters.
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if clean.chars().count() <= most {
        clean
    } else {
        clean
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_show_what_is_known_and_nothing_else() {
        let mut spent = Spent::default();
        assert_eq!(totals(&spent, Duration::from_secs(65)), "1:05");
        spent.prompt_tokens = 12_000;
        spent.cached_tokens = 6_000;
        spent.completion_tokens = 345;
        spent.dollars = Some(0.021);
        assert_eq!(
            totals(&spent, Duration::from_secs(3)),
            "12.3k tokens (50 % cached) · $0.02 · 0:03"
        );
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(cut("a\x1b[31mb\n", 10), "a [31mb ");
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
