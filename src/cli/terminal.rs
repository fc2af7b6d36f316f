//! Progress of a run on stderr: a live line on a terminal, otherwise plain lines.

use std::sync::{Mutex, OnceLock};

use serde_json::Value;

use super::output::{self, ProgressLine, Verbosity, cut};
use testwright_agent::agent::{Progress, RunUsage, StepView};
use testwright_agent::job::RunJob;
use testwright_config::lock::lock;
use testwright_models::ModelSource;

pub(super) struct RunProgress {
    live: ProgressLine,
    quiet: bool,
    run: OnceLock<RunFacts>,
    /// Open group of lines in the log of GitHub Actions.
    group: Mutex<Option<&'static str>>,
}

/// Facts of a run that the live line shows.
struct RunFacts {
    /// Name of the model; `None` for fixed rules.
    model: Option<String>,
    max_steps: u64,
    max_dollars: Option<f64>,
}

/// Maximum characters of results, if stderr is not a terminal.
const MAX_DETAIL_LEN: usize = 90;
/// Maximum characters of an argument in the live line.
const MAX_ARGUMENT_LEN: usize = 40;

impl RunProgress {
    /// Creates the progress of a run; `quiet` shows only notes (for `--json`).
    pub(super) fn new(quiet: bool) -> Self {
        RunProgress {
            live: ProgressLine::new(None, quiet),
            quiet: quiet || output::verbosity() == Verbosity::Quiet,
            run: OnceLock::new(),
            group: Mutex::default(),
        }
    }

    /// Shows the model and the limits of this job in the live line.
    pub(super) fn set_job(&self, job: &RunJob) {
        let model = match job.model.source() {
            ModelSource::Rules => None,
            ModelSource::Recording { .. } => Some("the recorded model".to_owned()),
            ModelSource::Azure(name) | ModelSource::Service(name) => Some(name.to_owned()),
        };
        let _ = self.run.set(RunFacts {
            model,
            max_steps: job.settings.run.max_steps,
            max_dollars: job.settings.run.max_dollars,
        });
    }

    /// Prints a line whose end may be cut.
    fn short_line(&self, start: &str, detail: &str) {
        let detail = detail.trim_end_matches(':');
        let line = match output::stderr_columns() {
            Some(columns) => cut(&format!("{start}{detail}"), columns),
            None => format!("{start}{}", cut(detail, MAX_DETAIL_LEN)),
        };
        self.live.print_result(line.trim_end());
    }

    /// Ends the open group of lines, and starts another one.
    fn set_group(&self, title: Option<&'static str>) {
        let mut group = lock(&self.group);
        if self.quiet || *group == title {
            return;
        }
        if group.is_some() {
            output::end_group();
        }
        if let Some(title) = title {
            output::start_group(title);
        }
        *group = title;
    }

    /// Formats the number of a step with its limit; empty before the first call of the model.
    fn step(&self, step: u32) -> String {
        match self.run.get() {
            _ if step == 0 => String::new(),
            Some(run) => format!("step {step} of {}", run.max_steps),
            None => format!("step {step}"),
        }
    }

    /// Describes a call that has started.
    fn describe_call(&self, view: &StepView<'_>) -> String {
        let run = self.run.get();
        let model = match run.map(|run| run.model.as_deref()) {
            Some(Some(model)) => model,
            Some(None) => return describe_action(view, "applying the rules"),
            None => "the model",
        };
        describe_action(view, &format!("asking {model}"))
    }

    /// Removes the live line, so that results can be printed.
    pub(super) fn clear(&self) {
        self.set_group(None);
        self.live.clear();
    }
}

impl Progress for RunProgress {
    fn phase(&self, name: &str, detail: &str) {
        self.set_group(None);
        self.live.print_result(&format!("{name}: {detail}"));
        self.live.set_status(match name {
            "model" => "reading the repository",
            "repository" => "preparing the environment",
            "recipe" => "building the environment",
            "environment" => "starting the sandbox",
            "program" => "running the program",
            "check" => "checking the test",
            other => other,
        });
    }

    fn build_step(&self, step: &str) {
        let is_in_workflow = output::is_in_workflow();
        if is_in_workflow {
            self.set_group(Some("Build the environment"));
        }
        if is_in_workflow || output::verbosity() == Verbosity::Verbose {
            self.live.print_result(&format!("environment: {step}"));
        }
        self.live
            .set_status(&format!("building the environment: {step}"));
    }

