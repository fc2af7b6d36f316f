//! Ranks candidate code patches by generated tests (SWT-bench §5.3, Otter §6.7): every test of a prediction runs on
//! every patch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use futures::future::join_all;
use testwright_sandboxes::repository::Files;
use testwright_tools::outcomes::report::Outcome;

use super::contribution::Contribution;
use super::instance::{CodeState, PreparedInstance, requires_reinstallation};
use super::outcome_pairs::pairs;
use super::schedule::{Progress, Step};
use super::test_run_cache::{RunRecord, TestRun};
use super::timeline::{Activity, RunSlots, Timeline};
use super::{GradingFailure, Harness, at_stage};
use crate::dataset::Instance;
use crate::predictions::Prediction;
use crate::selection::SelectionResult;
use crate::verdict::Pairs;

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
    let next = || {
        let mut waiting = waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        waiting.pop_front()
    };
    let work = || async {
        while let Some(job) = next() {
            harness.rank_patches(&job, &slots, progress, done).await;
        }
    };
    join_all((0..workers.max(1)).map(|_| work())).await;
}

/// A candidate patch, prepared for tests.
struct Candidate<'a> {
    patch: &'a Prediction,
    /// The patched code, or the reason why the patch cannot be tried.
    code: Result<CodeState, String>,
    /// Whether the patch resolves the issue; `None` without golden tests.
    resolves: Option<bool>,
}

