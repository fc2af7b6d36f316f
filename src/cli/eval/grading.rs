//! Grading: what `testwright eval` and `testwright eval verify` share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testwright_evals::Instance;
use testwright_evals::dataset::Dataset;
use testwright_evals::harness::{self, Harness, Job, Results};
use testwright_evals::predictions::{self, Prediction, Predictions, Warning};
use testwright_evals::report::{self, Report, RunMetadata};

use super::GradeArgs;
use super::errors::{records, reporting, storing};
use super::progress::GradingProgress;
use crate::cli::output::{self, single_line};
use crate::cli::place::load;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::setup::{HarnessArgs, harness, interrupted};

/// Bytes on disk that a worker may take while it builds an environment.
const DISK: u64 = 4 << 30;

pub async fn run(args: &GradeArgs, files: &[PathBuf]) -> Result<u8> {
    let grading = GradingRun::new(args)?;
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let (sets, warnings) =
        predictions::read(&paths, &grading.whole, &grading.dataset).map_err(records)?;
    if sets.is_empty() {
        return Err(Error::usage("grade")
            .cause("there are no predictions")
            .hint("name a file of predictions with --predictions, or grade the golden tests with `eval verify`"));
    }
    let (report, _) = grading.grade(&sets, warnings).await?;
    if args.json {
        output::json(&report)?;
    } else {
        output::out(super::report::table(&report));
        output::err(single_line(&format!("results: {}", grading.out.display())));
    }
    Ok(0)
}

/// A dataset, and where its predictions are graded.
pub struct GradingRun<'a> {
    args: &'a GradeArgs,
    /// With the instances that were not chosen.
    pub whole: Dataset,
    pub dataset: Dataset,
    pub out: PathBuf,
    pub settings: Settings,
}

impl<'a> GradingRun<'a> {
    pub fn new(args: &'a GradeArgs) -> Result<Self> {
        let settings = load(&args.sandbox.sources(|_| {}))?;
        Self::with_settings(args, settings)
    }

    /// The same with settings that are read already.
    pub fn with_settings(args: &'a GradeArgs, settings: Settings) -> Result<Self> {
        let (Some(path), Some(out)) = (&args.dataset, &args.out) else {
            return Err(Error::usage("grade").cause("--dataset and --out are needed"));
        };
        let whole = Dataset::read(path).map_err(records)?;
        let dataset = match &args.instances {
            Some(pattern) => whole.select(pattern).map_err(|error| {
                Error::usage(format!("choose instances of {}", path.display())).cause(error)
            })?,
            None => whole.clone(),
        };
        Ok(GradingRun {
            args,
            whole,
            dataset,
            out: out.clone(),
            settings,
        })
    }

    /// Grades, writes the reports, and gives them with the results.
    pub async fn grade(
        &self,
        sets: &[Predictions],
        warnings: Vec<Warning>,
    ) -> Result<(Report, Vec<testwright_evals::InstanceResult>)> {
        let begun = Instant::now();
        let started = jiff::Timestamp::now().to_string();
        let mut results = Results::open(&self.out).map_err(storing)?;
        let missing = missing(&self.dataset, sets);
        let jobs = jobs(&self.dataset, sets, &missing);
        asks_for_all(&jobs, &results, &self.out)?;
        let (harness, notes) = self.harness().await?;
        let all = jobs.iter().map(|job| job.predictions.len()).sum();
        let progress = GradingProgress::new(all, self.args.json);
        let all_notes = self.settings.notes.iter().chain(&notes);
        all_notes.for_each(|note| progress.note(&format!("note: {note}")));
        let workers = self.workers();
        if let Some(note) = &workers.note {
            progress.note(note);
        }
        let earlier = RunMetadata::read(&self.out).unwrap_or_default();
        let mut run = RunMetadata {
            started: earlier.started.or(Some(started)),
            seconds: earlier.seconds,
            sets: sets.iter().map(|set| set.model.clone()).collect(),
            predictions: warnings,
            ..self.metadata(&harness, &workers, notes)
        };
        run.write(&self.out).map_err(reporting)?;
        let report = |step: harness::Step| progress.step(&step);
        let graded = tokio::select! {
            graded = harness::grade_all(&harness, jobs, &mut results, workers.number, &report) => Some(graded),
            () = interrupted() => None,
        };
        progress.clear();
        run.seconds = Some(earlier.seconds.unwrap_or_default() + begun.elapsed().as_secs_f64());
        let written = run.write(&self.out).map_err(reporting);
        let Some(graded) = graded else {
            harness.backend.abandon().await?;
            written?;
            return Err(Error::interrupted("grade: interrupted")
                .hint("the same command goes on with what is there"));
        };
        graded.map_err(storing)?;
        written?;
        results.tidy().map_err(storing)?;
        let report = report::write(&self.out, &run).map_err(reporting)?;
        Ok((report, results.all().cloned().collect()))
    }