    fn sandbox(&self, kind: &str, isolation: &str) {
        match output::verbosity() {
            Verbosity::Verbose => self.phase("sandbox", isolation),
            _ => self.phase("sandbox", &describe_sandbox(kind, isolation)),
        }
    }

    fn begins(&self, view: &StepView<'_>) {
        let run = self.run.get();
        let parts = [
            self.step(view.step),
            self.describe_call(view),
            totals(view.spent, run.and_then(|run| run.max_dollars)),
        ];
        self.live.set_status(&join(&parts));
    }

    fn ended(&self, view: &StepView<'_>) {
        self.set_group(Some("Steps"));
        let is_rule =
            view.action == "model" && self.run.get().is_some_and(|run| run.model.is_none());
        let (action, seconds) = match is_rule {
            true => ("rules", String::new()),
            false => (view.action, format!("{:.1} s", view.seconds)),
        };
        let step = match view.step {
            0 => String::new(),
            step => format!("step {step:>3}"),
        };
        let start = format!("{step:<8}  {action:<16} {seconds:>7}  ");
        self.short_line(&start, view.detail);
        let run = self.run.get();
        let spent = totals(view.spent, run.and_then(|run| run.max_dollars));
        self.live.set_status(&join(&[self.step(view.step), spent]));
    }

    fn stage(&self, stage: &str, result: &str) {
        self.short_line(&format!("{stage}: "), result);
    }

    fn waiting(&self, text: &str) {
        match ProgressLine::is_shown() && !self.quiet {
            true => self.live.set_status(text),
            false => self.note(text),
        }
    }

    fn note(&self, text: &str) {
        self.live.print_note(text);
    }
}

/// Describes a call of a model or a tool in words.
fn describe_action(view: &StepView<'_>, asking: &str) -> String {
    let arguments: Value = serde_json::from_str(view.detail).unwrap_or_default();
    let argument = |name: &str| {
        let text = arguments[name].as_str().unwrap_or_default();
        cut(text, MAX_ARGUMENT_LEN)
    };
    match view.action {
        "model" => asking.to_owned(),
        "review" => format!("{asking} to review the test"),
        "search" => format!("searching for \"{}\"", argument("pattern")),
        "find_file" => format!("looking for {}", argument("name")),
        "read_function" => format!("reading {}", argument("name")),
        "open_file" | "outline" => format!("reading {}", argument("path")),
        "insert_function" | "rewrite_function" | "create_file" | "edit" | "edit_lines" => {
            format!("editing {}", argument("path"))
        }
        "run_pytest" | "cover" => "running tests".to_owned(),
        "run_python" => "running Python".to_owned(),
        "shell" => format!("running {}", argument("command")),
        "try_fix" => "trying a fix".to_owned(),
        "submit" => "checking the submission".to_owned(),
        other => other.to_owned(),
    }
}

/// Describes a sandbox in a few words.
fn describe_sandbox(kind: &str, isolation: &str) -> String {
    let degree = match isolation {
        text if text.starts_with("none") => "not isolated",
        text if text.starts_with("reduced isolation") => "reduced isolation",
        _ => "isolated",
    };
    match isolation.contains("no network") {
        true => format!("{kind} ({degree}, no network)"),
        false => format!("{kind} ({degree})"),
    }
}

/// Formats totals such as `12.3k tokens (80 % cached) · $0.02 of $0.50`.
fn totals(spent: &RunUsage, max_dollars: Option<f64>) -> String {
    let mut parts = Vec::new();
    if spent.tokens() > 0 {
        let cached = match (100 * spent.cached_tokens).checked_div(spent.prompt_tokens) {
            Some(share) if share > 0 => format!(" ({share} % cached)"),
            _ => String::new(),
        };
        parts.push(format!("{} tokens{cached}", thousands(spent.tokens())));
    }
    match (spent.dollars, max_dollars) {
        (Some(dollars), Some(limit)) => parts.push(format!("${dollars:.2} of ${limit:.2}")),
        (Some(dollars), None) => parts.push(format!("${dollars:.2}")),
        (None, _) => {}
    }
    parts.join(" · ")
}

fn join(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

fn thousands(n: u64) -> String {
    if n < 10_000 {
        n.to_string()
    } else {
        format!("{:.1}k", n as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests;
