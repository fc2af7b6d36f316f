//! One prediction for one instance, graded.

use std::path::Path;

use futures::future::{join, join_all, join5};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{AppliedPatch, Files};
use testwright_tools::outcomes::text::text;

use super::contribution::Contribution;
use super::grading_key::empty_result;
use super::instance::{PreparedInstance, State};
use super::logs::{LONGEST, Owner, build_log, log};
use super::notes::{NOTE, bound};
use super::test_run_cache::{RunRecord, TestRun};
use super::timeline::{Part, Timeline};
use super::{GradingFailure, Harness, TESTS, at_stage, outcome_pairs};
use crate::dataset::Instance;
use crate::foreign_text::excerpt;
use crate::predictions::Prediction;
use crate::result::{Infrastructure, InstanceResult, Leakage, TestPair};
use crate::verdict::{Observations, Pairs};

/// `PYTHONHASHSEED` of the runs in company and alone.
const SEEDS: [u32; 2] = [0, 1];

/// The runs of one prediction, on one side.
pub(super) struct Runs {
    /// Its files as a whole.
    with: RunRecord,
    /// The contributed tests on their own; `None` where `with` is just that.
    alone: Option<RunRecord>,
    /// The same files without it.
    pub base: RunRecord,
    /// Where it changes tests: how often lines run in those as they were, and in all that it contributes.
    pub changed: Option<[RunRecord; 2]>,
}

impl Runs {
    fn all(&self) -> impl Iterator<Item = &RunRecord> + Clone {
        [Some(&self.with), self.alone.as_ref()]
            .into_iter()
            .flatten()
    }

    pub fn alone(&self) -> &RunRecord {
        self.alone.as_ref().unwrap_or(&self.with)
    }
}

/// What all predictions of an instance share.
pub struct BaselineRuns {
    /// The golden tests on the old and on the new code: which lines they run.
    pub golden: Option<[RunRecord; 2]>,
    /// The golden tests' files without them.
    pub base: Option<[RunRecord; 2]>,
    pub leakage: Option<Leakage>,
    /// The log of the build, beside the others.
    build_log: Option<String>,
}

impl Harness {
    /// The runs that do not depend on a prediction.
    pub(super) async fn baseline_runs(
        &self,
        instance: &Instance,
        prepared: &PreparedInstance,
        timeline: &Timeline<'_>,
    ) -> Result<BaselineRuns, GradingFailure> {
        let mut baseline = BaselineRuns {
            golden: None,
            base: None,
            leakage: None,
            build_log: self.keep_build_log(instance, &prepared.old.environment.log),
        };
        let sides = [(&prepared.old, "old"), (&prepared.new, "new")];
        let runs = sides.map(async |(state, stage)| {
            let Some((applied, tests)) = &prepared.golden else {
                return Ok(None);
            };
            let measure = prepared.changed.files();
            // What the tests beside them run is known from the base suite.
            let golden = TestRun {
                measure: measure.clone(),
                ..own_run(state, &applied.files, tests)
            };
            let nothing = Files::new();
            let base = base_run(state, &nothing, &tests.modified, &measure);
            let (golden, base) = join(self.run(&golden, timeline), self.run(&base, timeline)).await;
            let golden = golden.map_err(at_stage(stage))?;
            Ok(Some((golden, base.map_err(at_stage("base"))?)))
        });
        let leakage = self.find_leakage(prepared, timeline);
        let (leakage, runs) = join(leakage, join_all(runs)).await;
        baseline.leakage = Some(leakage.map_err(at_stage("old"))?);
        let runs: Vec<_> = runs.into_iter().collect::<Result<_, GradingFailure>>()?;
        let (mut golden, mut base) = (Vec::new(), Vec::new());
        for (of_golden, of_base) in runs.into_iter().flatten() {
            golden.push(of_golden);
            base.push(of_base);
        }
        let name = |part: &str| format!("golden-{part}");
        for (runs, part) in [(&golden, ["old", "new"]), (&base, ["base-old", "base-new"])] {
            for (ran, part) in runs.iter().zip(part) {
                let (id, text) = (&instance.instance_id, text(&ran.answer.report));
                log(&self.out, id, Owner::Instance, &name(part), &text).map_err(at_stage("old"))?;
            }
        }
        baseline.golden = golden.try_into().ok();
        baseline.base = base.try_into().ok();
        Ok(baseline)
    }

