//! Ranks candidate code patches by generated tests (SWT-bench §5.3, Otter §6.7): every test of a prediction runs on
//! every patch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use futures::future::join_all;
use testwright_sandboxes::mutex::lock;
use testwright_sandboxes::repository::Files;
use testwright_tools::outcomes::file_of;
use testwright_tools::outcomes::report::{Outcome, Place, TestReport, belongs_to_test};

use super::changed_tests::{ChangedTests, PASSES_CHANGED_TEST};
use super::code_patch::CodePatch;
use super::contribution::Contribution;
use super::instance::{CodeState, PreparedInstance, requires_reinstallation};
use super::outcome_pairs::{all_still_pass, pairs, unmatched_parameters};
use super::progress::{Progress, Step};
use super::sentinel::CheckedRun;
use super::timeline::{Activity, RunSlots, Timeline};
use super::{GradingFailure, Harness, at_stage};
use crate::dataset::Instance;
use crate::predictions::Prediction;
use crate::selection::SelectionResult;

/// An instance with tests, and with the patches to rank.
pub struct SelectionJob<'a> {
    /// The instance, with its golden tests if it has them.
    pub instance: &'a Instance,
    /// Predictions with tests, one per set of tests.
    pub tests: Vec<&'a Prediction>,
    /// Predictions with code patches to rank.
    pub patches: Vec<&'a Prediction>,
}

/// Runs all jobs, and passes each result to `done` as soon as it is available.
pub async fn select_all(
    harness: &Harness,
    jobs: Vec<SelectionJob<'_>>,
    workers: usize,
    progress: Progress<'_>,
    done: &(dyn Fn(SelectionResult) + Sync),
) {
    let slots = RunSlots::new(workers);
    let waiting = Mutex::new(VecDeque::from(jobs));
    let next = || lock(&waiting).pop_front();
    let work = || async {
        while let Some(job) = next() {
            harness.rank_patches(&job, &slots, progress, done).await;
        }
    };
    join_all((0..workers.max(1)).map(|_| work())).await;
}

/// `PYTHONHASHSEED` of the runs that decide, and of the run that confirms regressions.
const SEEDS: [u32; 2] = [0, 1];

/// A candidate patch, prepared for tests.
struct Candidate<'a> {
    patch: &'a Prediction,
    /// The patched code, or the reason why the patch cannot be tried.
    code: Result<CodeState, String>,
    /// Whether the patch resolves the issue; `None` if no golden test decides.
    resolves: Option<bool>,
    /// Why its outcomes of the golden tests cannot be trusted.
    forged: Option<&'static str>,
    /// Files that do not count, as `PATH: REASON`.
    left_out: Vec<String>,
    /// Code that satisfies assertions whatever they check, or that uses the test runner.
    suspicions: Vec<String>,
}

/// Generated tests, and the ones that fail on the old code.
struct GeneratedTests<'a> {
    prediction: &'a Prediction,
    files: Files,
    /// Contributed tests, without parameters.
    contributed: Vec<String>,
    /// Files or tests to run.
    ids: Vec<String>,
    old_code: CodeState,
    /// Run on the old code.
    old: CheckedRun,
    /// Contributed tests that fail on the old code.
    failing: BTreeSet<String>,
    /// Reason why the tests cannot be run.
    unusable: Option<String>,
}

