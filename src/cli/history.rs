//! `testwright history`: runs an accepted test on the releases and commits of its repository.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use testwright_evals::folder::write_file;
use testwright_sandboxes::plain_file;
use testwright_sandboxes::private;

use super::apply::newest_accepted;
use super::headings::{ISSUE, LIMITS, OUTPUT};
use super::output::{self, ProgressLine, escape_line};
use super::output_folder;
use super::repository_args::{RepositoryArgs, patch_of_project};
use super::show::read_ended;
use testwright_agent::agent::{Outcome, Progress};
use testwright_agent::history::{
    AcceptedTests, HistoryEvent, HistoryOptions, HistoryReport, Part, investigate,
};
use testwright_agent::setup::Setup;
use testwright_agent::trajectory::Started;
use testwright_comparisons::record_file::read_document;
use testwright_config::error::{Error, Kind, Result};
use testwright_config::lock::lock;
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  testwright history testwright-runs/2026-01-31T120000-slugs\n  \
                  testwright history RUN --branch refs/pull/12/head --only fixed\n  \
                  testwright history --patch tests.patch --repo path/to/repository --commit v2.3.0 --out history"
)]
pub(super) struct Args {
    /// Folder of a run [default: the newest run in testwright-runs that accepted a test]
    #[arg(value_name = "RUN", conflicts_with = "patch")]
    dir: Option<PathBuf>,
    /// Use the failing tests of this patch for --commit instead of a run
    #[arg(long, help_heading = ISSUE, value_name = "FILE", requires = "out")]
    patch: Option<PathBuf>,
    #[command(flatten)]
    place: RepositoryArgs,
    /// Branch (or another revision) in which to search the fix [default: the default branch of the
    /// remote `origin`, otherwise main or master, otherwise HEAD]
    #[arg(long, help_heading = ISSUE, value_name = "REV")]
    branch: Option<String>,
    /// Include pre-releases
    #[arg(long, help_heading = ISSUE)]
    pre_releases: bool,
    /// Run the tests on every release [default: only those that a bisection needs]
    #[arg(long, help_heading = LIMITS)]
    all_tags: bool,
    /// Maximum number of commits on which the tests run
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 40)]
    max_commits: usize,
    /// Make only this part of the search: releases, the introduction of the bug, or its fix
    #[arg(long, help_heading = LIMITS, value_name = "PART")]
    only: Option<Only>,
    /// Folder for history.json and history.md [default: RUN]
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print history.json
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Only {
    Tags,
    Introduced,
    Fixed,
}

const REPORT: &str = "history.json";
const PAGE: &str = "history.md";
/// Maximum bytes of a patch.
const MAX_PATCH_BYTES: u64 = 32 << 20;

pub(super) async fn run(args: &Args) -> Result<u8> {
    let dir = match (&args.dir, &args.patch) {
        (None, None) => Some(newest_accepted()?),
        (dir, _) => dir.clone(),
    };
    let recorded = dir.as_deref().map(accepted_run).transpose()?;
    let started = recorded.as_ref().map(|(started, _)| &**started);
    let place = args.place.or_recorded(
        started.and_then(|started| started.settings["repository"].as_str()),
        started.and_then(|started| started.commit.as_deref()),
    );
    let settings = settings(&place, started)?;
    let Some(out) = args.out.as_deref().or(dir.as_deref()) else {
        return Err(Error::usage("write the history").hint("pass a folder with --out"));
    };
    output_folder::check_is_folder(out)?;
    private::create(out).map_err(|error| Error::io(format!("create {}", out.display()), &error))?;
    let earlier = read_report(out)?;

    let progress = Arc::new(HistoryProgress::new(args.json));
    settings.notes.iter().for_each(|note| progress.note(note));
    let setup = Setup::new(&settings, shared_environments(&settings)?, progress.clone())
        .await?
        .for_issue(started.map(|started| &started.issue))
        .with_recorded_repair(started.and_then(|started| started.environment_repair.as_ref()))?;
    let place = place.repository_location(None);
    let tests = match (recorded, &args.patch) {
        (Some((_, tests)), _) => AcceptedTests {
            patch: patch_of_project(&tests.patch, &place.location),
            ..tests
        },
        (None, patch) => {
            let patch = read_patch(patch.as_deref().unwrap_or(Path::new("")))?;
            let patch = patch_of_project(&patch, &place.location);
            progress.set_current("running the tests of the patch");
            AcceptedTests::from_patch(&setup, &place, patch).await?
        }
    };
    let options = HistoryOptions {
        branch: args.branch.clone(),
        pre_releases: args.pre_releases,
        all_tags: args.all_tags,
        max_commits: args.max_commits,
        only: args.only.map(Part::from),
    };
    let watcher = |event: HistoryEvent<'_>| progress.watch(&event, out);
    let report = investigate(
        &setup, &settings, &place, &tests, &options, earlier, &watcher,
    );
    let report = report.await;
    progress.live.clear();
    let report = report.map_err(|error| match error.kind {
        Kind::Interrupted => error.hint("run the same command again to resume"),
        _ => error,
    })?;
    write_report(out, &report)?;
    if args.json {
        output::print_json(&report)?;
    } else {
        let lines = [report.summary.clone(), String::new()].into_iter();
        for line in lines.chain(report.table()) {
            output::print_stdout(format!("{}\n", escape_line(&line)));
        }
        let page = out.join(PAGE);
        output::print_status(escape_line(&format!("report: {}", page.display())));
    }
    Ok(0)
}

