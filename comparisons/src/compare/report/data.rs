//! Data of a report: runs joined with the grader's verdicts.

use std::collections::BTreeMap;
use std::path::Path;

use testwright_evals::InstanceResult;
use testwright_evals::report::counted_delta;
use testwright_evals::result::results_file::{self, ResultsFile, StoredResult};
use testwright_evals::verdict::OldClass;

use crate::compare::run_record::stored_runs;
use crate::compare::run_record::{RunCost, StageCost};
use crate::compare::{GRADING, Plan, RunSpec, RunStatus, System, first_line};
use crate::model_work::spent_dollars;
use testwright_config::error::{Error, Result};

/// Issue lengths in tokens (SWT-bench §5.4).
pub(super) const LENGTHS: [(&str, u64); 4] = [
    ("≤ 100", 100),
    ("≤ 200", 200),
    ("≤ 500", 500),
    ("> 500", u64::MAX),
];

/// Returns the position of a length group by name; any other group comes last.
pub(super) fn length_place(name: &str) -> usize {
    let place = LENGTHS.iter().position(|(length, _)| *length == name);
    place.unwrap_or(LENGTHS.len())
}

/// A plan with the runs of its systems and their verdicts.
pub struct Data {
    /// The plan of the comparison.
    pub plan: Plan,
    /// Systems in the order of the plan.
    pub systems: Vec<SystemRuns>,
    /// Total cost in dollars, according to the ledger.
    pub dollars: Option<f64>,
}

/// Runs of a system.
pub struct SystemRuns {
    pub system: System,
    /// Runs by instance, in the order of the plan, then by sample; `None` if the run was not made.
    pub runs: Vec<Vec<Option<ScoredRun>>>,
}

pub struct ScoredRun {
    /// Folder of the run, relative to the report.
    pub folder: String,
    pub status: RunStatus,
    pub outcome: String,
    /// Confidence in the test; 0 if the gate rejected it.
    pub confidence: Option<f64>,
    pub cost: RunCost,
    pub stages: BTreeMap<String, StageCost>,
    pub judgement: Judgement,
}

/// The grader's judgement of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// The run has this verdict.
    Verdict(Verdict),
    /// The run has no verdict, for this reason; it does not count.
    NotJudged(String),
}

/// Verdicts on a run; everything is false for a run without a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Strict fail-to-pass.
    pub fail_to_pass: bool,
    /// SWT-bench's success.
    pub success: bool,
    pub tdd_fail_to_pass: bool,
    pub tdd_score: f64,
    /// Class on the old code; `None` without tests.
    pub old_class: Option<OldClass>,
    /// Change coverage ΔC; `None` if it cannot be measured.
    pub coverage_delta: Option<f64>,
    pub reason: String,
}

fn judgement(graded: InstanceResult) -> Judgement {
    if let Some(failed) = &graded.infrastructure {
        let cause = first_line(&failed.cause);
        return Judgement::NotJudged(format!("not graded: {}: {cause}", failed.stage));
    }
    let counts = graded.has_patch && graded.applied;
    Judgement::Verdict(Verdict {
        fail_to_pass: counts && graded.strict.fail_to_pass,
        success: counts && graded.swt.success,
        tdd_fail_to_pass: counts && graded.tdd.fail_to_pass,
        tdd_score: if counts { graded.tdd.score } else { 0.0 },
        old_class: counts.then_some(graded.old_class),
        coverage_delta: counted_delta(&graded),
        reason: graded.strict.reason,
    })
}

/// Whether a prediction has a patch, and its judgement, by prediction set and instance.
type Verdicts = BTreeMap<(String, String), (bool, Judgement)>;