impl GeneratedTests<'_> {
    /// Returns the outcomes of the contributed tests in a run.
    fn outcomes(&self, report: &TestReport) -> BTreeMap<String, Outcome> {
        pairs(report, report, &self.contributed)
            .into_iter()
            .filter(|(id, _)| self.contributes(id))
            .map(|(id, pair)| (id, pair.old))
            .collect()
    }

    fn contributes(&self, id: &str) -> bool {
        let mut contributed = self.contributed.iter();
        contributed.any(|test| belongs_to_test(id, test))
    }

    /// Returns the tests that pass on the old code and not in this run. Parameters with a new name do not count.
    fn regressions(&self, report: &TestReport) -> Vec<String> {
        let unmatched = unmatched_parameters(&self.old.report, report);
        pairs(&self.old.report, report, &[])
            .into_iter()
            .filter(|(id, pair)| {
                pair.old == Outcome::Passed
                    && (fails(pair.new) || pair.new == Outcome::Absent)
                    && !unmatched.contains(id)
            })
            .map(|(id, _)| id)
            .collect()
    }

    /// Returns whether no other test ran on the old code.
    fn ran_alone(&self) -> bool {
        let mut ran = self.old.report.tests.iter();
        ran.all(|test| self.contributes(&test.id))
    }

    /// Returns why tests that are collected on the old code are not in this run.
    fn collection_failure(&self, report: &TestReport) -> Option<String> {
        let is_old = |id: &str| {
            let mut old = self.old.report.collection_errors.iter();
            old.any(|error| error.id == id)
        };
        let mut errors = report.collection_errors.iter();
        let failure = &errors.find(|error| !is_old(&error.id))?.failure;
        let mut reason = format!("the tests cannot be collected: {}", failure.exception);
        // A syntax error has no frame of its own, but its message names the file.
        let origin = failure.origin();
        if let Some(frame) = origin.filter(|frame| frame.place == Place::Source) {
            reason.push_str(&format!(" in {}:{}", frame.file, frame.line));
        }
        let message = failure.message.lines().next();
        if let Some(message) = message.filter(|line| !line.is_empty()) {
            reason.push_str(&format!(": {message}"));
        }
        Some(reason)
    }
}

impl Harness {
    async fn rank_patches(
        &self,
        job: &SelectionJob<'_>,
        slots: &RunSlots,
        progress: Progress<'_>,
        done: &(dyn Fn(SelectionResult) + Sync),
    ) {
        let timeline = Timeline::new(slots);
        let prepared = self.candidates(job, &timeline, progress).await;
        for tests in &job.tests {
            let begins = || {
                progress(Step::Grading {
                    instance: job.instance.instance_id.clone(),
                    prediction: tests.model_name_or_path.clone(),
                });
            };
            begins();
            let mut sorting = match &prepared {
                Ok((prepared, candidates)) => self
                    .failing_tests(prepared, tests, &timeline)
                    .await
                    .map(|generated| (generated, candidates)),
                Err(failed) => Err(failed.clone()),
            };
            for (at, patch) in job.patches.iter().enumerate() {
                begins();
                let sorted = match &sorting {
                    Ok((generated, candidates)) => {
                        self.sort(generated, &candidates[at], &timeline).await
                    }
                    Err(failed) => Err(failed.clone()),
                };
                done(match sorted {
                    Ok(result) => result,
                    Err(failed) => {
                        let result = SelectionResult {
                            infrastructure: Some(failed.to_string()),
                            shortage: failed.shortage,
                            ..SelectionResult::new(tests, patch)
                        };
                        // The machine failed, so it is not tried with the other patches.
                        sorting = Err(failed);
                        result
                    }
                });
            }
        }
    }

