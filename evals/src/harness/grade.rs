//! Grades one prediction for one instance.

use std::path::Path;

use futures::future::join;
use testwright_sandboxes::SandboxError;
use testwright_tools::outcomes::text::text;

use super::contribution::Contribution;
use super::grading_key::empty_result;
use super::instance::PreparedInstance;
use super::logs::{MAX_LOG_LEN, TESTS, build_log};
use super::runs::{Grading, Runs};
use super::test_run_cache::RunRecord;
use super::{GradingFailure, Harness, at_stage, outcome_pairs};
use crate::dataset::Instance;
use crate::predictions::Prediction;
use crate::result::{InstanceResult, TestPair};
use crate::untrusted_text::excerpt;
use crate::verdict::{Observations, Pairs};

/// Maximum notes of a result.
const MAX_NOTES: usize = 100;
/// Maximum characters of a note.
const MAX_NOTE_CHARS: usize = 2_000;

impl Harness {
    /// Copies the log of a build to the other logs. A missing log does not prevent grading.
    pub(super) fn keep_build_log(&self, instance: &Instance, path: &Path) -> Option<String> {
        let text = build_log(path, MAX_LOG_LEN).ok()?;
        self.log(&instance.instance_id, None, "build", &text).ok()
    }
}

impl Grading<'_> {
    /// Grades one prediction.
    pub(super) async fn grade(&self, prediction: &Prediction) -> InstanceResult {
        let mut graded = empty_result(self.harness, self.instance, prediction);
        graded.leakage.clone_from(&self.baseline.leakage);
        if let Some(log) = &self.baseline.build_log {
            graded.logs.insert("build".to_owned(), log.clone());
        }
        if let Err(stopped) = self.fill(&mut graded, prediction).await {
            graded.mark_ungraded(*stopped);
        }
        graded.strict.reason = excerpt(&graded.strict.reason, MAX_NOTE_CHARS);
        for notes in [&mut graded.notes, &mut graded.differs] {
            bound(notes);
        }
        graded
    }

    async fn fill(
        &self,
        graded: &mut InstanceResult,
        prediction: &Prediction,
    ) -> Result<(), GradingFailure> {
        let (instance, prepared) = (self.instance, self.prepared);
        let Some(patch) = &prediction.model_patch else {
            return self
                .cover_nothing(graded, "the prediction is missing")
                .await;
        };
        let applied = match prepared.apply(patch).map_err(at_stage("source"))? {
            Ok(applied) => applied,
            Err(why) => {
                graded.notes.push(format!("does not apply: {why}"));
                return self.cover_nothing(graded, "the patch does not apply").await;
            }
        };
        graded.applied = true;
        graded.notes.extend(applied.notes.iter().cloned());
        let tests =
            Contribution::from_patch(&applied, &prepared.fix, &prepared.tree, &prepared.layout)
                .map_err(at_stage("source"))?;
        let notes = tests.foreign.iter().chain(&tests.unrelated_inputs);
        graded.notes.extend(notes.cloned());
        for id in &tests.deleted {
            graded.notes.push(format!("deletes {id}"));
        }
        graded.contributed.clone_from(&tests.tests);
        let new_files = prepared
            .apply_to_new_code(patch, &applied)
            .map_err(at_stage("source"))?;
        // A patch that contributes no tests is graded without a run.
        let [old, new] = if tests.tests.is_empty() {
            self.no_runs().await?
        } else {
            let [old, new] = prepared.sides();
            let golden = self.baseline.golden_coverage();
            let (old, new) = join(
                self.side(&tests, &applied, (old, golden[0])),
                self.side(&tests, &new_files, (new, golden[1])),
            )
            .await;
            [old?, new?]
        };

        let mut observations = observed(instance, prepared, &tests, &old, &new);
        if observations.verdict().strict.fail_to_pass {
            let files = [&applied, &new_files];
            let all = [&old, &new].into_iter().flat_map(Runs::all);
            let longest = all.map(|ran| ran.seconds).fold(0.0, f64::max);
            let repeats = self.repeats(&tests, files, &observations, longest);
            observations.repeats = repeats.await?;
        }
        let verdict = observations.verdict();
        graded.old_class = verdict.old_class;
        graded.strict = verdict.strict;
        graded.swt = verdict.swt;
        graded.tdd = verdict.tdd;
        graded.differs = verdict.differs;
        graded.tests = contributed_pairs(&observations);
        let runs = [&old, &new].into_iter().flat_map(Runs::all);
        if let Some(why) = runs.clone().find_map(|ran| ran.ended.as_deref()) {
            let note =
                format!("its tests terminate the test process or prevent it from running: {why}");
            graded.notes.push(note);
        }
        for why in &observations.forged {
            let note = format!("the outcomes of the run are contradictory: {why}");
            graded.notes.push(note);
        }
        self.add_coverage(graded, [&old, &new]);
        for (side, runs) in [("old", &old), ("new", &new)] {
            let kept = self.keep_logs(graded, side, runs);
            kept.map_err(at_stage(side))?;
        }
        let all = serde_json::to_string(&observations.patched).unwrap_or_default();
        let (id, owner) = (&graded.instance_id, Some(graded.prediction.as_str()));
        let path = self.harness.log(id, owner, TESTS, &all);
        let path = path.map_err(at_stage("new"))?;
        graded.logs.insert(TESTS.to_owned(), path);
        graded.cached = cached(&old, &new);
        Ok(())
    }

    fn keep_logs(
        &self,
        graded: &mut InstanceResult,
        side: &str,
        runs: &Runs,
    ) -> Result<(), SandboxError> {
        let parts = [
            (side.to_owned(), Some(runs.whole_file_run())),
            (
                format!("{side}-alone"),
                runs.has_other_tests().then_some(&runs.own),
            ),
            (format!("{side}-base"), Some(&runs.base)),
        ];
        for (name, ran) in parts {
            let Some(ran) =
                ran.filter(|ran| !ran.answer.report.tests.is_empty() || ran.seconds > 0.0)
            else {
                continue;
            };
            let (id, owner) = (&graded.instance_id, Some(graded.prediction.as_str()));
            let path = self.harness.log(id, owner, &name, &run_log(ran))?;
            graded.logs.insert(name, path);
        }
        Ok(())
    }
}

