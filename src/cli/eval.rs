//! `testwright eval`: grades predictions on a dataset and writes reports.

mod merge;
mod progress;
pub(super) mod report;
pub(super) mod verify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use testwright_evals::folder::Versioned;
use testwright_evals::predictions::{self, Predictions, PredictionsFile, Warning, WarningKind};
use testwright_evals::report::{GradingReport, Summary};
use testwright_evals::untrusted_text::check_name;
use testwright_evals::{Dataset, InstanceResult, harness};

use super::headings::{DATA, ENVIRONMENT, LIMITS, OUTPUT, SERVER};
use super::instance_args::InstanceArgs;
use super::output::{self, ProgressLine, escape_line};
use super::output_folder;
use super::repository_args::{SandboxArgs, load_settings};
use testwright_comparisons::grading::{GradingOptions, GradingRun, RemoteGrading, records};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;
use testwright_server::batch::Batch;
use testwright_server::grading::remote::StoreGradings;
use testwright_server::reserved_owners;

/// Timeout for cancelling the gradings that workers have not finished.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
                  testwright eval verify --dataset swt-bench-lite.parquet --out verified\n  \
                  testwright eval --dataset swt-bench-lite.parquet --predictions mine.jsonl --out results\n  \
                  testwright eval report results"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    grade: GradeArgs,
    /// Predictions: JSON lines, a JSON list or a JSON object with instance_id, model_name_or_path
    /// and model_patch; may be repeated. NAME replaces the name in a file of one model
    #[arg(long, help_heading = DATA, value_name = "[NAME=]FILE")]
    predictions: Vec<PathBuf>,
    /// Exit with 0 even if some predictions could not be graded
    #[arg(long, help_heading = OUTPUT)]
    allow_partial: bool,
    #[command(flatten)]
    workers: WorkersArgs,
}

/// Options for grading on the workers of a server.
#[derive(Debug, clap::Args)]
struct WorkersArgs {
    /// Database of a server whose workers (`testwright serve`, `testwright worker`) grade the
    /// predictions [default: grade on this machine]
    #[arg(long, help_heading = SERVER, value_name = "URL")]
    database: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write the reports again from the stored results
    Report(report::Args),
    /// Merge the results of shards into a new folder, and report on them
    Merge(merge::Args),
    /// Grade the golden tests, to check that this setup grades correctly
    Verify(Box<verify::Args>),
}

/// Options for the dataset, the sandbox and the output of a grading.
#[derive(Debug, clap::Args)]
pub(super) struct GradeArgs {
    /// Dataset in SWE-bench's format: JSON lines, a JSON list or Parquet
    #[arg(long, help_heading = DATA, value_name = "FILE", required = true)]
    pub dataset: Option<PathBuf>,
    #[command(flatten)]
    pub instances: InstanceArgs,
    /// Maximum instances graded at the same time; in a comparison, also the maximum runs that use a
    /// CPU at the same time. Fewer if memory or disk space is short [default: half the CPUs]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    pub workers: Option<usize>,
    /// URL or path template of git repositories; {owner} and {name} are substituted
    #[arg(long, help_heading = ENVIRONMENT, value_name = "TEMPLATE", default_value = harness::FORGE)]
    pub repositories: String,
    /// Maximum seconds for each test run
    #[arg(long, help_heading = LIMITS, value_name = "SECONDS", default_value_t = 900)]
    pub test_seconds: u64,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Folder for results, logs and reports. Run again with the same folder to resume; you may add
    /// inputs, such as instances, but not remove any
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR", required = true)]
    pub out: Option<PathBuf>,
    /// Print only the result as JSON, for programs
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// Function that returns the whole dataset and the selected instances.
type ReadInstances = fn(&InstanceArgs, &Path) -> Result<(Dataset, Dataset)>;

pub(super) async fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Some(Command::Report(args)) => report::run(args),
        Some(Command::Merge(args)) => merge::run(args),
        Some(Command::Verify(args)) => verify::run(args).await,
        None => grade(args).await,
    }
}

async fn grade(args: &Args) -> Result<u8> {
    let grading = args
        .grade
        .shard_run(load_settings(&args.grade.sandbox.sources(|_| {}))?)?;
    output_folder::check_has_no_comparison(&grading.out)?;
    let files = args.predictions.iter().map(|argument| split_name(argument));
    let files = files.collect::<Result<Vec<_>>>()?;
    let (sets, warnings) =
        predictions::read_named(&files, &grading.whole, &grading.dataset).map_err(records)?;
    if sets.is_empty() {
        return Err(Error::usage("grade")
            .cause("the predictions are missing")
            .hint("pass a file with --predictions, or grade the golden tests with `testwright eval verify`"));
    }
    for line in predictions::summary(&sets, &warnings) {
        output::print_status(escape_line(&line));
    }
    let workers = args.workers.remote(&grading).await?;
    let remote: Option<&dyn RemoteGrading> = workers.as_ref().map(|remote| remote as _);
    let graded = args.grade.grade(&grading, &sets, warnings, remote).await;
    let (report, results) = cancel_if_interrupted(graded, workers.as_ref()).await?;
    if args.grade.json {
        output::print_json(&Versioned::new(&report))?;
    } else {
        output::print_stdout(report::table(&report, output::stdout_columns()));
        output::print_status(escape_line(&format!("results: {}", grading.out.display())));
    }
    for note in &report.notes {
        output::print_status(escape_line(&format!("note: {note}")));
    }
    let ungraded = |summary: &Summary| summary.infrastructure + summary.not_graded;
    let ungraded: u64 = report.summary.values().map(ungraded).sum();
    if ungraded == 0 {
        return Ok(0);
    }
    let total: u64 = report.summary.values().map(|s| s.instances).sum();
    output::print_stderr(format!(
        "{ungraded} of {total} predictions could not be graded; run again with the same --out to retry"
    ));
    let mut failures = results.iter().filter_map(|r| r.infrastructure.as_ref());
    if failures.any(|failure| failure.stage == "source") {
        output::print_stderr(
            "if a repository cannot be reached, pass the folder of a clone with --repositories",
        );
    }
    Ok(if args.allow_partial { 0 } else { 3 })
}

