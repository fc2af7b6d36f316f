//! `testwright select`: selects candidate code patches with generated tests.

mod expand;
mod old_code;
mod patch_files;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use testwright_evals::folder::{Versioned, pretty_json, write_below};
use testwright_evals::harness::{self, SelectionJob};
use testwright_evals::predictions::{Prediction, Predictions};
use testwright_evals::selection::{
    Choice, KeepRule, PatchRank, SelectionResult, SelectionSummary, choices, rankings, summaries,
    without_existing_tests,
};

use super::eval::GradeArgs;
use super::headings::DATA;
use super::output::{self, ProgressLine, escape_line};
use old_code::OldCodeArgs;
use report::{NO_EXISTING_TESTS, format_result, format_selection};
use testwright_agent::setup::or_interrupted;
use testwright_comparisons::check::CheckRecord;
use testwright_comparisons::grading::GradingRun;
use testwright_comparisons::record_file::{RecordFile, read_document};
use testwright_comparisons::selection::write_tables;
use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("dataset", |dataset| dataset.required(false).required_unless_present("repo")),
    after_help = "Examples:\n  testwright select --repo path/to/repository --tests test.patch \\\n      \
                  --patches p1.patch p2.patch --out selected\n  \
                  testwright select --dataset swt-bench-lite.parquet --tests tests.jsonl \\\n      \
                  --patches patches.jsonl --out selected"
)]
pub(super) struct Args {
    #[command(flatten)]
    old_code: OldCodeArgs,
    #[command(flatten)]
    grade: GradeArgs,
    /// Generated tests: patches (.patch or .diff), folders of patches, or files in the format of
    /// predictions. Each patch is a set of tests, named after its file
    #[arg(long, help_heading = DATA, value_name = "FILE", required = true, num_args = 1..)]
    tests: Vec<PathBuf>,
    /// Candidate code patches, in the same formats
    #[arg(long, help_heading = DATA, value_name = "FILE", required = true, num_args = 1..)]
    patches: Vec<PathBuf>,
    /// Rule by which a patch is kept: `any` if it passes at least one test that fails on the old
    /// code, `all` if it passes all of them
    #[arg(long, help_heading = DATA, value_name = "RULE", value_parser = ["any", "all"], default_value = "any")]
    rule: String,
    /// Results of `testwright check --dataset` (checks.jsonl). In the ranking, each test weighs as
    /// much as the estimated probability that its set is right; sets that were not checked weigh 1
    #[arg(long, help_heading = DATA, value_name = "FILE")]
    checks: Option<PathBuf>,
}

/// Content of `selection.json`.
#[derive(Serialize, Deserialize)]
struct Selection {
    summaries: Vec<SelectionSummary>,
    /// Patches that CodeT selects, for instances with several patches.
    choices: Vec<Choice>,
    /// Patches of each instance by all sets of tests, best first.
    #[serde(default)]
    ranking: Vec<PatchRank>,
    results: Vec<SelectionResult>,
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    let grading = args.old_code.grading_run(&args.grade).await?;
    let read = |files: &[PathBuf]| patch_files::read(files, &grading);
    let (tests, patches) = (read(&args.tests)?, read(&args.patches)?);
    let of = |sets: &'_ [Predictions], instance: &str| -> Vec<Prediction> {
        let matches = sets.iter().filter_map(|set| set.by_instance.get(instance));
        matches.cloned().collect()
    };
    let candidates: Vec<_> = grading
        .dataset
        .instances
        .iter()
        .map(|instance| {
            let id = &instance.instance_id;
            (instance, of(&tests, id), of(&patches, id))
        })
        .filter(|(_, tests, patches)| !tests.is_empty() && !patches.is_empty())
        .collect();
    let jobs: Vec<SelectionJob<'_>> = candidates
        .iter()
        .map(|(instance, tests, patches)| SelectionJob {
            instance,
            tests: tests.iter().collect(),
            patches: patches.iter().collect(),
        })
        .collect();
    if jobs.is_empty() {
        return Err(Error::usage("select patches")
            .cause("no instance of the dataset has both tests and patches")
            .hint("compare the instance ids in the files of --tests and --patches"));
    }
    let probabilities = match &args.checks {
        Some(path) => read_probabilities(path, &jobs)?,
        None => BTreeMap::new(),
    };
    let rule = match args.rule.as_str() {
        "all" => KeepRule::All,
        _ => KeepRule::Any,
    };
    let mut results = judge_patches(args, &grading, jobs).await?;
    for result in &mut results {
        let key = (result.instance_id.clone(), result.tests.clone());
        result.probability = probabilities.get(&key).copied();
        result.rule = rule;
    }
    let selection = Selection {
        summaries: summaries(&results),
        choices: choices(&results),
        ranking: rankings(&results),
        results,
    };
    write(&grading.out, &selection)?;
    let mut facts = args.old_code.facts(&grading.dataset);
    let unwatched = without_existing_tests(&selection.results);
    if !unwatched.is_empty() {
        let instances = unwatched.join(", ");
        facts.push(("Note", format!("{instances}: {NO_EXISTING_TESTS}")));
    }
    write_tables(&grading.out, &facts, &selection.results).map_err(|error| {
        Error::io(
            format!("write the tables in {}", grading.out.display()),
            &error,
        )
    })?;
    if args.grade.json {
        output::print_json(&Versioned::new(&selection))?;
    } else {
        output::print_stdout(format_selection(&selection, output::stdout_columns()));
        let path = grading.out.join(FILE);
        output::print_status(escape_line(&format!("results: {}", path.display())));
    }
    if let Some(reason) = untried_reason(&selection.results) {
        output::print_stderr(escape_line(&format!("no patch could be tried: {reason}")));
        return Ok(3);
    }
    let failed = selection.summaries.iter().any(|s| s.infrastructure > 0);
    Ok(if failed { 3 } else { 0 })
}