    /// What it is graded with, and lines about what killed runs had left behind.
    pub async fn harness(&self) -> Result<(Harness, Vec<String>)> {
        let given = HarnessArgs {
            repositories: self.args.repositories.clone(),
            test_time: Duration::from_secs(self.args.test_seconds),
            out: self.out.clone(),
        };
        harness(&self.settings, given).await
    }

    pub fn workers(&self) -> harness::Workers {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let asked = self.args.workers.unwrap_or(processors.div_ceil(2));
        self.fit(asked, self.settings.limits.memory.bytes())
    }

    /// As many as are asked for, as far as there is room for what each may take.
    pub fn fit(&self, asked: usize, memory_each: u64) -> harness::Workers {
        let memory = std::fs::read_to_string("/proc/meminfo")
            .ok()
            .and_then(|text| {
                let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
                let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
                Some(kilobytes * 1024)
            });
        let disk = rustix::fs::statvfs(existing(&self.settings.cache))
            .ok()
            .map(|about| about.f_bavail.saturating_mul(about.f_frsize));
        let each = [memory_each, DISK];
        harness::workers(asked, memory, disk, each)
    }

    /// What does not change while it is graded.
    fn metadata(
        &self,
        harness: &Harness,
        workers: &harness::Workers,
        remarks: Vec<String>,
    ) -> RunMetadata {
        RunMetadata {
            dataset: Some(self.dataset.path.display().to_string()),
            instances: Some(self.dataset.instances.len() as u64),
            grader: Some(harness::VERSION.to_owned()),
            workers: u32::try_from(workers.number).ok(),
            sandbox: Some(harness.backend.name().to_owned()),
            remarks: remarks.into_iter().chain(workers.note.clone()).collect(),
            ..RunMetadata::default()
        }
    }
}

/// The nearest folder that is there.
fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"))
}

/// Instances without a prediction: they count as such in every rate.
fn missing(dataset: &Dataset, sets: &[Predictions]) -> Vec<Prediction> {
    let of_set = |set: &Predictions| -> Vec<Prediction> {
        let absent = |instance: &&Instance| !set.by_instance.contains_key(&instance.instance_id);
        let none = |instance: &Instance| Prediction {
            instance_id: instance.instance_id.clone(),
            model_name_or_path: set.model.clone(),
            model_patch: None,
        };
        dataset.instances.iter().filter(absent).map(none).collect()
    };
    sets.iter().flat_map(of_set).collect()
}

fn jobs<'b>(
    dataset: &'b Dataset,
    sets: &'b [Predictions],
    missing: &'b [Prediction],
) -> Vec<Job<'b>> {
    let of_instance = |instance: &'b Instance| {
        let given = sets
            .iter()
            .filter_map(|set| set.by_instance.get(&instance.instance_id));
        let absent = missing
            .iter()
            .filter(|p| p.instance_id == instance.instance_id);
        Job {
            instance,
            predictions: given.chain(absent).collect(),
        }
    };
    dataset.instances.iter().map(of_instance).collect()
}

/// Results of a model that an error names; the rest is shown by dots.
const NAMED: usize = 3;

/// A report is on all that its folder holds: refuses where results are there that these jobs do not ask for.
fn asks_for_all(jobs: &[Job<'_>], results: &Results, out: &Path) -> Result<()> {
    let wanted: BTreeSet<(&str, &str)> = jobs
        .iter()
        .flat_map(|job| job.predictions.iter())
        .map(|p| (p.model_name_or_path.as_str(), p.instance_id.as_str()))
        .collect();
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for result in results.all() {
        let (model, instance) = (result.prediction.as_str(), result.instance_id.as_str());
        if !wanted.contains(&(model, instance)) {
            others.entry(model).or_default().push(instance);
        }
    }
    let number: usize = others.values().map(Vec::len).sum();
    if number == 0 {
        return Ok(());
    }
    let of_model = |(model, instances): (&str, Vec<&str>)| {
        let more = if instances.len() > NAMED { ", …" } else { "" };
        let named = &instances[..instances.len().min(NAMED)];
        format!("{model}: {}{more}", named.join(", "))
    };
    let models = others.len();
    let mut named: Vec<String> = others.into_iter().take(NAMED).map(of_model).collect();
    if models > NAMED {
        named.push("…".to_owned());
    }
    let results = if number == 1 { "result" } else { "results" };
    Err(Error::usage("grade")
        .cause(format!(
            "{} holds {number} {results} that this command does not ask for ({})",
            out.display(),
            named.join("; ")
        ))
        .hint("name another folder with --out, or the same instances and predictions"))
}
