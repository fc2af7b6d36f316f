//! The test runs of a grading: which are required, and which can be skipped because no result depends on them.

use futures::future::{join, join_all, join3};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{AppliedPatch, Files};
use testwright_tools::coverage::{Coverage, counts_are_cheap};
use testwright_tools::outcomes::text::text;

use super::changed_lines::Lines;
use super::contribution::Contribution;
use super::coverage::{any_called, undecided};
use super::instance::{CodeState, PreparedInstance};
use super::test_run_cache::{RunRecord, TestRun};
use super::timeline::{Activity, Timeline};
use super::{GradingFailure, Harness, at_stage};
use crate::dataset::Instance;
use crate::result::{Infrastructure, Leakage};

/// `PYTHONHASHSEED` of the runs with other tests and of the runs without.
const SEEDS: [u32; 2] = [0, 1];

/// The code before the fix, or after it.
#[derive(Clone, Copy)]
pub(super) struct CodeSide<'a> {
    pub name: &'static str,
    part: Activity,
    pub state: &'a CodeState,
    /// Lines of this side that the fix changes.
    lines: &'a Lines,
}

impl PreparedInstance {
    pub(super) fn sides(&self) -> [CodeSide<'_>; 2] {
        let old = CodeSide {
            name: "old",
            part: Activity::Old,
            state: &self.old,
            lines: &self.changed.removed,
        };
        let new = CodeSide {
            name: "new",
            part: Activity::New,
            state: &self.new,
            lines: &self.changed.added,
        };
        [old, new]
    }
}

/// The runs of one prediction on one side.
pub(super) struct Runs {
    /// Run of only the contributed tests.
    pub own: RunRecord,
    /// Run of the whole files, if they also contain other tests.
    whole_files: Option<RunRecord>,
    /// Run of the same files without the prediction.
    pub base: RunRecord,
    pub suite: Option<RunRecord>,
    /// Counts of lines run by the changed tests in their old version, if the prediction changes tests and the counts
    /// matter.
    pub before: Option<RunRecord>,
    /// Counts for all contributed tests, if `own` does not include counts.
    after: Option<RunRecord>,
}

impl Runs {
    fn of_nothing(suite: Option<RunRecord>) -> Runs {
        Runs {
            own: RunRecord::of_nothing(),
            whole_files: None,
            base: RunRecord::of_nothing(),
            suite,
            before: None,
            after: None,
        }
    }

    pub(super) fn has_other_tests(&self) -> bool {
        self.whole_files.is_some()
    }

    /// Returns the run of the whole files.
    pub(super) fn whole_file_run(&self) -> &RunRecord {
        self.whole_files.as_ref().unwrap_or(&self.own)
    }

    pub(super) fn after(&self) -> &RunRecord {
        self.after.as_ref().unwrap_or(&self.own)
    }

    /// Returns the runs with the prediction.
    pub(super) fn all(&self) -> impl Iterator<Item = &RunRecord> + Clone {
        [Some(&self.own), self.whole_files.as_ref()]
            .into_iter()
            .flatten()
    }
}

/// Runs that all predictions of an instance share.
pub(super) struct BaselineRuns {
    /// Runs of the golden tests on the old and the new code, with coverage.
    pub golden: Option<[RunRecord; 2]>,
    pub leakage: Option<Leakage>,
    /// Path of the copied build log.
    pub build_log: Option<String>,
}

impl BaselineRuns {
    pub(super) fn golden_coverage(&self) -> [Option<&Coverage>; 2] {
        let golden = self.golden.as_ref();
        [0, 1].map(|at| golden.and_then(|golden| golden[at].answer.coverage.as_ref()))
    }
}

/// The parts that all gradings of an instance share, and the timeline of the present one.
pub(super) struct Grading<'a> {
    pub harness: &'a Harness,
    pub instance: &'a Instance,
    pub prepared: &'a PreparedInstance,
    pub baseline: &'a BaselineRuns,
    pub timeline: &'a Timeline<'a>,
}