/// Returns the settings of the recorded run, if there is one, with the flags of this command.
pub(super) fn settings(place: &RepositoryArgs, started: Option<&Started>) -> Result<Settings> {
    let recorded = |name: &str| {
        let value = &started?.settings[name];
        value.as_str().map(str::to_owned)
    };
    let mut settings = place.settings(|flags| {
        for name in ["sandbox", "image", "dockerfile", "python", "project"] {
            flags.set(&format!("run.{name}"), recorded(name));
        }
    })?;
    if let Some(started) = started
        && settings.additions.is_empty()
    {
        // Recordings of earlier versions lack them.
        let additions = serde_json::from_value(started.settings["additions"].clone());
        settings.additions = additions.unwrap_or_default();
    }
    Ok(settings)
}

/// Reads a run that ended with an accepted test.
fn accepted_run(folder: &Path) -> Result<(Box<Started>, AcceptedTests)> {
    let (started, outcome) = read_ended(folder)?;
    let unusable = |cause: String| {
        Error::usage(format!("use the test of {}", folder.display()))
            .cause(cause)
            .hint("pass the folder of a run with an accepted test")
    };
    match outcome {
        _ if started.commit.is_none() => Err(unusable(
            "the code of the run is not a commit of a git repository".to_owned(),
        )),
        Outcome::Accepted { patch, evidence } if !evidence.tests.is_empty() => {
            let failing = evidence.tests;
            Ok((started, AcceptedTests { patch, failing }))
        }
        Outcome::Accepted { .. } => Err(unusable("its test does not fail".to_owned())),
        outcome => Err(unusable(outcome.summary())),
    }
}

fn read_patch(path: &Path) -> Result<String> {
    let read = plain_file::read_user_file(path, MAX_PATCH_BYTES);
    let failed = |error: std::io::Error| {
        Error::usage(format!("read {}", path.display()))
            .cause(error)
            .hint("pass a unified diff, as `git diff` prints it")
    };
    let text = read.map(String::from_utf8).map_err(failed)?;
    text.map_err(|error| failed(std::io::Error::new(ErrorKind::InvalidData, error)))
}

/// Reads the report of an earlier, perhaps interrupted command.
fn read_report(out: &Path) -> Result<Option<HistoryReport>> {
    let hint = "remove the file, or pass another folder with --out";
    read_document(&out.join(REPORT), Some(hint))
}

fn write_report(out: &Path, report: &HistoryReport) -> Result<()> {
    let json = serde_json::to_string_pretty(report).unwrap_or_default() + "\n";
    for (name, text) in [(REPORT, json), (PAGE, report.markdown())] {
        let path = out.join(name);
        write_file(&path, text.as_bytes())
            .map_err(|error| Error::io(format!("write {}", path.display()), &error))?;
    }
    Ok(())
}

impl From<Only> for Part {
    fn from(only: Only) -> Part {
        match only {
            Only::Tags => Part::Tags,
            Only::Introduced => Part::Introduced,
            Only::Fixed => Part::Fixed,
        }
    }
}

/// Progress of the search: a live line, and a line for each answer.
struct HistoryProgress {
    live: ProgressLine,
    /// Commit that is being asked.
    current: Mutex<String>,
    /// Notes that were shown. Environments of several commits often have the same.
    notes: Mutex<BTreeSet<String>>,
}

impl HistoryProgress {
    fn new(quiet: bool) -> HistoryProgress {
        HistoryProgress {
            live: ProgressLine::new(None, quiet),
            current: Mutex::default(),
            notes: Mutex::default(),
        }
    }

    fn set_current(&self, text: &str) {
        text.clone_into(&mut lock(&self.current));
        self.live.set_status(text);
    }

    /// Shows an event, and stores the report after each answer.
    fn watch(&self, event: &HistoryEvent<'_>, out: &Path) -> Result<()> {
        match event {
            HistoryEvent::Probing {
                number,
                expected,
                name,
            } => self.set_current(&format!("{number} of ~{expected}: {name}")),
            HistoryEvent::Answered { entry, report } => {
                write_report(out, report)?;
                let (point, answer) = (&entry.point, &entry.answer);
                let verdict = answer.verdict.as_str();
                let line = format!("{:<14} {verdict:<12} {}", point.label(), answer.reason);
                self.live.print_row(line.trim_end());
            }
        }
        Ok(())
    }
}

impl Progress for HistoryProgress {
    fn phase(&self, name: &str, detail: &str) {
        let current = lock(&self.current);
        self.live
            .set_status(&format!("{current} ({name}: {detail})"));
    }

    fn note(&self, text: &str) {
        if lock(&self.notes).insert(text.to_owned()) {
            let current = lock(&self.current);
            let commit = current.split_once(": ").map(|(_, commit)| commit);
            let commit = commit.map_or(String::new(), |commit| format!("{commit}: "));
            self.live.print_note(&format!("{commit}{text}"));
        }
    }
}