fn observed(
    instance: &Instance,
    prepared: &PreparedInstance,
    tests: &Contribution,
    old: &Runs,
    new: &Runs,
) -> Observations {
    let [then, now] = [old, new].map(|runs| &runs.whole_file_run().answer.report);
    let isolated = (old.has_other_tests() && new.has_other_tests()).then(|| {
        outcome_pairs::pairs(&old.own.answer.report, &new.own.answer.report, &tests.tests)
    });
    Observations {
        contributed: tests.tests.clone(),
        patched: outcome_pairs::pairs(then, now, &tests.tests),
        base: outcome_pairs::pairs(&old.base.answer.report, &new.base.answer.report, &[]),
        isolated,
        unmatched: outcome_pairs::unmatched_parameters(then, now),
        failures: outcome_pairs::failures(then),
        missing_names: outcome_pairs::tests_of_requested_names(
            then,
            &tests.tests,
            &instance.problem_statement,
        ),
        foreign: tests.foreign.clone(),
        repeats: Vec::new(),
        forged: forged(prepared, old, new),
    }
}

/// Returns contradictions in the runs with the prediction, unless the runs without it have them too, because then the
/// repository itself may cause them.
fn forged(prepared: &PreparedInstance, old: &Runs, new: &Runs) -> Vec<String> {
    if prepared.old.environment.recipe.runner.kind != "pytest" {
        return Vec::new();
    }
    let sides = [("old", old), ("new", new)];
    let contradictions = sides.into_iter().filter_map(|(side, runs)| {
        if outcome_pairs::contradiction(&runs.base.answer.report).is_some() {
            return None;
        }
        let why = runs
            .all()
            .find_map(|ran| outcome_pairs::contradiction(&ran.answer.report))?;
        Some(format!("on the {side} code {why}"))
    });
    contradictions.collect()
}

fn contributed_pairs(observations: &Observations) -> Vec<TestPair> {
    let pairs: &Pairs = &observations.patched;
    pairs
        .iter()
        .filter(|(id, _)| observations.is_contributed(id))
        .map(|(id, pair)| TestPair {
            id: id.clone(),
            pair: *pair,
        })
        .collect()
}

fn cached(old: &Runs, new: &Runs) -> Vec<String> {
    let side = |runs: &Runs| runs.all().all(|ran| ran.cached);
    [
        ("old", side(old)),
        ("new", side(new)),
        ("base", old.base.cached && new.base.cached),
    ]
    .into_iter()
    .filter(|(_, cached)| *cached)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// Formats a run for people: outcomes, failures, and pytest's output.
fn run_log(ran: &RunRecord) -> String {
    let report = &ran.answer.report;
    format!(
        "{}\n\n--- printed ---\n{}\n",
        text(report).trim_end(),
        report.printed.trim_end()
    )
}

/// Limits the notes, which quote names and output of a prediction.
fn bound(notes: &mut Vec<String>) {
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    for note in notes.iter_mut() {
        *note = excerpt(note, MAX_NOTE_CHARS);
    }
    if more > 0 {
        notes.push(format!("and {more} more"));
    }
}
