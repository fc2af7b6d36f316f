//! Several drafts in one run, each with its own conversation and share of the budget.
//!
//! The choice among the drafts that the gate accepts uses the tests × fixes matrix: every candidate fix of
//! every draft is tried on every accepted draft.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testwright_sandboxes::repository::touched_paths;
use testwright_tools::tool::Tool;
use testwright_tools::tools::TryFix;

use super::fix_trials::{RecordedTrial, latest_versions};
use super::{Flow, Limits, Outcome, Run};
use crate::gate::{Evidence, FixTrial};
use crate::session::Contents;
use crate::trajectory::Event;

/// Number of candidate fixes of one draft that are tried on the others; the last ones count.
const MAX_FIXES: usize = 3;

/// The results of a run's drafts so far.
pub struct Drafts {
    planned: u32,
    begun: u32,
    /// Limits of the run as a whole.
    limits: Limits,
    accepted: Vec<Draft>,
    fixes: Vec<CandidateFix>,
    /// Outcome of the draft without an accepted test that came furthest.
    miss: Option<Outcome>,
}

/// A draft that the gate accepted.
struct Draft {
    number: u32,
    patch: String,
    /// Contents of the files that the patch changes.
    contents: Contents,
    evidence: Box<Evidence>,
    /// Patches of other drafts' fixes that were tried on it, whatever the result.
    tried: Vec<String>,
}

/// A candidate fix from any draft.
struct CandidateFix {
    patch: String,
    edits: Vec<Value>,
    /// Number of the call that first tried it.
    origin: usize,
    /// Numbers of the drafts that produced it.
    drafts: Vec<u32>,
}

impl Drafts {
    /// Creates drafts for a run; `planned` is their maximum number.
    pub fn new(run: &Run, planned: u32) -> Self {
        Drafts {
            planned,
            begun: 0,
            limits: run.budget.limits.clone(),
            accepted: Vec::new(),
            fixes: Vec::new(),
            miss: None,
        }
    }

    /// Starts the next draft, with the old code in the workspace and an empty conversation.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox or the record fails.
    pub async fn begin(&mut self, run: &mut Run) -> Flow {
        self.begun += 1;
        if self.begun > 1 {
            run.forget_conversation();
            run.write_files(&BTreeMap::new()).await?;
        }
        run.ends_before = run.session.ended_by_code();
        let remaining_drafts = self.planned.saturating_sub(self.begun) + 1;
        run.budget.limits = run.budget.share(remaining_drafts);
        Ok(())
    }

