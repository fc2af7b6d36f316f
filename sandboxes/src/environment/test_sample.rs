//! The quality of an environment, measured by its tests: all are collected, and a sample runs as tools would run it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::log::Log;
use super::project_tests;
use super::smoke_test::{self, Request, SmokeTestReport, Test};
use super::steps::Steps;
use super::{BuildSettings, Environment, Progress};
use crate::recipe;
use crate::repository::{Source, Tree};
use crate::sandbox::{Backend, Limits, Result};
use crate::starting::retry_start;

const STEP: &str = "run a sample of the tests";

/// Additional seconds for collecting all tests.
const COLLECT_SECONDS: u64 = 300;

/// Seconds that remain of them to report a collection that hangs.
const MARGIN_SECONDS: u64 = 60;

/// The size and limits of a sample.
#[derive(Debug, Clone)]
pub struct SampleSettings {
    /// Files to collect; empty for all.
    pub files: Vec<String>,
    /// Maximum number of tests.
    pub tests: usize,
    /// Seed of the draw. The same seed draws the same tests on every machine.
    pub seed: u64,
    /// Maximum seconds for one test.
    pub test_seconds: u64,
    /// Seconds after which no further test starts.
    pub seconds: u64,
    /// Resource limits of the sandbox that runs the sample.
    pub limits: Limits,
}

/// The results of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestSample {
    /// Number of tests that pytest collects.
    pub collected: u64,
    /// Number of files that contain the collected tests.
    pub files: usize,
    /// Files or folders that cannot be collected, each with the reason.
    pub broken: Vec<(String, String)>,
    /// The tests of the sample that were run, in that order.
    pub tests: Vec<Test>,
    /// The reason why the sample was not run completely.
    pub cut_short: Option<String>,
}

impl TestSample {
    /// Returns the numbers of tests by outcome, such as `3 passed, 1 failed`; empty if none ran.
    pub fn counts(&self) -> String {
        let outcomes = ["passed", "failed", "error", "skipped", "xfailed"];
        let counts = outcomes.map(|outcome| (self.count(outcome), outcome));
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, outcome)| format!("{count} {outcome}"))
            .collect();
        counts.join(", ")
    }

    /// Returns the number of tests with an outcome: `passed`, `failed`, `error`, `skipped` or `xfailed`.
    pub fn count(&self, outcome: &str) -> usize {
        let of_it = |test: &&Test| test.outcome == outcome;
        self.tests.iter().filter(of_it).count()
    }
}

/// Collects all tests and runs a sample of them. Returns `None` if the tests are not run by pytest.
///
/// # Errors
///
/// Fails with kind `Build` if pytest does not finish in time. Also fails if the sandbox, its services or the log cannot
/// be set up, a command before the tests fails, or the tree cannot be read.
pub async fn sample_tests(
    backend: &dyn Backend,
    environment: &Environment,
    source: &Source,
    build: &BuildSettings,
    settings: &SampleSettings,
    progress: Progress<'_>,
) -> Result<Option<TestSample>> {
    if environment.recipe.runner.kind != "pytest" {
        return Ok(None);
    }
    let name = format!("{}-tests.log", environment.saved);
    let log = Log::create(build.cache.join("logs").join(name), Vec::new())?;
    let spec = environment.tool_spec(settings.limits.clone(), "sample");
    let sandbox = retry_start(|| backend.start(&spec)).await?;
    let steps = Steps {
        sandbox: sandbox.as_ref(),
        log: &log,
        progress,
        env: &environment.env,
        deadline: Duration::from_secs(settings.seconds + settings.test_seconds + COLLECT_SECONDS),
        egress: None,
    };
    let done = run(&steps, environment, source, settings).await;
    let stopped = sandbox.stop().await;
    let done = done?;
    stopped?;
    Ok(Some(done))
}

async fn run(
    steps: &Steps<'_>,
    environment: &Environment,
    source: &Source,
    settings: &SampleSettings,
) -> Result<TestSample> {
    environment.prepare_tests(steps.sandbox, &[]).await?;
    let python = environment.python_in(&steps.sandbox.info().paths);
    let request = Request {
        files: settings.files.clone(),
        options: environment.recipe.runner.options.clone(),
        sample: Some(settings.tests),
        seed: settings.seed,
        seconds: Some(settings.seconds),
        test_seconds: Some(settings.test_seconds),
        // The script reports where a collection hangs, which it must do before the step times out.
        collect_seconds: Some(settings.seconds + COLLECT_SECONDS - MARGIN_SECONDS),
        ..Request::default()
    };
    let python = python.to_string_lossy();
    let (projects, tree) = (&environment.recipe.projects, source.tree()?);
    let mut report = project_tests::run(steps, STEP, &python, &request, projects, &tree).await?;
    // A single file can keep pytest from collecting all others.
    for depth in 1..=2 {
        let is_done = report.stopped || !settings.files.is_empty();
        if is_done || !report.collected.is_empty() {
            break;
        }
        if let Some(folder) = fullest_folder(&tree, projects, depth)? {
            let step = format!("{STEP} in {folder}");
            let files = vec![folder];
            let request = Request {
                files,
                ..request.clone()
            };
            report = project_tests::run(steps, &step, &python, &request, projects, &tree).await?;
        }
    }
    Ok(TestSample::from(&report))
}

impl From<&SmokeTestReport> for TestSample {
    fn from(report: &SmokeTestReport) -> Self {
        let place = match report.place.as_str() {
            "" => String::new(),
            place => format!(" at {place}"),
        };
        let cut_short = match (report.stopped, report.ended) {
            (true, _) => Some(match report.limit {
                Some(seconds) => format!("the time limit of {seconds} s was reached{place}"),
                None => format!("the time limit was reached{place}"),
            }),
            (false, false) => {
                let code = report.printed.code;
                let printed = report.printed_lines();
                let last = printed.text.lines().rfind(|line| !line.trim().is_empty());
                let last = last.unwrap_or_default();
                Some(format!("pytest ended with exit code {code}: {last}"))
            }
            (false, true) => None,
        };
        let broken = report.broken.iter();
        TestSample {
            collected: report.collected.values().sum(),
            files: report.collected.len(),
            broken: broken
                .map(|b| (b.file.clone(), smoke_test::reason(&b.text)))
                .collect(),
            tests: report.tests.clone(),
            cut_short,
        }
    }
}

/// Returns the folder with the most test files below it, among those that are `depth` levels below the root.
fn fullest_folder(tree: &Tree, projects: &[String], depth: usize) -> Result<Option<String>> {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for file in recipe::test_files(tree, projects)? {
        let parts: Vec<&str> = file.split('/').collect();
        if parts.len() > depth {
            *folders.entry(parts[..depth].join("/")).or_default() += 1;
        }
    }
    let fullest = folders.into_iter().max_by_key(|(_, files)| *files);
    Ok(fullest.map(|(folder, _)| folder))
}
