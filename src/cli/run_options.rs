//! Flags shared by the commands that write tests: budget, results folder and output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::accepted_test::{AcceptedTest, apply_command, quote, quote_path};
use super::evidence_card;
use super::headings::{LIMITS, MODEL, OUTPUT};
use super::output::{self, escape_line};
use super::output_folder;
use super::terminal::RunProgress;
use testwright_agent::agent::{Outcome, Progress as _};
use testwright_agent::approaches::model_selection::ModelSelection;
use testwright_agent::approaches::{CommandLine, Variant};
use testwright_agent::issues::Issue;
use testwright_agent::job::{Record, RecordedSettings, RunJob};
use testwright_agent::setup::RepositoryLocation;
use testwright_agent::trajectory::{RunFolder, check_writable};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, Settings};
use testwright_evals::folder::Versioned;
use testwright_sandboxes::repository::{Placement, WorkTree};
use testwright_server::artifacts::shared_environments;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct RunOptions {
    /// Model, such as gpt-5-mini; `replay:FILE` replays a recording; with `testwright run`,
    /// `snippet` selects the approach of that name, which needs no API key [default: gpt-5-mini if
    /// OPENAI_API_KEY is set]
    #[arg(short, long, help_heading = MODEL, value_name = "NAME")]
    model: Option<String>,
    /// Folder for the results [default: testwright-runs/TIME-NAME, named after the issue or the
    /// code to cover]
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder with custom prompts: NAME.md replaces the prompt of that name
    #[arg(long, help_heading = MODEL, value_name = "DIR")]
    prompts: Option<PathBuf>,
    /// Maximum number of steps: model calls without reviews [default: 60]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    max_steps: Option<u64>,
    /// Maximum cost in US dollars; needs a price for the model (see `testwright models`) [default: no
    /// limit]
    #[arg(long, help_heading = LIMITS, value_name = "X")]
    max_dollars: Option<f64>,
    /// Maximum number of tokens, prompts and completions together [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    max_tokens: Option<u64>,
    /// Maximum minutes, not counting the environment build [default: 30]
    #[arg(long, help_heading = LIMITS, value_name = "M")]
    max_minutes: Option<f64>,
    /// Append all model traffic to this file, for `--model replay:FILE`
    #[arg(long, help_heading = OUTPUT, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Apply an accepted test to the repository, which must be a folder. Files with uncommitted
    /// changes are not touched
    #[arg(long, help_heading = OUTPUT)]
    apply: bool,
    /// Print only run.json, for programs
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

impl RunOptions {
    /// Adds these options to the flags, which override the settings.
    pub(super) fn add_to_flags(&self, flags: &mut Flags) {
        flags.set("run.model", self.model.clone());
        flags.set("run.out", self.out.clone());
        flags.set("run.prompts", self.prompts.clone());
        flags.set("run.max-steps", self.max_steps);
        flags.set("run.max-dollars", self.max_dollars);
        flags.set("run.max-tokens", self.max_tokens);
        flags.set("run.max-minutes", self.max_minutes);
    }

    /// Creates the job of a new run, without extra inputs.
    pub(super) fn job(
        &self,
        settings: Settings,
        issue: Issue,
        place: RepositoryLocation,
        approach: Variant,
        selection: ModelSelection,
    ) -> RunJob {
        let out = settings.run.out.clone();
        let out = out.unwrap_or_else(|| default_folder(&issue.title));
        let mut notes = settings.notes.clone();
        notes.extend(selection.note);
        RunJob {
            traffic: self.record.clone(),
            notes,
            ..RunJob::new(settings, issue, place, approach, selection.model, out)
        }
    }

    pub(super) fn terminal(&self) -> Arc<RunProgress> {
        Arc::new(RunProgress::new(self.json))
    }

    /// Executes the job and prints its result.
    pub(super) async fn execute(&self, mut job: RunJob, terminal: Arc<RunProgress>) -> Result<u8> {
        job.shared = shared_environments(&job.settings)?;
        let location = job.place.location.clone();
        // The run reports a repository that cannot be read.
        let tree = WorkTree::find(&location).ok().flatten();
        match &tree {
            Some(tree) => tree.prefix().clone_into(&mut job.patch_prefix),
            None if self.apply => {
                return Err(Error::usage("use --apply")
                    .cause(format!("{location} is not a folder with a work tree"))
                    .hint("pass --repo FOLDER, or run `testwright apply` afterwards"));
            }
            None => {}
        }
        if let Some(plan) = job.describe_plan() {
            terminal.phase("model", &plan);
        }
        terminal.set_job(&job);
        let record = job.execute(terminal.clone()).await;
        terminal.clear();
        let (record, folder) = record?;
        let test = AcceptedTest::of_record(&record, &folder, &location);
        if self.json {
            output::print_json(&Versioned::new(&record))?;
        } else {
            print_result(&record, &folder);
        }
        let lines = match (&test, &tree) {
            (Some(test), Some(tree)) if self.apply => {
                let command = apply_command(&test.folder);
                let mut lines = test.apply(tree, &test.patch, Placement::default(), &command)?;
                lines.extend(test.how_to_run(tree));
                lines
            }
            (Some(test), _) if !self.json => test.next_steps(),
            _ => Vec::new(),
        };
        if !self.json {
            let lines = lines.iter();
            lines.for_each(|line| output::print_status_line(escape_line(line)));
        }
        Ok(record.exit_code)
    }
}

/// Adds the limits and the sandbox of a recorded run to the flags.
pub(super) fn add_recorded(flags: &mut Flags, recorded: &RecordedSettings) {
    flags.set("run.max-steps", Some(recorded.max_steps));
    flags.set("run.max-dollars", recorded.max_dollars);
    flags.set("run.max-tokens", recorded.max_tokens);
    flags.set("run.max-minutes", Some(recorded.max_minutes));
    flags.set("run.min-confidence", recorded.min_confidence);
    flags.set("run.sandbox", Some(&recorded.sandbox));
    flags.set("run.image", recorded.image.as_ref());
    flags.set("run.dockerfile", recorded.dockerfile.as_ref());
    flags.set("run.python", recorded.python.as_ref());
    flags.set("run.project", recorded.project.as_ref());
}

/// Prints the result of a run, and where its files are.
fn print_result(record: &Record, folder: &Path) {
    match failure(&record.outcome) {
        Some(error) => output::print_error(&error),
        None => output::print_stdout(evidence_card::render(&record.outcome)),
    }
    let results = format!("results: {}", folder.display());
    output::print_status(escape_line(&results));
    let is_interrupted = record.outcome == Outcome::Interrupted;
    if !record.outcome.is_final() && (is_interrupted || record.usage.model_calls > 0) {
        let command = resume_command(&record.approach, folder);
        output::print_status_line(escape_line(&format!("hint: {command}")));
    }
}

/// Returns the command that resumes a run. The user must repeat the name of a program.
fn resume_command(approach: &str, folder: &Path) -> String {
    let command = format!("testwright run --resume {}", quote_path(folder));
    match CommandLine::is_command(approach) {
        true => format!("{command} --approach {}", quote(approach)),
        false => command,
    }
}

/// Returns the error that ended the run, if it ended because of the machine or the model.
fn failure(outcome: &Outcome) -> Option<Error> {
    let (error, hint) = match outcome {
        Outcome::Infrastructure { message, hint, .. } => {
            let error = Error::infrastructure("complete the run");
            (error.cause(message), hint)
        }
        Outcome::ModelFailed { message, hint } => {
            let error = Error::infrastructure("get an answer from the model");
            (error.cause(message), hint)
        }
        _ => return None,
    };
    Some(error.hint_if(hint.as_deref()))
}

/// Default folder for results, in the current folder.
pub(super) const DEFAULT_RESULTS_FOLDER: &str = "testwright-runs";

/// Checks that the results of a new run can be written.
pub(super) fn check_results_folder(settings: &Settings) -> Result<()> {
    let default = Path::new(DEFAULT_RESULTS_FOLDER);
    let Some(out) = &settings.run.out else {
        RunFolder::check_default_folder(default)?;
        return Ok(check_writable(default)?);
    };
    output_folder::check_is_folder(out)?;
    // The folder of another run has a hint of its own.
    check_writable(out)?;
    output_folder::check_has_no_result_files(out)
}

/// Returns a folder such as `testwright-runs/2025-01-31T120000-first-words-of-the-title`.
pub(super) fn default_folder(title: &str) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%S");
    Path::new(DEFAULT_RESULTS_FOLDER).join(format!("{now}-{}", title_words(title)))
}

/// Returns the first words of a title, for the name of a folder or a branch: `first-words-of-the-title`.
pub(super) fn title_words(title: &str) -> String {
    let words: Vec<String> = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(6)
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_machine_is_cause() {
        let outcome = Outcome::Infrastructure {
            message: "start `x`: no such file".to_owned(),
            hint: None,
            shortage: None,
        };
        assert_eq!(
            failure(&outcome).map(|error| error.render()),
            Some("error: failed to complete the run\n  cause: start `x`: no such file".to_owned())
        );
    }

    #[test]
    fn resume_command_repeats_program() {
        let command = |approach| resume_command(approach, Path::new("runs/a b"));
        assert_eq!(command("otter"), "testwright run --resume 'runs/a b'");
        assert_eq!(
            command("command:python a.py"),
            "testwright run --resume 'runs/a b' --approach 'command:python a.py'"
        );
    }
}