    /// Puts the log of a build beside the others. What is lost of it is no reason not to grade.
    pub(super) fn keep_build_log(&self, instance: &Instance, path: &Path) -> Option<String> {
        let text = build_log(path, LONGEST).ok()?;
        log(
            &self.out,
            &instance.instance_id,
            Owner::Instance,
            "build",
            &text,
        )
        .ok()
    }

    /// Grades one prediction.
    pub(super) async fn grade(
        &self,
        instance: &Instance,
        prediction: &Prediction,
        prepared: &PreparedInstance,
        baseline: &BaselineRuns,
        timeline: &Timeline<'_>,
    ) -> InstanceResult {
        let mut graded = empty_result(self, instance, prediction);
        graded.peeking.clone_from(&baseline.leakage);
        if let Some(log) = &baseline.build_log {
            graded.logs.insert("build".to_owned(), log.clone());
        }
        if let Err(stopped) = self
            .fill(
                &mut graded,
                instance,
                prediction,
                prepared,
                baseline,
                timeline,
            )
            .await
        {
            graded.could_not(*stopped);
        }
        graded.strict.reason = excerpt(&graded.strict.reason, NOTE);
        for notes in [&mut graded.notes, &mut graded.differs] {
            bound(notes);
        }
        graded
    }

    async fn fill(
        &self,
        graded: &mut InstanceResult,
        instance: &Instance,
        prediction: &Prediction,
        prepared: &PreparedInstance,
        baseline: &BaselineRuns,
        timeline: &Timeline<'_>,
    ) -> Result<(), GradingFailure> {
        let Some(patch) = &prediction.model_patch else {
            graded.strict.reason = "there is no prediction".to_owned();
            graded.cover_nothing(prepared, baseline);
            return Ok(());
        };
        let applied = match prepared.apply(patch).map_err(at_stage("source"))? {
            Ok(applied) => applied,
            Err(why) => {
                graded.strict.reason = "the patch does not apply".to_owned();
                graded.notes.push(format!("does not apply: {why}"));
                graded.cover_nothing(prepared, baseline);
                return Ok(());
            }
        };
        graded.applied = true;
        graded.notes.extend(applied.notes.iter().cloned());
        let tests = Contribution::of(&applied, &prepared.tree, &prepared.layout)
            .map_err(at_stage("source"))?;
        for path in &tests.sources {
            graded.notes.push(format!("edits code under test: {path}"));
        }
        for path in &tests.startup {
            graded
                .notes
                .push(format!("brings {path}, which runs before its tests run"));
        }
        for id in &tests.deleted {
            graded.notes.push(format!("deletes {id}"));
        }
        graded.contributed.clone_from(&tests.tests);
        let new_files = prepared
            .over_the_fix(patch, &applied)
            .map_err(at_stage("source"))?;
        let side =
            |applied, state, part| self.side(&tests, applied, prepared, state, part, timeline);
        let (old, new) = join(
            side(&applied, &prepared.old, Part::Old),
            side(&new_files, &prepared.new, Part::New),
        )
        .await;
        let (old, new) = (old?, new?);

        let seen = observed(instance, prepared, &tests, &applied, &old, &new);
        let verdict = seen.verdict();
        graded.old_class = verdict.old_class;
        graded.strict = verdict.strict;
        graded.swt = verdict.swt;
        graded.differs = verdict.differs;
        graded.tests = contributed_pairs(&seen);
        let runs = [&old, &new].into_iter().flat_map(Runs::all);
        if let Some(why) = runs.clone().find_map(|ran| ran.ended.as_deref()) {
            let note =
                format!("its tests end the program that runs them, or keep it from running: {why}");
            graded.notes.push(note);
        }
        for why in &seen.forged {
            let note = format!("the outcomes of the run contradict each other: {why}");
            graded.notes.push(note);
        }
        graded.tdd = verdict.tdd;
        graded.add_coverage(instance, prepared, baseline, [&old, &new]);
        for (side, runs) in [("old", &old), ("new", &new)] {
            self.keep_logs(graded, side, runs).map_err(at_stage(side))?;
        }
        let all = serde_json::to_string(&seen.with).unwrap_or_default();
        let owner = Owner::Prediction(&graded.prediction);
        let path = log(&self.out, &graded.instance_id, owner, TESTS, &all);
        let path = path.map_err(at_stage("new"))?;
        graded.logs.insert(TESTS.to_owned(), path);
        graded.cached = cached(&old, &new);
        Ok(())
    }

