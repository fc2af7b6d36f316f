//! A live line on stderr.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use testwright_config::lock::lock;

use super::{
    Text, Verbosity, cut, escape_line, print_stderr, sanitized, stderr_columns, verbosity,
};

/// A live line on stderr, below permanent lines: the elapsed time and what is being done. If stderr is not a terminal,
/// only the permanent lines appear.
pub struct ProgressLine {
    bar: Option<ProgressBar>,
    /// Whether results are hidden, for `--json`.
    hidden: bool,
    /// Concurrent tasks by name, with what each does.
    tasks: Mutex<BTreeMap<String, String>>,
}

const SPINNER: &str = "{spinner} {clock}  {wide_msg}";
const BAR: &str = "{bar:20} {pos}/{len}  {clock}{left}  {wide_msg}";

impl ProgressLine {
    /// Creates a bar of `all` steps, or a spinner if the number is unknown. If `hidden` is set, it prints only notes.
    pub fn new(all: Option<usize>, hidden: bool) -> ProgressLine {
        let is_shown = !hidden && ProgressLine::is_shown();
        ProgressLine {
            bar: is_shown.then(|| start_bar(all)),
            hidden,
            tasks: Mutex::default(),
        }
    }

    /// Returns whether a live line is visible: stderr is a terminal, and output is not quiet.
    pub fn is_shown() -> bool {
        std::io::stderr().is_terminal() && verbosity() != Verbosity::Quiet
    }

    /// Prints a permanent line, unless output is quiet.
    pub fn print_line(&self, text: &str) {
        let text = escape_line(text);
        match &self.bar {
            Some(bar) => {
                let text = Text::from(text).into_message(stderr_columns());
                bar.println(match AutoStream::choice(&std::io::stderr()) {
                    ColorChoice::Never => text.plain(),
                    _ => text.rendered(false),
                });
            }
            None if verbosity() == Verbosity::Quiet => {}
            None => print_stderr(text),
        }
    }

    /// Prints a note, unless output is quiet.
    pub fn print_note(&self, text: &str) {
        self.print_line(&format!("note: {text}"));
    }

    /// Prints a result, unless results are hidden.
    pub fn print_result(&self, text: &str) {
        if !self.hidden {
            self.print_line(text);
        }
    }

    /// Prints a result, which is cut at the width of a terminal, unless results are hidden.
    pub fn print_row(&self, text: &str) {
        match stderr_columns() {
            Some(columns) => self.print_result(&cut(text, columns)),
            None => self.print_result(text),
        }
    }

    /// Sets the text of the live line.
    pub fn set_status(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(escape_line(&sanitized(text)).into_owned());
        }
    }

    /// Shows what one of several concurrent tasks does.
    pub fn set_task(&self, name: &str, text: &str) {
        self.update_tasks(|tasks| {
            tasks.insert(name.to_owned(), text.to_owned());
        });
    }

    /// Removes a task that has ended.
    pub fn end_task(&self, name: &str) {
        self.update_tasks(|tasks| {
            tasks.remove(name);
        });
    }

    fn update_tasks(&self, update: impl FnOnce(&mut BTreeMap<String, String>)) {
        let mut tasks = lock(&self.tasks);
        update(&mut tasks);
        self.set_status(&describe_tasks(&tasks));
    }

    /// Counts one more step. `fresh` is false for steps done earlier, which must not affect the estimated rate.
    pub fn advance(&self, fresh: bool) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            if !fresh {
                bar.reset_eta();
            }
        }
    }

    /// Removes the live line, so that results can be printed.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn start_bar(all: Option<usize>) -> ProgressBar {
    let bar = all.map_or_else(ProgressBar::new_spinner, |all| ProgressBar::new(all as u64));
    let template = if all.is_some() { BAR } else { SPINNER };
    if let Ok(style) = ProgressStyle::with_template(template) {
        let clock = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(&clock(state.elapsed()));
        };
        // Before the first step has ended, the rate is unknown.
        let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let rate = state.per_sec();
            if rate.is_finite() && rate > 0.0 && !state.eta().is_zero() {
                let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
            }
        };
        bar.set_style(style.with_key("clock", clock).with_key("left", left));
    }
    bar.enable_steady_tick(Duration::from_millis(if all.is_some() { 200 } else { 120 }));
    bar
}

/// Formats a duration as minutes and seconds, such as `1:05`.
fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn describe_tasks(tasks: &BTreeMap<String, String>) -> String {
    let texts: Vec<String> = tasks
        .iter()
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    match texts.len() {
        0 | 1 => texts.concat(),
        n => format!("{n} running: {}", texts.join(" · ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_tasks_are_shown_together() {
        let mut tasks = BTreeMap::new();
        assert_eq!(describe_tasks(&tasks), "");
        tasks.insert("a".to_owned(), "building".to_owned());
        assert_eq!(describe_tasks(&tasks), "a: building");
        tasks.insert("b".to_owned(), "grading golden".to_owned());
        assert_eq!(
            describe_tasks(&tasks),
            "2 running: a: building · b: grading golden"
        );
    }
}
