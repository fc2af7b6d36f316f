//! Handles a submission on the host. The gate decides on it; if the approach asks for it, candidate fixes are
//! tried and a reviewer reads it. A model may also report that the issue cannot fail here.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use testwright_agent_prompts::{NothingTried, Prompt, ReasonMissing, TryAFix};
use testwright_tools::registry;
use testwright_tools::tool::{Route, Tool};
use testwright_tools::tools::Submit;

use super::review::{AcceptedSubmission, doubt_message};
use super::submission_policy::OnSubmit;
use super::submission_record::SubmissionRecord;
use super::{Flow, Outcome, Run};
use crate::check;
use crate::confidence::Signals;
use crate::gate::{self, Evidence, FixTrial, Review, ReviewVerdict, Verdict};
use crate::trajectory::RecordedAnswer;
use testwright_models::ToolCall;

/// Maximum number of calls listed when no test is submitted.
const MAX_LISTED_CALLS: usize = 20;

/// Begins the answer to a submission that equals the refused one before it.
const UNCHANGED: &str =
    "Nothing has changed since the last submission, so the tests did not run again.";

type CallResult = (String, bool, Value);

impl Run {
    pub(super) async fn submit(
        &mut self,
        arguments: &Value,
        deadline: Duration,
    ) -> Flow<CallResult> {
        if self.session.has_wanted_lines() {
            return self.submit_for_coverage(arguments, deadline).await;
        }
        let reason = arguments.get("reason").and_then(Value::as_str);
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        if arguments.get("reproducible").and_then(Value::as_bool) == Some(false) {
            return self.abstain(reason);
        }
        let changes = gate::submitted_changes(&self.session, arguments, deadline).await;
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => return Ok((error.refusal()?, true, Value::Null)),
        };
        let digest = Some(changes.digest());
        if let Some(refused) = &self.refused_submission
            && refused.changes == digest
        {
            let text = format!("{UNCHANGED}\n{}", self.verdict_text(&refused.verdict));
            let data = serde_json::to_value(refused).unwrap_or_default();
            return Ok((text, false, data));
        }
        let check = gate::check_changes(
            &self.session,
            &self.source,
            &self.issue.text(),
            arguments,
            &changes,
            deadline,
        )
        .await;
        let (submission, mut verdict) = match check {
            Ok(judged) => judged,
            Err(error) => return Ok((error.refusal()?, true, Value::Null)),
        };
        verdict.require_files(&submission, &self.issue.wish.test_files);
        let mut submitted = SubmissionRecord {
            submission,
            verdict,
            fixes: Vec::new(),
            review: None,
            requested_fix: false,
            returned_doubts: false,
            reason: reason.map(str::to_owned),
            changes: digest,
        };
        let mut text = self.verdict_text(&submitted.verdict);
        if submitted.verdict.accepted() {
            let failing = &submitted.verdict.failing;
            submitted.fixes = self.trials_on_submitted_tests(failing, deadline).await?;
            let cures = |fix: &FixTrial| fix.on_submitted_tests && fix.makes_pass(failing);
            if submitted.fixes.iter().any(cures) {
                // With this fix, all later assertions ran and passed.
                for test in &mut submitted.verdict.failing {
                    test.unreached.clear();
                }
            }
            let is_tried = submitted.fixes.iter().any(|fix| fix.crash.is_none());
            if self.submission_policy.wants_fix && !self.fix_asked_for && !is_tried {
                submitted.requested_fix = true;
                text = TryAFix {}.render()?;
            } else if let Some(reviews) = self.submission_policy.reviews {
                let reviewed = AcceptedSubmission {
                    submission: &submitted.submission,
                    verdict: &submitted.verdict,
                    fixes: &submitted.fixes,
                    // If doubts are not sent back, the reason is not that of the tests' author.
                    reason: reason.filter(|_| reviews > 0),
                };
                submitted.review = self.review(&reviewed, deadline).await?;
                if let Some(review) = &submitted.review
                    && self.may_doubt(review, reviews)
                    && let Some(doubt) = doubt_message(review)
                {
                    submitted.returned_doubts = true;
                    text = doubt.render()?;
                }
            }
        }
        self.record_submission(&submitted);
        let data = serde_json::to_value(&submitted).unwrap_or_default();
        Ok((text, false, data))
    }

    /// Returns the verdict for the model, if the approach sends it back.
    fn verdict_text(&self, verdict: &Verdict) -> String {
        match self.submission_policy.feedback {
            true => verdict.text(),
            false => "Submitted.".to_owned(),
        }
    }

    /// Returns whether a doubt may be sent back: a NO as often as the approach says, a weaker doubt once.
    fn may_doubt(&self, review: &Review, reviews: u32) -> bool {
        self.doubts
            < match review.verdict {
                ReviewVerdict::No => reviews,
                _ => reviews.min(1),
            }
    }

    /// Accepts the model's report that the issue cannot fail here, if it has tried and gives a reason.
    fn abstain(&mut self, reason: Option<&str>) -> Flow<CallResult> {
        let Some(reason) = reason else {
            return Ok((ReasonMissing {}.render()?, true, Value::Null));
        };
        if self.code_calls.is_empty() {
            return Ok((NothingTried {}.render()?, true, Value::Null));
        }
        // The model's explanation instead of a test.
        let data = json!({ "abstained": reason });
        Ok(("No test was handed in.".to_owned(), false, data))
    }

    /// Notes a call if it ran code, for a report that the issue cannot fail here.
    pub(super) fn note_code_call(&mut self, call: &ToolCall, answer: &RecordedAnswer) {
        let runs_code = registry::find(&call.name).is_some_and(|tool| tool.runs_code());
        if runs_code && call.name != Submit::NAME && !answer.refused {
            (self.code_calls).extend(summarize_call(call, &answer.result.content));
        }
    }

    /// Restores the facts of a recorded answer in a resumed run.
    pub(super) fn restore_facts(&mut self, answer: &RecordedAnswer) {
        match registry::find(&answer.tool).map(|tool| tool.route()) {
            Some(Route::Fork) if !answer.refused => self.record_trial(&answer.data),
            Some(Route::Gate) => {
                if let Ok(submitted) = SubmissionRecord::deserialize(&answer.data) {
                    self.record_submission(&submitted);
                } else {
                    self.take_coverage(answer);
                }
            }
            _ => {}
        }
    }

    fn record_submission(&mut self, submitted: &SubmissionRecord) {
        self.fix_asked_for |= submitted.requested_fix;
        self.doubts += u32::from(submitted.returned_doubts);
        self.reviews += usize::from(submitted.review.is_some());
        let verdict = &submitted.verdict;
        let is_lasting = !verdict.accepted() && !verdict.is_by_chance(&submitted.submission);
        self.refused_submission = is_lasting.then(|| Box::new(submitted.clone()));
        let patch = &submitted.submission.patch;
        self.submission =
            (submitted.is_final()).then(|| (patch.clone(), Box::new(self.evidence(submitted))));
    }

    /// Returns the outcome of the run, if an answered submission ends it.
    pub(super) fn outcome_after_submission(
        &mut self,
        when: OnSubmit,
        answer: &RecordedAnswer,
    ) -> Option<Outcome> {
        if let Some(reason) = answer.data["abstained"].as_str() {
            let first = self.code_calls.len().saturating_sub(MAX_LISTED_CALLS);
            return Some(Outcome::Abstained {
                reason: reason.to_owned(),
                python: self.python(),
                calls: self.code_calls[first..].to_vec(),
            });
        }
        if let Some((patch, evidence)) = self.submission.take() {
            return Some(Outcome::Accepted { patch, evidence });
        }
        if when == OnSubmit::UntilAccepted || answer.refused {
            return None;
        }
        let submitted = SubmissionRecord::deserialize(&answer.data).ok()?;
        let findings = submitted.verdict.findings.into_iter();
        Some(Outcome::Refused {
            patch: submitted.submission.patch,
            findings: findings.map(|finding| finding.text).collect(),
        })
    }

    fn evidence(&self, submitted: &SubmissionRecord) -> Evidence {
        let verdict = &submitted.verdict;
        let words: Vec<String> = verdict
            .failing
            .iter()
            .map(|test| format!("{} {} {}", test.exception, test.message, test.id))
            .chain(submitted.reason.clone())
            .chain(gate::contributed(&submitted.submission).map(|test| test.source.clone()))
            .collect();
        let mut evidence = Evidence {
            tests: verdict.failing.clone(),
            passing: verdict.passing.clone(),
            issue_sentence: (submitted.reason.as_deref())
                .and_then(|reason| gate::quoted_sentence(&self.issue.text(), reason))
                .or_else(|| gate::best_sentence(&self.issue.text(), &words.join(" "))),
            reason: submitted.reason.clone(),
            reruns: gate::describe_reruns(&submitted.submission, &verdict.failing),
            python: Some(self.python()),
            fixes: submitted.fixes.clone(),
            review: submitted.review.clone(),
            signals: self.signals(submitted),
            extra_inputs: [self.issue.wish.labels(), self.given.clone()].concat(),
            dropped: verdict.dropped.clone(),
            ..Evidence::default()
        };
        self.add_spent(&mut evidence);
        evidence
    }

    /// Returns the signals of a submission; `None` if the old code cannot be read.
    fn signals(&self, submitted: &SubmissionRecord) -> Option<Signals> {
        let (submission, verdict) = (&submitted.submission, &submitted.verdict);
        let tree = self.tree().ok()?;
        let evidence = check::submission_evidence(submission, verdict, &self.issue.text(), &tree);
        evidence.ok().map(|evidence| evidence.signals)
    }

    /// Adds the cost of the run so far.
    pub(super) fn add_spent(&self, evidence: &mut Evidence) {
        let spent = &self.budget.spent;
        evidence.steps = spent.steps;
        evidence.reviews = self.reviews;
        evidence.prompt_tokens = spent.prompt_tokens;
        evidence.cached_tokens = spent.cached_tokens;
        evidence.completion_tokens = spent.completion_tokens;
        evidence.dollars = spent.dollars;
        evidence.seconds = self.budget.elapsed().as_secs_f64();
    }
}