    /// The runs on one side.
    async fn side(
        &self,
        tests: &Contribution,
        applied: &AppliedPatch,
        prepared: &PreparedInstance,
        state: &State,
        part: Part,
        timeline: &Timeline<'_>,
    ) -> Result<Runs, GradingFailure> {
        let stage = if part == Part::Old { "old" } else { "new" };
        let measure = prepared.changed.files();
        let is_golden = prepared
            .golden
            .as_ref()
            .is_some_and(|(golden, _)| golden.files == applied.files);
        let own = TestRun {
            measure: measure.clone(),
            of_prediction: !is_golden,
            part,
            ..own_run(state, &applied.files, tests)
        };
        // Where the contributed tests are run on their own too, that run is measured.
        let with = TestRun {
            ids: tests.files.clone(),
            measure: if tests.has_company() {
                Vec::new()
            } else {
                measure.clone()
            },
            hash_seed: SEEDS[0],
            ..own.clone()
        };
        let nothing = Files::new();
        let base = base_run(state, &nothing, &tests.modified, &measure);
        let before = TestRun {
            files: &nothing,
            ids: tests.changed.clone(),
            counted: true,
            ..own.clone()
        };
        let after = TestRun {
            counted: true,
            ..own.clone()
        };
        // A patch that contributes no test is judged without a run.
        let has_tests = !tests.tests.is_empty();
        let run =
            async |run: &TestRun<'_>, is_needed: bool, stage: &str| match has_tests && is_needed {
                true => self
                    .run(run, timeline)
                    .await
                    .map(Some)
                    .map_err(at_stage(stage)),
                false => Ok(None),
            };
        let is_changed = !tests.changed.is_empty();
        let (with, alone, base, before, after) = join5(
            run(&with, true, stage),
            run(&own, tests.has_company(), stage),
            run(&base, true, "base"),
            run(&before, is_changed, "base"),
            run(&after, is_changed, stage),
        )
        .await;
        let with = with?.unwrap_or_else(RunRecord::of_nothing);
        let (alone, base) = (alone?, base?.unwrap_or_else(RunRecord::of_nothing));
        let changed = before?.zip(after?).map(|(before, after)| [before, after]);
        // Where the tests that were there before take half the time, a prediction is not to blame for the rest.
        let is_slow = base.seconds > self.test_time.as_secs_f64() / 2.0;
        if base.answer.report.timed_out || (with.answer.report.timed_out && is_slow) {
            return Err(Box::new(Infrastructure {
                stage: "base".to_owned(),
                cause: format!(
                    "the tests that were there before take {:.0} s of the {} s that a run may take",
                    base.seconds,
                    self.test_time.as_secs()
                ),
                log: None,
            }));
        }
        Ok(Runs {
            with,
            alone,
            base,
            changed,
        })
    }

    fn keep_logs(
        &self,
        graded: &mut InstanceResult,
        side: &str,
        runs: &Runs,
    ) -> Result<(), SandboxError> {
        let parts = [
            (side.to_owned(), Some(&runs.with)),
            (format!("{side}-alone"), runs.alone.as_ref()),
            (format!("{side}-base"), Some(&runs.base)),
        ];
        for (name, ran) in parts {
            let Some(ran) =
                ran.filter(|ran| !ran.answer.report.tests.is_empty() || ran.seconds > 0.0)
            else {
                continue;
            };
            let owner = Owner::Prediction(&graded.prediction);
            let path = log(&self.out, &graded.instance_id, owner, &name, &run_log(ran))?;
            graded.logs.insert(name, path);
        }
        Ok(())
    }
}