/// Generated tests, and the ones that fail on the old code.
struct GeneratedTests<'a> {
    prediction: &'a Prediction,
    files: Files,
    ids: Vec<String>,
    /// Outcomes on the old code.
    old: BTreeMap<String, Outcome>,
    failing: BTreeSet<String>,
    /// Reason why the tests cannot be run.
    unusable: Option<String>,
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
            progress(Step::Grading {
                instance: job.instance.instance_id.clone(),
                prediction: tests.model_name_or_path.clone(),
            });
            let sorted = match &prepared {
                Ok((prepared, candidates)) => {
                    self.sort_all(prepared, candidates, tests, &timeline).await
                }
                Err(failed) => Err(failed.clone()),
            };
            match sorted {
                Ok(results) => results.into_iter().for_each(done),
                Err(failed) => job.patches.iter().for_each(|patch| {
                    done(SelectionResult {
                        infrastructure: Some(failed.to_string()),
                        shortage: failed.shortage,
                        ..SelectionResult::of(tests, patch)
                    });
                }),
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

    async fn sort_all(
        &self,
        prepared: &PreparedInstance,
        candidates: &[Candidate<'_>],
        tests: &Prediction,
        timeline: &Timeline<'_>,
    ) -> Result<Vec<SelectionResult>, GradingFailure> {
        let tests = self.failing_tests(prepared, tests, timeline).await?;
        let mut results = Vec::new();
        for candidate in candidates {
            results.push(self.sort(&tests, candidate, timeline).await?);
        }
        Ok(results)
    }

    async fn candidate<'a>(
        &self,
        instance: &Instance,
        prepared: &PreparedInstance,
        patch: &'a Prediction,
        timeline: &Timeline<'_>,
        progress: Progress<'_>,
    ) -> Result<Candidate<'a>, GradingFailure> {
        let without = |why: &str| Candidate {
            patch,
            code: Err(why.to_owned()),
            resolves: prepared.golden.as_ref().map(|_| false),
        };
        let Some(text) = &patch.model_patch else {
            return Ok(without("the patch is missing"));
        };
        let applied = match prepared.apply(text).map_err(at_stage("source"))? {
            Ok(applied) => applied,
            Err(why) => return Ok(without(&format!("the patch does not apply: {why}"))),
        };
        let code = if applied
            .files
            .keys()
            .any(|path| requires_reinstallation(path))
        {
            let environment = self.environment_with(instance, &applied.files, progress);
            CodeState::new(environment.await?, Files::new())
        } else {
            let mut files = prepared.old.files.clone();
            files.extend(applied.files);
            CodeState::new(prepared.old.environment.clone(), files)
        };
        let resolves = self.resolves(prepared, &code, timeline).await?;
        Ok(Candidate {
            patch,
            code: Ok(code),
            resolves,
        })
    }

    /// Returns whether the patch passes every test in the golden tests' files that passes with the golden patch.
    async fn resolves(
        &self,
        prepared: &PreparedInstance,
        code: &CodeState,
        timeline: &Timeline<'_>,
    ) -> Result<Option<bool>, GradingFailure> {
        let Some((golden, tests)) = &prepared.golden else {
            return Ok(None);
        };
        let expected_run = self
            .outcomes(&prepared.new, &golden.files, &tests.files, timeline)
            .await?;
        let now = self
            .outcomes(code, &golden.files, &tests.files, timeline)
            .await?;
        let pairs: Pairs = pairs(
            &expected_run.answer.report,
            &now.answer.report,
            &tests.tests,
        );
        let is_resolved = pairs
            .values()
            .filter(|pair| pair.old == Outcome::Passed)
            .all(|pair| pair.new == Outcome::Passed);
        Ok(Some(is_resolved))
    }

    async fn failing_tests<'a>(
        &self,
        prepared: &PreparedInstance,
        prediction: &'a Prediction,
        timeline: &Timeline<'_>,
    ) -> Result<GeneratedTests<'a>, GradingFailure> {
        let without = |why: String| GeneratedTests {
            prediction,
            files: Files::new(),
            ids: Vec::new(),
            old: BTreeMap::new(),
            failing: BTreeSet::new(),
            unusable: Some(why),
        };
        let Some(text) = &prediction.model_patch else {
            return Ok(without("the tests are missing".to_owned()));
        };
        let applied = match prepared.apply(text).map_err(at_stage("source"))? {
            Ok(applied) => applied,
            Err(why) => return Ok(without(format!("the tests do not apply: {why}"))),
        };
        let tests = Contribution::of(&applied, &prepared.tree, &prepared.layout)
            .map_err(at_stage("source"))?;
        let ran = self
            .outcomes(&prepared.old, &applied.files, &tests.tests, timeline)
            .await?;
        let pairs = pairs(&ran.answer.report, &ran.answer.report, &tests.tests);
        let failing = pairs.iter().filter(|(_, pair)| fails(pair.old));
        Ok(GeneratedTests {
            prediction,
            failing: failing.map(|(id, _)| id.clone()).collect(),
            old: pairs
                .iter()
                .map(|(id, pair)| (id.clone(), pair.old))
                .collect(),
            files: applied.files,
            ids: tests.tests,
            unusable: None,
        })
    }

    async fn sort(
        &self,
        tests: &GeneratedTests<'_>,
        candidate: &Candidate<'_>,
        timeline: &Timeline<'_>,
    ) -> Result<SelectionResult, GradingFailure> {
        let mut result = SelectionResult {
            resolves: candidate.resolves,
            old: tests.old.clone(),
            not_tried: tests.unusable.clone(),
            ..SelectionResult::of(tests.prediction, candidate.patch)
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
        let ran = self
            .outcomes(code, &tests.files, &tests.ids, timeline)
            .await?;
        let pairs = pairs(&ran.answer.report, &ran.answer.report, &tests.ids);
        result.new = pairs.into_iter().map(|(id, pair)| (id, pair.new)).collect();
        for test in &tests.failing {
            let passes = result.new.get(test) == Some(&Outcome::Passed);
            let list = if passes {
                &mut result.passed
            } else {
                &mut result.failed
            };
            list.push(test.clone());
        }
        Ok(result)
    }

    async fn outcomes(
        &self,
        state: &CodeState,
        files: &Files,
        ids: &[String],
        timeline: &Timeline<'_>,
    ) -> Result<RunRecord, GradingFailure> {
        let run = TestRun {
            state,
            files,
            ids: ids.to_vec(),
            measure: Vec::new(),
            counted: false,
            until: Default::default(),
            of_prediction: true,
            hash_seed: 0,
            part: Activity::New,
        };
        self.run(&run, timeline).await.map_err(at_stage("new"))
    }
}

fn fails(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::Error)
}