/// Splits `NAME=FILE`. An existing file may have `=` in its own name.
fn split_name(argument: &Path) -> Result<PredictionsFile<'_>> {
    let parts = argument.to_str().and_then(|text| text.split_once('='));
    let Some((name, file)) = parts.filter(|(name, _)| !name.is_empty() && !argument.exists())
    else {
        return Ok(PredictionsFile {
            path: argument,
            name: None,
        });
    };
    check_name(name).map_err(|error| {
        Error::usage(format!("use --predictions {}", argument.display()))
            .cause(format!("the name {error}"))
    })?;
    Ok(PredictionsFile {
        path: Path::new(file),
        name: Some(name),
    })
}

/// Cancels the remaining gradings of the workers if the evaluation was interrupted.
async fn cancel_if_interrupted<T>(graded: Result<T>, workers: Option<&StoreGradings>) -> Result<T> {
    if let (Err(error), Some(workers)) = (&graded, workers)
        && error.kind == Kind::Interrupted
    {
        let cancelled = tokio::time::timeout(CANCEL_TIMEOUT, workers.cancel()).await;
        if !matches!(cancelled, Ok(Ok(()))) {
            output::print_stderr(
                "the database does not respond: gradings that wait for workers were not cancelled",
            );
        }
    }
    graded
}

impl WorkersArgs {
    async fn remote(&self, grading: &GradingRun) -> Result<Option<StoreGradings>> {
        let Some(database) = &self.database else {
            return Ok(None);
        };
        let batch = Batch::open(database, &grading.out, reserved_owners::EVAL).await?;
        Ok(Some(StoreGradings::new(batch, grading)))
    }
}

impl GradeArgs {
    pub(super) fn grading_run(&self, settings: Settings) -> Result<GradingRun> {
        self.run_with(settings, InstanceArgs::read)
    }

    /// Returns the same grading, whose shard may have no instances. It gives a folder that `eval merge` accepts.
    fn shard_run(&self, settings: Settings) -> Result<GradingRun> {
        let run = self.run_with(settings, InstanceArgs::read_shard)?;
        if run.dataset.instances.is_empty() {
            output::print_status("note: the shard has no instances");
        }
        Ok(run)
    }

    fn run_with(&self, settings: Settings, read: ReadInstances) -> Result<GradingRun> {
        let (Some(path), Some(out)) = (&self.dataset, &self.out) else {
            return Err(Error::usage("grade").cause("--dataset and --out are required"));
        };
        output_folder::check_is_folder(out)?;
        let (whole, dataset) = read(&self.instances, path)?;
        dataset.require_code_patches().map_err(|error| {
            records(error).hint("select other instances with --instances, or add the field `patch`")
        })?;
        Ok(GradingRun {
            options: GradingOptions {
                repositories: self.repositories.clone(),
                test_seconds: self.test_seconds,
                workers: self.workers,
            },
            whole,
            dataset,
            out: out.clone(),
            shared: shared_environments(&settings)?,
            settings,
        })
    }

    /// Grades the predictions and shows the progress.
    pub(super) async fn grade(
        &self,
        grading: &GradingRun,
        sets: &[Predictions],
        warnings: Vec<Warning>,
        remote: Option<&dyn RemoteGrading>,
    ) -> Result<(GradingReport, Vec<InstanceResult>)> {
        let of_sets = sets.iter().map(|set| set.by_instance.len());
        let missing = warnings.iter();
        let missing = missing.filter(|warning| warning.kind == WarningKind::Missing);
        let all = of_sets.sum::<usize>() + missing.count();
        let progress = ProgressLine::new(Some(all), self.json);
        let graded = grading.grade(sets, warnings, remote, &progress).await;
        progress.clear();
        graded
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn name_is_split_from_missing_file_only() {
        let split = |argument: &Path| {
            let file = split_name(argument).unwrap();
            (
                file.name.map(str::to_owned),
                file.path.display().to_string(),
            )
        };
        let named = split(Path::new("mine=a/b=c.jsonl"));
        assert_eq!(named, (Some("mine".to_owned()), "a/b=c.jsonl".to_owned()));
        let unnamed = split(Path::new("mine.jsonl"));
        assert_eq!(unnamed, (None, "mine.jsonl".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let existing = folder.path().join("seed=1.jsonl");
        std::fs::write(&existing, "").unwrap();
        assert_eq!(split(&existing), (None, existing.display().to_string()));
    }
}