impl Harness {
    /// Makes the runs that do not depend on a prediction.
    pub(super) async fn baseline_runs(
        &self,
        instance: &Instance,
        prepared: &PreparedInstance,
        timeline: &Timeline<'_>,
    ) -> Result<BaselineRuns, GradingFailure> {
        let build_log = self.keep_build_log(instance, &prepared.old.environment.log);
        let runs = prepared.sides().map(async |side| {
            let Some((applied, tests)) = &prepared.golden else {
                return Ok(None);
            };
            // The base suite shows what the other tests in these files run.
            let golden = own_run(side, &applied.files, tests);
            let golden = self.run(&golden, timeline).await;
            Ok(Some(golden.map_err(at_stage(side.name))?))
        });
        let leakage = self.find_leakage(prepared, timeline);
        let (leakage, runs) = join(leakage, join_all(runs)).await;
        let leakage = leakage.map_err(at_stage("old"))?;
        let runs: Vec<Option<RunRecord>> =
            runs.into_iter().collect::<Result<_, GradingFailure>>()?;
        let golden: Vec<_> = runs.into_iter().flatten().collect();
        for (ran, side) in golden.iter().zip(prepared.sides()) {
            self.keep_shared_log(instance, &format!("golden-{}", side.name), ran)?;
        }
        Ok(BaselineRuns {
            golden: golden.try_into().ok(),
            leakage: Some(leakage),
            build_log,
        })
    }

    fn keep_shared_log(
        &self,
        instance: &Instance,
        name: &str,
        ran: &RunRecord,
    ) -> Result<(), GradingFailure> {
        let text = text(&ran.answer.report);
        let kept = self.log(&instance.instance_id, None, name, &text);
        kept.map(drop).map_err(at_stage("old"))
    }
}

impl Grading<'_> {
    /// Runs the golden tests' files without the golden tests. Coverage is limited to the lines that ΔC depends on.
    async fn suite(
        &self,
        side: CodeSide<'_>,
        until: &Lines,
    ) -> Result<Option<RunRecord>, GradingFailure> {
        let Some((_, golden)) = &self.prepared.golden else {
            return Ok(None);
        };
        if until.is_empty() {
            return Ok(None);
        }
        let nothing = Files::new();
        let suite = base_run(side, &nothing, &golden.modified, until);
        let ran = self.run(&suite).await.map_err(at_stage("base"))?;
        self.harness
            .keep_shared_log(self.instance, &format!("golden-base-{}", side.name), &ran)?;
        Ok(Some(ran))
    }

    /// Makes the runs for a prediction that is missing or contributes no tests.
    pub(super) async fn no_runs(&self) -> Result<[Runs; 2], GradingFailure> {
        let golden = self.baseline.golden_coverage();
        let of = async |at: usize| {
            let side = self.prepared.sides()[at];
            let until = undecided(side.lines, golden[at], None);
            Ok(Runs::of_nothing(self.suite(side, &until).await?))
        };
        let (old, new): (Result<_, GradingFailure>, _) = join(of(0), of(1)).await;
        Ok([old?, new?])
    }

    /// Makes the runs of a prediction on one side.
    pub(super) async fn side(
        &self,
        tests: &Contribution,
        applied: &AppliedPatch,
        (side, golden): (CodeSide<'_>, Option<&Coverage>),
    ) -> Result<Runs, GradingFailure> {
        let golden_tests = self.prepared.golden.as_ref();
        let is_golden = golden_tests.is_some_and(|(golden, _)| golden.files == applied.files);
        let run = async |run: &TestRun<'_>, is_needed: bool, stage: &str| match is_needed {
            true => {
                let ran = self.run(run).await;
                ran.map(Some).map_err(at_stage(stage))
            }
            false => Ok(None),
        };
        let own = TestRun {
            of_prediction: !is_golden,
            part: side.part,
            ..own_run(side, &applied.files, tests)
        };
        // Coverage is measured in the run of only the contributed tests.
        let company = TestRun {
            ids: tests.files.clone(),
            measure: Vec::new(),
            counted: false,
            hash_seed: SEEDS[0],
            ..own.clone()
        };
        let company = run(&company, tests.has_other_tests(), side.name);
        let others = async {
            let ran = self.run(&own).await.map_err(at_stage(side.name))?;
            let coverage = ran.answer.coverage.as_ref();
            let until = undecided(side.lines, golden, coverage);
            let nothing = Files::new();
            let base = base_run(side, &nothing, &tests.modified, &until);
            let base = async {
                let base = self.run(&base).await;
                let base = base.map_err(at_stage("base"))?;
                // This is usually the same run, so it is in the cache.
                Ok::<_, GradingFailure>((base, self.suite(side, &until).await?))
            };
            let is_counted = !tests.changed.is_empty() && any_called(side.lines, coverage);
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
            let (base, before, after) = join3(
                base,
                run(&before, is_counted, "base"),
                run(&after, is_counted && !own.counted, side.name),
            )
            .await;
            Ok::<_, GradingFailure>((ran, base?, before?, after?))
        };
        // The runs that depend on each other start first.
        let (others, company) = join(others, company).await;
        let (own, (base, suite), before, after) = others?;
        let runs = Runs {
            own,
            whole_files: company?,
            base,
            suite,
            before,
            after,
        };
        self.is_in_time(&runs)?;
        Ok(runs)
    }

    pub(super) async fn run(&self, run: &TestRun<'_>) -> Result<RunRecord, SandboxError> {
        self.harness.run(run, self.timeline).await
    }

    /// Fails if the existing tests take over half of the time limit, because then a timeout is not the prediction's
    /// fault.
    fn is_in_time(&self, runs: &Runs) -> Result<(), GradingFailure> {
        let base = &runs.base;
        let test_time = self.harness.test_time;
        let is_slow = base.seconds > test_time.as_secs_f64() / 2.0;
        let is_over = |ran: &RunRecord| ran.answer.report.timed_out;
        let is_late = is_over(base) || is_slow && is_over(runs.whole_file_run());
        if !is_late {
            return Ok(());
        }
        let cause = format!(
            "the existing tests take {:.0} s of the {} s allowed for a run",
            base.seconds,
            test_time.as_secs()
        );
        Err(Box::new(Infrastructure::new("base", cause)))
    }
}