    async fn candidates<'a>(
        &self,
        job: &SelectionJob<'a>,
        timeline: &Timeline<'_>,
        progress: Progress<'_>,
    ) -> Result<(PreparedInstance, Vec<Candidate<'a>>), GradingFailure> {
        let prepare = self.prepare(job.instance, progress);
        let prepared = timeline.spend(Activity::Build, prepare).await?;
        let mut candidates = Vec::new();
        for patch in &job.patches {
            let candidate = self.candidate(job.instance, &prepared, patch, timeline, progress);
            candidates.push(candidate.await?);
        }
        Ok((prepared, candidates))
    }

    async fn candidate<'a>(
        &self,
        instance: &Instance,
        prepared: &PreparedInstance,
        patch: &'a Prediction,
        timeline: &Timeline<'_>,
        progress: Progress<'_>,
    ) -> Result<Candidate<'a>, GradingFailure> {
        let without = |why: String| Candidate {
            patch,
            code: Err(why),
            resolves: prepared.golden.as_ref().map(|_| false),
            forged: None,
            left_out: Vec::new(),
            suspicions: Vec::new(),
        };
        let Some(text) = &patch.model_patch else {
            return Ok(without("the patch is missing".to_owned()));
        };
        let applied = match prepared.apply(text).map_err(at_stage("source"))? {
            Ok(applied) => applied,
            Err(why) => {
                return Ok(without(format!(
                    "the patch does not apply: {}",
                    on_one_line(&why)
                )));
            }
        };
        let change =
            CodePatch::from_patch(applied, &prepared.tree, &prepared.layout, &prepared.fix)
                .map_err(at_stage("source"))?;
        if let Some(why) = change.reason_without_code() {
            return Ok(Candidate {
                left_out: change.left_out,
                ..without(why)
            });
        }
        let mut paths = change.files.keys();
        let code = if paths.any(|path| requires_reinstallation(path)) {
            let environment = self.environment_with(instance, &change.files, progress);
            CodeState::new(environment.await?, Files::new())
        } else {
            let mut files = prepared.old.files.clone();
            files.extend(change.files);
            CodeState::new(prepared.old.environment.clone(), files)
        };
        let (resolves, forged) = self.golden_verdict(prepared, &code, timeline).await?;
        Ok(Candidate {
            patch,
            code: Ok(code),
            resolves,
            forged,
            left_out: change.left_out,
            suspicions: change.suspicions,
        })
    }

    /// Returns whether the patch passes every test in the golden tests' files that passes with the golden patch, and
    /// why these outcomes are forged, if they are. `None` without golden tests that pass with the golden patch.
    async fn golden_verdict(
        &self,
        prepared: &PreparedInstance,
        code: &CodeState,
        timeline: &Timeline<'_>,
    ) -> Result<(Option<bool>, Option<&'static str>), GradingFailure> {
        let Some((golden, tests)) = &prepared.golden else {
            return Ok((None, None));
        };
        let (files, ids) = (&golden.files, &tests.files);
        let expected = self.run_with_sentinel(&prepared.new, files, ids, SEEDS[0], timeline);
        let expected = expected.await?;
        let now = self.run_with_sentinel(code, files, ids, SEEDS[0], timeline);
        let now = now.await?;
        let forged = now.forgery(&expected);
        let pairs = pairs(&expected.report, &now.report, &tests.tests);
        let resolves = all_still_pass(&pairs).map(|all| all && forged.is_none());
        Ok((resolves, forged))
    }

    async fn failing_tests<'a>(
        &self,
        prepared: &PreparedInstance,
        prediction: &'a Prediction,
        timeline: &Timeline<'_>,
    ) -> Result<GeneratedTests<'a>, GradingFailure> {
        let mut generated = GeneratedTests {
            prediction,
            files: Files::new(),
            contributed: Vec::new(),
            ids: Vec::new(),
            old_code: prepared.old.clone(),
            old: CheckedRun::default(),
            failing: BTreeSet::new(),
            unusable: None,
        };
        let Some(text) = &prediction.model_patch else {
            generated.unusable = Some("the tests are missing".to_owned());
            return Ok(generated);
        };
        let applied = match prepared.apply(text).map_err(at_stage("source"))? {
            Ok(applied) => applied,
            Err(why) => {
                generated.unusable = Some(format!("the tests do not apply: {}", on_one_line(&why)));
                return Ok(generated);
            }
        };
        let tests =
            Contribution::from_patch(&applied, &prepared.fix, &prepared.tree, &prepared.layout)
                .map_err(at_stage("source"))?;
        generated.ids = whole_files(prepared, &tests);
        generated.files = applied.files;
        generated.contributed = tests.tests;
        let (old, files) = (&prepared.old, &generated.files);
        let mut ran = self
            .run_with_sentinel(old, files, &generated.ids, SEEDS[0], timeline)
            .await?;
        if ran.report.timed_out {
            // The other tests take too long, so nothing is known about regressions.
            generated.ids.clone_from(&generated.contributed);
            ran = self
                .run_with_sentinel(old, files, &generated.ids, SEEDS[0], timeline)
                .await?;
        }
        generated.old = ran;
        generated.failing = generated
            .outcomes(&generated.old.report)
            .into_iter()
            .filter(|(_, outcome)| fails(*outcome))
            .map(|(id, _)| id)
            .collect();
        Ok(generated)
    }

    async fn sort(
        &self,
        tests: &GeneratedTests<'_>,
        candidate: &Candidate<'_>,
        timeline: &Timeline<'_>,
    ) -> Result<SelectionResult, GradingFailure> {
        let mut result = SelectionResult {
            resolves: candidate.resolves,
            old: tests.outcomes(&tests.old.report),
            not_tried: tests.unusable.clone(),
            left_out: candidate.left_out.clone(),
            suspicions: candidate.suspicions.clone(),
            no_existing_tests: !tests.failing.is_empty() && tests.ran_alone(),
            forged: candidate.forged.map(str::to_owned),
            ..SelectionResult::new(tests.prediction, candidate.patch)
        };
        let code = match &candidate.code {
            Ok(code) => code,
            Err(why) => {
                result.not_tried = Some(why.clone());
                return Ok(result);
            }
        };
        if tests.failing.is_empty() {
            return Ok(result);
        }
        let (files, ids) = (&tests.files, &tests.ids);
        let ran = self.run_with_sentinel(code, files, ids, SEEDS[0], timeline);
        let ran = ran.await?;
        result.new = tests.outcomes(&ran.report);
        let failing = tests.failing.iter().cloned();
        let passes = |test: &String| result.new.get(test) == Some(&Outcome::Passed);
        let (passed, failed): (Vec<String>, Vec<String>) = failing.clone().partition(passes);
        if result.forged.is_none() {
            result.forged = ran.forgery(&tests.old).map(str::to_owned);
        }
        if result.forged.is_none() {
            let passes = self.passes_changed_test(tests, code, &passed, timeline);
            result.forged = passes.await?.then(|| PASSES_CHANGED_TEST.to_owned());
        }
        if result.forged.is_some() {
            result.failed = failing.collect();
            result.resolves = result.resolves.map(|_| false);
            return Ok(result);
        }
        (result.passed, result.failed) = (passed, failed);
        result.uncollected = tests.collection_failure(&ran.report);
        result.regresses = tests.regressions(&ran.report);
        if !result.regresses.is_empty() {
            // A test that fails only sometimes is not evidence against the patch.
            let again = self.run_with_sentinel(code, files, ids, SEEDS[1], timeline);
            let again = tests.regressions(&again.await?.report);
            result.regresses.retain(|id| again.contains(id));
        }
        Ok(result)
    }

    /// Returns whether a test that passes on the code also passes there if it is changed to fail, unless it then passes
    /// on the old code too.
    async fn passes_changed_test(
        &self,
        tests: &GeneratedTests<'_>,
        code: &CodeState,
        passed: &[String],
        timeline: &Timeline<'_>,
    ) -> Result<bool, GradingFailure> {
        let changed = ChangedTests::new(&tests.files, passed).map_err(at_stage("source"))?;
        let (files, ids) = (&changed.files, &changed.ids);
        if ids.is_empty() {
            return Ok(false);
        }
        let ran = self.run_with_sentinel(code, files, ids, SEEDS[0], timeline);
        let passing = changed.passing(&ran.await?.report);
        if passing.is_empty() {
            return Ok(false);
        }
        let old = self.run_with_sentinel(&tests.old_code, files, ids, SEEDS[0], timeline);
        let old = changed.passing(&old.await?.report);
        Ok(passing.iter().any(|id| !old.contains(id)))
    }
}

/// Returns the files to run for tests: those that the patch changes. If it only adds files, the existing files of the
/// golden tests run too, so that a patch that breaks an existing test is noticed.
fn whole_files(prepared: &PreparedInstance, tests: &Contribution) -> Vec<String> {
    if tests.tests.is_empty() {
        return Vec::new();
    }
    let of_tests = tests.tests.iter().map(|id| file_of(id).to_owned());
    let mut files: BTreeSet<String> = of_tests.chain(tests.files.iter().cloned()).collect();
    if !tests.has_other_tests()
        && let Some((_, golden)) = &prepared.golden
    {
        files.extend(golden.modified.iter().cloned());
    }
    files.into_iter().collect()
}

/// Joins the lines of git's reason.
fn on_one_line(reason: &str) -> String {
    let lines: Vec<&str> = reason.lines().map(str::trim).collect();
    lines.join("; ")
}

fn fails(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::Error)
}
