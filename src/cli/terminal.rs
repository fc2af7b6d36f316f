//! Progress of a run on stderr: a live line on a terminal, otherwise plain lines.

use std::time::{Duration, Instant};

use super::output::{ProgressLine, escape_line};
use testwright_agent::agent::{Progress, RunUsage, StepView};

pub(super) struct RunProgress {
    live: ProgressLine,
    started: Instant,
    quiet: bool,
}

/// Maximum characters shown of arguments and results.
const MAX_DETAIL_LEN: usize = 90;

impl RunProgress {
    /// Creates the progress of a run; `quiet` shows only notes (for `--json`).
    pub(super) fn new(quiet: bool) -> Self {
        RunProgress {
            live: ProgressLine::new(None, "{spinner} {msg}", quiet),
            started: Instant::now(),
            quiet,
        }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.live.print_line(&escape_line(text));
        }
    }

    fn status(&self, text: String) {
        self.live.set_status(&text);
    }

    /// Removes the live line, so that results can be printed.
    pub(super) fn clear(&self) {
        self.live.clear();
    }
}

impl Progress for RunProgress {
    fn phase(&self, name: &str, detail: &str) {
        self.line(&format!("{name}: {detail}"));
        self.status(format!("{name} {}", clock(self.started.elapsed())));
    }

    fn begins(&self, view: &StepView<'_>) {
        self.status(format!(
            "step {} · {} {} · {}",
            view.step,
            view.action,
            cut(view.detail, MAX_DETAIL_LEN / 2),
            totals(view.spent, self.started.elapsed())
        ));
    }

    fn ended(&self, view: &StepView<'_>) {
        self.line(&format!(
            "step {:>3}  {:<16} {:>7}  {}",
            view.step,
            view.action,
            format!("{:.1} s", view.seconds),
            cut(view.detail, MAX_DETAIL_LEN)
        ));
        self.status(format!(
            "step {} · {}",
            view.step,
            totals(view.spent, self.started.elapsed())
        ));
    }

    fn stage(&self, stage: &str, result: &str) {
        self.line(&format!("{stage}: {}", cut(result, 2 * MAX_DETAIL_LEN)));
    }

    fn note(&self, text: &str) {
        self.live.print_line(&escape_line(&format!("note: {text}")));
    }
}

/// Formats totals such as `12.3k tokens (80 % cached) · $0.02 · 0:41`.
pub(super) fn totals(spent: &RunUsage, elapsed: Duration) -> String {
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
    let text = escape_line(text);
    if text.chars().count() <= most {
        return text.into_owned();
    }
    let short = text.chars().take(most.saturating_sub(1));
    short.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_omit_unknown_values() {
        let mut spent = RunUsage::default();
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
    fn control_characters_are_escaped() {
        assert_eq!(cut("a\x1b[31mb\n", 20), "a\\u{1b}[31mb\\n");
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