/// Summarizes a call in one line. For code, this is its first line and the last line it printed, which names
/// the exception. For a test run, it is the first line, which gives the result.
fn summarize_call(call: &ToolCall, answer: &str) -> Option<String> {
    let has_text = |line: &&str| !line.trim().is_empty();
    let arguments = call.arguments.value();
    let name = &call.name;
    match arguments["code"].as_str() {
        Some(code) => {
            let code = code.lines().find(has_text)?.trim();
            Some(format!(
                "{name} `{code}`: {}",
                answer.lines().rfind(has_text)?
            ))
        }
        None => Some(format!("{name}: {}", answer.lines().next()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tried_calls_show_code_and_result() {
        let call = |name: &str, arguments: Value| ToolCall::new("", name, arguments);
        let python = call("run_python", json!({"code": "\nimport pkg\npkg.f()\n"}));
        let raised =
            "Traceback (most recent call last):\n  File \"snippet.py\"\nValueError: no\n\n";
        assert_eq!(
            summarize_call(&python, raised).as_deref(),
            Some("run_python `import pkg`: ValueError: no")
        );
        let pytest = call("run_pytest", json!({}));
        assert_eq!(
            summarize_call(&pytest, "1 test: 1 passed\n\npassed a").as_deref(),
            Some("run_pytest: 1 test: 1 passed")
        );
    }
}