/// The contributed tests on their own; where there are none or nothing else, the files.
fn own_run<'a>(state: &'a State, files: &'a Files, tests: &Contribution) -> TestRun<'a> {
    let is_known = tests.has_company() && !tests.tests.is_empty();
    TestRun {
        state,
        files,
        ids: if is_known { &tests.tests } else { &tests.files }.clone(),
        measure: Vec::new(),
        counted: false,
        of_prediction: false,
        hash_seed: SEEDS[usize::from(is_known)],
        part: Part::Golden,
    }
}

/// Files as they are without a prediction.
fn base_run<'a>(
    state: &'a State,
    nothing: &'a Files,
    modified: &[String],
    measure: &[String],
) -> TestRun<'a> {
    TestRun {
        state,
        files: nothing,
        ids: modified.to_vec(),
        measure: measure.to_vec(),
        counted: false,
        of_prediction: false,
        hash_seed: SEEDS[0],
        part: Part::Base,
    }
}

/// A changelog or the like, which no code reads.
fn is_prose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let prose = ["rst", "md", "txt"];
    name.rsplit_once('.')
        .is_none_or(|(_, end)| prose.contains(&end))
}

fn observed(
    instance: &Instance,
    prepared: &PreparedInstance,
    tests: &Contribution,
    applied: &AppliedPatch,
    old: &Runs,
    new: &Runs,
) -> Observations {
    let [then, now] = [old, new].map(|runs| &runs.with.answer.report);
    let alone = match (&old.alone, &new.alone) {
        (Some(old), Some(new)) => Some(outcome_pairs::pairs(
            &old.answer.report,
            &new.answer.report,
            &tests.tests,
        )),
        _ => None,
    };
    Observations {
        contributed: tests.tests.clone(),
        with: outcome_pairs::pairs(then, now, &tests.tests),
        base: outcome_pairs::pairs(&old.base.answer.report, &new.base.answer.report, &[]),
        alone,
        elsewhere: outcome_pairs::elsewhere(then, now),
        failures: outcome_pairs::failures(then),
        asked_for: outcome_pairs::asked_for(then, &tests.tests, &instance.problem_statement),
        edits: applied
            .files
            .keys()
            .filter(|path| prepared.fix.contains_key(*path) && !is_prose(path))
            .cloned()
            .collect(),
        startup: tests.startup.clone(),
        forged: forged(prepared, old, new),
    }
}

/// Contradictions in the runs with the prediction that the runs without it do not have: a repository may decide how its
/// own runs end.
fn forged(prepared: &PreparedInstance, old: &Runs, new: &Runs) -> Vec<String> {
    if prepared.old.environment.recipe.runner.kind != "pytest" {
        return Vec::new();
    }
    let sides = [("old", old), ("new", new)];
    let found = sides.into_iter().filter_map(|(side, runs)| {
        if outcome_pairs::contradiction(&runs.base.answer.report).is_some() {
            return None;
        }
        let why = runs
            .all()
            .find_map(|ran| outcome_pairs::contradiction(&ran.answer.report))?;
        Some(format!("on the {side} code {why}"))
    });
    found.collect()
}

fn contributed_pairs(seen: &Observations) -> Vec<TestPair> {
    let pairs: &Pairs = &seen.with;
    pairs
        .iter()
        .filter(|(id, _)| seen.is_contributed(id))
        .map(|(id, pair)| TestPair {
            id: id.clone(),
            pair: *pair,
        })
        .collect()
}

fn cached(old: &Runs, new: &Runs) -> Vec<String> {
    let side = |runs: &Runs| runs.with.cached && runs.alone.as_ref().is_none_or(|ran| ran.cached);
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

/// A run for people: outcomes, failures, and what pytest printed.
fn run_log(ran: &RunRecord) -> String {
    let report = &ran.answer.report;
    format!(
        "{}\n\n--- printed ---\n{}\n",
        text(report).trim_end(),
        report.printed.trim_end()
    )
}