    /// Records how the draft ended. An outcome that ends the whole run is returned as an error.
    ///
    /// # Errors
    ///
    /// Fails with `outcome` if it ends the whole run, or with another one if the sandbox or the record
    /// fails.
    pub async fn end(&mut self, run: &mut Run, outcome: Outcome) -> Flow {
        run.budget.limits = self.limits.clone();
        if !outcome.is_final() {
            return Err(outcome);
        }
        let workspace = run.workspace().await?;
        run.draft_ended(self.begun, &outcome)?;
        let tried = latest_versions(&run.trials).into_iter().rev();
        let usable = tried.filter(|tried| tried.trial.crash.is_none() && !tried.edits.is_empty());
        for tried in usable.take(MAX_FIXES) {
            let patch = &tried.trial.patch;
            match self.fixes.iter_mut().find(|fix| fix.patch == *patch) {
                Some(fix) => fix.drafts.push(self.begun),
                None => self.fixes.push(CandidateFix {
                    patch: patch.clone(),
                    edits: tried.edits.clone(),
                    origin: tried.call,
                    drafts: vec![self.begun],
                }),
            }
        }
        match outcome {
            Outcome::Accepted { patch, evidence } => {
                let names = touched_paths(&patch);
                let files = workspace.into_iter();
                self.accepted.push(Draft {
                    number: self.begun,
                    contents: files.filter(|(path, _)| names.contains(path)).collect(),
                    patch,
                    evidence,
                    tried: Vec::new(),
                });
            }
            // On a tie, the first one counts.
            other if (self.miss.as_ref()).is_none_or(|miss| rank(&other) < rank(miss)) => {
                self.miss = Some(other);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether two accepted drafts pass with each other's fixes, so that a further draft could hardly
    /// refute them.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox or the record fails.
    pub async fn agree(&mut self, run: &mut Run) -> Flow<bool> {
        if self.accepted.len() < 2 || self.begun >= self.planned {
            return Ok(false);
        }
        self.try_all_fixes(run).await?;
        let cures = |from: &Draft, to: &Draft| {
            let mut fixes = self.fixes.iter();
            fixes.any(|fix| fix.drafts.contains(&from.number) && to.passes_with(fix))
        };
        let drafts = self.accepted.iter().enumerate();
        Ok(drafts.clone().any(|(at, a)| {
            let mut others = self.accepted[..at].iter();
            others.any(|b| cures(a, b) && cures(b, a))
        }))
    }

    /// Returns the accepted draft with which most candidate fixes and other drafts agree.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox or the record fails.
    pub async fn choose(mut self, run: &mut Run) -> Flow<Outcome> {
        self.try_all_fixes(run).await?;
        let row = |draft: &Draft| {
            let fixes = self.fixes.iter();
            fixes.map(|fix| draft.passes_with(fix)).collect()
        };
        let matrix: Vec<Vec<bool>> = self.accepted.iter().map(row).collect();
        let Some(best) = best(&matrix, &self.accepted) else {
            let nothing = || Outcome::nothing("no draft ended in a test");
            return Ok(self.miss.unwrap_or_else(nothing));
        };
        let lines = self.accepted.iter().zip(&matrix).map(|(draft, row)| {
            let cured = row.iter().filter(|cured| **cured).count();
            format!(
                "draft {} passes with {cured} of {} candidate fixes",
                draft.number,
                row.len()
            )
        });
        let mut result: Vec<String> = lines.collect();
        if self.begun < self.planned {
            result.push("two drafts agree, and no further one was written".to_owned());
        }
        let Draft {
            number,
            patch,
            mut evidence,
            ..
        } = self.accepted.swap_remove(best);
        result.push(format!("chosen: draft {number}"));
        run.stage("choose", result.join("\n"))?;
        // A fix that makes no draft pass is no evidence about this one.
        let is_fix = |patch: &str| {
            let mut columns = self.fixes.iter().enumerate();
            columns.any(|(at, fix)| fix.patch == patch && matrix.iter().any(|row| row[at]))
        };
        let all_misses = !matrix.iter().flatten().any(|cured| *cured);
        (evidence.fixes).retain(|trial| all_misses || is_fix(&trial.patch));
        run.add_spent(&mut evidence);
        Ok(Outcome::Accepted { patch, evidence })
    }

    async fn try_all_fixes(&mut self, run: &mut Run) -> Flow {
        for at in 0..self.accepted.len() {
            self.try_fixes(run, at).await?;
        }
        Ok(())
    }

    /// Tries the missing candidate fixes on an accepted draft.
    async fn try_fixes(&mut self, run: &mut Run, at: usize) -> Flow {
        let draft = &mut self.accepted[at];
        let missing =
            |fix: &&CandidateFix| draft.trial(fix).is_none() && !draft.tried.contains(&fix.patch);
        let missing: Vec<&CandidateFix> = self.fixes.iter().filter(missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        run.write_contents(&draft.contents).await?;
        for fix in missing {
            if run.replay.is_over() && run.budget.left().is_zero() {
                break;
            }
            // Code of a fix that ends the tool server must not end the run.
            run.ends_before = run.session.ended_by_code();
            draft.tried.push(fix.patch.clone());
            let arguments = json!({ "edits": fix.edits });
            let answer = run.stage_call(TryFix::NAME, arguments).await?;
            for mut tried in RecordedTrial::read(&answer.data, 0) {
                tried.trial.on_submitted_tests = true;
                tried.trial.origin = Some(fix.origin);
                draft.evidence.fixes.push(tried.trial);
            }
        }
        Ok(())
    }
}

impl Draft {
    /// Returns the trial of a fix on the tests as they were submitted.
    fn trial(&self, fix: &CandidateFix) -> Option<&FixTrial> {
        let mut trials = self.evidence.fixes.iter();
        trials.find(|trial| trial.on_submitted_tests && trial.patch == fix.patch)
    }

    fn passes_with(&self, fix: &CandidateFix) -> bool {
        let trial = self.trial(fix);
        trial.is_some_and(|trial| trial.is_valid_fix(&self.evidence.tests))
    }

    fn confidence(&self) -> f64 {
        self.evidence.confidence().unwrap_or_default()
    }
}

/// Returns the index of the draft with the highest score. Each fix that makes a draft pass counts once for
/// every draft it makes pass. So tests and fixes that agree with each other outweigh isolated ones.
fn best(matrix: &[Vec<bool>], drafts: &[Draft]) -> Option<usize> {
    let support = |fix: usize| matrix.iter().filter(|row| row[fix]).count();
    let score = |row: &[bool]| -> usize {
        let cured = row.iter().enumerate().filter(|(_, cured)| **cured);
        cured.map(|(fix, _)| support(fix)).sum()
    };
    // On a tie, the confidence decides, then the order.
    (0..drafts.len()).rev().max_by(|a, b| {
        let scores = score(&matrix[*a]).cmp(&score(&matrix[*b]));
        let confidence = |at: usize| drafts[at].confidence();
        scores.then(confidence(*a).total_cmp(&confidence(*b)))
    })
}

/// Ranks the outcome of a draft without an accepted test: the lower, the more it says about the issue.
fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Refused { .. } => 0,
        Outcome::Abstained { .. } => 1,
        Outcome::Nothing { .. } => 2,
        _ => 3,
    }
}

impl Run {
    /// Clears the conversation for the next draft.
    pub(crate) fn forget_conversation(&mut self) {
        self.messages.clear();
        self.code_calls.clear();
        self.trials.clear();
        self.last_fix.clear();
        self.fix_asked_for = false;
        self.doubts = 0;
        self.refused_submission = None;
        self.submission = None;
    }

    fn draft_ended(&mut self, number: u32, outcome: &Outcome) -> Flow {
        if self.replay.draft_ended() {
            return Ok(());
        }
        let (limit, reason) = match outcome {
            Outcome::OutOfBudget { limit } => (Some(*limit), None),
            Outcome::Nothing { reason } => (None, Some(reason.clone())),
            _ => (None, None),
        };
        self.record(&Event::DraftEnded {
            number,
            limit,
            reason,
        })
    }
}