/// Returns the run of only the contributed tests. It runs whole files if they contain no other tests, or no test is
/// known.
fn own_run<'a>(side: CodeSide<'a>, files: &'a Files, tests: &Contribution) -> TestRun<'a> {
    let has_test_ids = tests.has_other_tests() && !tests.tests.is_empty();
    let is_counted = !tests.changed.is_empty() && !side.lines.is_empty();
    TestRun {
        state: side.state,
        files,
        ids: if has_test_ids {
            &tests.tests
        } else {
            &tests.files
        }
        .clone(),
        measure: side.lines.keys().cloned().collect(),
        counted: is_counted && counts_are_cheap(&side.state.environment.python_version),
        until: Lines::new(),
        of_prediction: false,
        hash_seed: SEEDS[usize::from(has_test_ids)],
        part: Activity::Golden,
    }
}

/// Returns a run of contributed tests in another state of a side, or of their whole files, without coverage.
pub(super) fn repeated_run<'a>(
    side: CodeSide<'a>,
    state: &'a CodeState,
    files: &'a Files,
    tests: &Contribution,
    is_whole: bool,
    hash_seed: u32,
) -> TestRun<'a> {
    let run = own_run(side, files, tests);
    TestRun {
        state,
        ids: if is_whole {
            tests.files.clone()
        } else {
            run.ids
        },
        measure: Vec::new(),
        counted: false,
        of_prediction: true,
        hash_seed,
        part: Activity::Repeats,
        ..run
    }
}

/// Returns the run of files without a prediction, with coverage limited to the given lines.
fn base_run<'a>(
    side: CodeSide<'a>,
    nothing: &'a Files,
    modified: &[String],
    until: &Lines,
) -> TestRun<'a> {
    TestRun {
        state: side.state,
        files: nothing,
        ids: modified.to_vec(),
        measure: until.keys().cloned().collect(),
        counted: false,
        until: until.clone(),
        of_prediction: false,
        hash_seed: SEEDS[0],
        part: Activity::Base,
    }
}