/// Returns why the first patch could not be tried, if none could.
fn untried_reason(results: &[SelectionResult]) -> Option<&str> {
    match results.iter().all(|result| result.not_tried.is_some()) {
        true => results.first()?.not_tried.as_deref(),
        false => None,
    }
}

const FILE: &str = "selection.json";

/// Reads the probabilities that test sets are right, by instance and name of the set, from the results of
/// `testwright check`. Results for other predictions are ignored.
fn read_probabilities(
    path: &Path,
    jobs: &[SelectionJob<'_>],
) -> Result<BTreeMap<(String, String), f64>> {
    let records = RecordFile::<CheckRecord>::read(path)?;
    let mut probabilities = BTreeMap::new();
    for tests in jobs.iter().flat_map(|job| &job.tests) {
        let key = (tests.instance_id.clone(), tests.model_name_or_path.clone());
        let record = records.get(&key);
        if let Some(evidence) = record.and_then(|record| record.evidence.as_ref()) {
            // Someone may have edited the file.
            probabilities.insert(key, evidence.probability.clamp(0.0, 1.0));
        }
    }
    if probabilities.is_empty() {
        let cause = match path.is_file() {
            true => "it has no result for any of the tests",
            false => "the file does not exist",
        };
        return Err(Error::usage(format!("read {}", path.display()))
            .cause(cause)
            .hint(
                "check the same tests with `testwright check --dataset`, and pass its checks.jsonl",
            ));
    }
    Ok(probabilities)
}

async fn judge_patches(
    args: &Args,
    grading: &GradingRun,
    jobs: Vec<SelectionJob<'_>>,
) -> Result<Vec<SelectionResult>> {
    let (harness, notes) = grading.harness().await?;
    let all = jobs
        .iter()
        .map(|job| job.tests.len() * job.patches.len())
        .sum::<usize>();
    let live = ProgressLine::new(Some(all), args.grade.json);
    for note in grading.settings.notes.iter().chain(&notes) {
        live.print_note(note);
    }
    let progress = |step: harness::Step| match step {
        harness::Step::Building { instance, step } => live.set_task(&instance, &step),
        harness::Step::Grading {
            instance,
            prediction,
        } => live.set_task(&instance, &format!("running the tests of {prediction}")),
        harness::Step::Graded { .. } => {}
    };
    let results = Mutex::new(Vec::new());
    let done = |result: SelectionResult| {
        live.end_task(&result.instance_id);
        live.advance(true);
        live.print_row(&format_result(&result));
        lock(&results).push(result);
    };
    let workers = grading.workers().number;
    let judging = async {
        harness::select_all(&harness, jobs, workers, &progress, &done).await;
        Ok(())
    };
    let ended = or_interrupted(&*harness.backend, judging).await;
    live.clear();
    ended?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by(|a, b| {
        let name = |r: &SelectionResult| (r.instance_id.clone(), r.tests.clone(), r.patch.clone());
        name(a).cmp(&name(b))
    });
    Ok(results)
}

fn write(out: &Path, selection: &Selection) -> Result<()> {
    let path = out.join(FILE);
    let failed = |error: std::io::Error| Error::io(format!("write {}", path.display()), &error);
    let text = pretty_json(&Versioned::new(selection)).map_err(|e| failed(e.into()))?;
    write_below(out, FILE, &text).map_err(failed)
}

/// Reads the report of a folder that this command wrote; `None` if it has none.
pub(super) fn read(folder: &Path) -> Result<Option<String>> {
    let selection: Option<Selection> = read_document(&folder.join(FILE), None)?;
    Ok(selection.map(|selection| format_selection(&selection, output::stdout_columns())))
}