impl Data {
    /// Reads the folder of a comparison.
    ///
    /// # Errors
    ///
    /// Fails if the folder has no plan, or its runs, results or ledger cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let Some(plan) = Plan::read(folder)? else {
            return Err(Error::usage(format!("read {}", folder.display()))
                .cause("the folder has no comparison.json")
                .hint("pass a folder that `testwright compare --out` has written"));
        };
        let mut runs = stored_runs(folder)?;
        let mut verdicts = read_verdicts(folder)?;
        let mut scored = |cell: RunSpec| -> Option<ScoredRun> {
            let set = cell.system.prediction_set(cell.sample);
            let graded = verdicts.remove(&(set, cell.instance.clone()));
            if !cell.system.has_runs() {
                return Some(ScoredRun::of_prediction(graded));
            }
            let graded = graded.map(|(_, judgement)| judgement);
            let run = runs.remove(&cell.key())?;
            let judgement = match (run.status, graded) {
                (RunStatus::Infrastructure, _) => Judgement::NotJudged(run.outcome.clone()),
                (_, None) => Judgement::NotJudged("not graded yet".to_owned()),
                (RunStatus::Submitted, Some(graded)) => graded,
                // The grader's result on the missing prediction shows whether there was a line to cover.
                (RunStatus::NothingSubmitted, Some(Judgement::Verdict(graded))) => {
                    Judgement::Verdict(Verdict {
                        reason: run.outcome.clone(),
                        ..graded
                    })
                }
                (RunStatus::NothingSubmitted, Some(not_judged)) => not_judged,
            };
            Some(ScoredRun {
                folder: cell.folder().to_string_lossy().into_owned(),
                status: run.status,
                outcome: run.outcome,
                confidence: run.confidence,
                cost: run.cost,
                stages: run.stages,
                judgement,
            })
        };
        let systems = plan
            .systems
            .iter()
            .map(|system| SystemRuns {
                system: system.clone(),
                runs: plan
                    .instances
                    .iter()
                    .map(|instance| {
                        let cell = |sample| RunSpec {
                            instance: instance.id.clone(),
                            system: system.clone(),
                            sample,
                        };
                        let samples = 1..=system.samples(plan.samples);
                        samples.map(|sample| scored(cell(sample))).collect()
                    })
                    .collect(),
            })
            .collect();
        Ok(Data {
            dollars: spent_dollars(folder)?,
            plan,
            systems,
        })
    }

    /// Returns the reasons for missing verdicts, with the number of runs.
    pub fn not_judged(&self) -> Vec<(String, u64)> {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        for run in self.systems.iter().flat_map(|s| s.runs.iter().flatten()) {
            let reason = match run {
                None => "not run yet",
                Some(run) => match &run.judgement {
                    Judgement::NotJudged(why) => why,
                    Judgement::Verdict(_) => continue,
                },
            };
            *reasons.entry(reason.to_owned()).or_default() += 1;
        }
        reasons.into_iter().collect()
    }
}

impl SystemRuns {
    /// Returns the verdicts by instance, for instances that have any.
    pub fn verdicts(&self) -> impl Iterator<Item = (usize, Vec<&Verdict>)> {
        self.runs.iter().enumerate().filter_map(|(at, samples)| {
            let judged: Vec<&Verdict> = samples
                .iter()
                .flatten()
                .filter_map(ScoredRun::verdict)
                .collect();
            (!judged.is_empty()).then_some((at, judged))
        })
    }

    /// Returns the verdicts that rates count, by instance: all samples, or only the best sample for an upper bound.
    pub fn counted_verdicts(&self) -> impl Iterator<Item = Vec<&Verdict>> {
        let is_bound = self.system.oracle_samples.is_some();
        self.verdicts().map(move |(_, mut samples)| {
            if is_bound {
                samples.sort_by_key(|verdict| !verdict.fail_to_pass);
                samples.truncate(1);
            }
            samples
        })
    }

    /// Returns the runs with a verdict, each with the index of its instance.
    pub fn judged(&self) -> impl Iterator<Item = (usize, &ScoredRun, &Verdict)> {
        self.runs.iter().enumerate().flat_map(|(at, samples)| {
            let runs = samples.iter().flatten();
            runs.filter_map(move |run| Some((at, run, run.verdict()?)))
        })
    }

    /// Returns the verdict of the first sample on an instance.
    pub fn first(&self, instance: usize) -> Option<&Verdict> {
        self.runs[instance].first()?.as_ref()?.verdict()
    }

    pub fn all(&self) -> impl Iterator<Item = &ScoredRun> {
        self.runs.iter().flatten().flatten()
    }
}

impl ScoredRun {
    /// Returns the run of a system that is given by its predictions. It has no folder and no cost.
    fn of_prediction(graded: Option<(bool, Judgement)>) -> Self {
        let not_graded = || Judgement::NotJudged("not graded yet".to_owned());
        let (has_patch, judgement) = graded.unwrap_or_else(|| (true, not_graded()));
        ScoredRun {
            folder: String::new(),
            status: match has_patch {
                true => RunStatus::Submitted,
                false => RunStatus::NothingSubmitted,
            },
            outcome: "given as a prediction".to_owned(),
            confidence: None,
            cost: RunCost::default(),
            stages: BTreeMap::new(),
            judgement,
        }
    }

    pub fn is_submitted(&self) -> bool {
        self.status == RunStatus::Submitted
    }

    pub fn verdict(&self) -> Option<&Verdict> {
        match &self.judgement {
            Judgement::Verdict(verdict) => Some(verdict),
            Judgement::NotJudged(_) => None,
        }
    }
}

fn read_verdicts(folder: &Path) -> Result<Verdicts> {
    let path = folder.join(GRADING).join(results_file::FILE);
    if !path.is_file() {
        return Ok(Verdicts::new());
    }
    let read = ResultsFile::open(&path);
    let read = read.map_err(|error| Error::io(format!("read {}", path.display()), &error))?;
    let verdicts = read.by_name.into_iter();
    let verdicts = verdicts
        .map(|(name, StoredResult { graded, .. })| (name, (graded.has_patch, judgement(graded))));
    Ok(verdicts.collect())
}
