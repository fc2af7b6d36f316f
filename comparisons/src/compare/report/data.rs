//! What a report is made of: runs joined with the verdicts of the grader.

use std::collections::BTreeMap;
use std::path::Path;

use testwright_evals::InstanceResult;
use testwright_evals::verdict::OldClass;
use testwright_sandboxes::plain_file::{Lines, MAX_RECORDS};

use crate::compare::run_record::stored_runs;
use crate::compare::run_record::{RunCost, StageCost};
use crate::compare::{Cell, GRADING, Plan, RunStatus, SPENDING, System};
use testwright_config::error::{Error, Result};
use testwright_models::ceiling;

/// Of the issue, in tokens (SWT-bench §5.4).
pub const LENGTHS: [(&str, u64); 4] = [
    ("≤ 100", 100),
    ("≤ 200", 200),
    ("≤ 500", 500),
    ("> 500", u64::MAX),
];

/// Where a group of this name stands; those by another measure have no place of their own.
pub fn length_place(name: &str) -> usize {
    let place = LENGTHS.iter().position(|(known, _)| *known == name);
    place.unwrap_or(LENGTHS.len())
}

pub struct Data {
    pub plan: Plan,
    /// As in the plan.
    pub systems: Vec<SystemRuns>,
    /// What the ledger says was spent.
    pub dollars: Option<f64>,
}

/// The runs of a system.
pub struct SystemRuns {
    pub system: System,
    /// By instance, in the order of the plan, and by sample; `None` for a run that was not made.
    pub runs: Vec<Vec<Option<ScoredRun>>>,
}

pub struct ScoredRun {
    /// Of the run, relative to the report.
    pub folder: String,
    pub status: RunStatus,
    pub outcome: String,
    /// Of a test; 0 where the gate found fault with it.
    pub confidence: Option<f64>,
    pub cost: RunCost,
    pub stages: BTreeMap<String, StageCost>,
    pub judgement: Judgement,
}

/// What the grader says.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    Verdict(Verdict),
    /// Why there is none: nobody's failure.
    NotJudged(String),
}

/// Of a run without a test, everything is false.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Strict.
    pub fail_to_pass: bool,
    /// SWT-bench's success.
    pub success: bool,
    pub tdd_fail_to_pass: bool,
    pub tdd_score: f64,
    /// How the tests end on the old code; `None` without tests.
    pub old_class: Option<OldClass>,
    /// ΔC; `None` where there is nothing to measure.
    pub coverage_delta: Option<f64>,
    pub reason: String,
}

fn judgement(graded: InstanceResult) -> Judgement {
    if let Some(failed) = graded.infrastructure {
        let cause = failed.cause.lines().next().unwrap_or_default();
        return Judgement::NotJudged(format!("not graded: {}: {cause}", failed.stage));
    }
    let counts = graded.given && graded.applied;
    let has_no_lines = graded.coverage_lines == Some(0);
    let is_unknown = graded.coverage_problem.is_some() && graded.coverage_lines.is_none();
    Judgement::Verdict(Verdict {
        fail_to_pass: counts && graded.strict.fail_to_pass,
        success: counts && graded.swt.success,
        tdd_fail_to_pass: counts && graded.tdd.fail_to_pass,
        tdd_score: if counts { graded.tdd.score } else { 0.0 },
        old_class: counts.then_some(graded.old_class),
        coverage_delta: match counts {
            _ if has_no_lines || is_unknown => None,
            true => graded.coverage_delta,
            false => Some(0.0),
        },
        reason: graded.strict.reason,
    })
}

type Verdicts = BTreeMap<(String, String), Judgement>;

impl Data {
    /// Of a comparison's folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let Some(plan) = Plan::read(folder)? else {
            return Err(Error::usage(format!("read {}", folder.display()))
                .cause("it has no comparison.json")
                .hint("name a folder that `testwright compare --out` wrote"));
        };
        let mut runs = stored_runs(folder)?;
        let mut verdicts = read_verdicts(folder)?;
        let mut scored = |cell: Cell| -> Option<ScoredRun> {
            let run = runs.remove(&cell.key())?;
            let set = cell.system.prediction_set(cell.sample);
            let graded = verdicts.remove(&(set, cell.instance.clone()));
            let judgement = match (run.status, graded) {
                (RunStatus::Infrastructure, _) => Judgement::NotJudged(run.outcome.clone()),
                (_, None) => Judgement::NotJudged("not graded yet".to_owned()),
                (RunStatus::Submitted, Some(graded)) => graded,
                // Of what was not there, the grader says whether there was a line to cover.
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
                        let cell = |sample| Cell {
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
        let path = folder.join(SPENDING);
        let dollars = ceiling::spent(&path)
            .map_err(|error| Error::io(format!("read {}", path.display()), &error))?;
        Ok(Data {
            plan,
            systems,
            dollars,
        })
    }

    /// Reasons, and how many runs each concerns.
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
    /// Verdicts of the samples of each instance that has any.
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

    /// Of its first sample on this instance.
    pub fn first(&self, instance: usize) -> Option<&Verdict> {
        self.runs[instance].first()?.as_ref()?.verdict()
    }

    pub fn all(&self) -> impl Iterator<Item = &ScoredRun> {
        self.runs.iter().flatten().flatten()
    }
}

impl ScoredRun {
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
    let path = folder.join(GRADING).join("results.jsonl");
    if !path.is_file() {
        return Ok(Verdicts::new());
    }
    let failed = |error: std::io::Error| Error::io(format!("read {}", path.display()), &error);
    let mut lines = Lines::open(&path, MAX_RECORDS).map_err(failed)?;
    let mut verdicts = Verdicts::new();
    // Half a line is one that is written at this moment; lines of other versions are as good as none.
    while let Some(line) = lines.next_line().map_err(failed)? {
        if let Ok(graded) = serde_json::from_slice::<InstanceResult>(line) {
            let name = (graded.prediction.clone(), graded.instance_id.clone());
            verdicts.insert(name, judgement(graded));
        }
    }
    Ok(verdicts)
}
