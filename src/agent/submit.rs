//! What the host does for tools that do not simply run in the sandbox ([`Route`]): trials run in a fork of it, and a
//! submission goes through the gate, and, where the approach wants it, past a reviewer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_agent_prompts::{Prompt, Review as ReviewPrompt, ReviewDoubt, TryAFix};
use testwright_tools::outcomes::report::{Outcome as TestOutcome, Report};
use testwright_tools::registry;
use testwright_tools::tool::Route;
use testwright_tools::tools::submission::{Change, Submission};

use super::failures::{infrastructure, prompt};
use super::submission_policy::OnSubmit;
use super::{Outcome, Run};
use crate::gate::{self, Evidence, FixTrial, Review, ReviewVerdict, SubmissionCheck, Verdict};
use crate::model::Message;
use crate::trajectory::{Answer, Purpose};

/// What one submission led to, as kept in the trajectory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SubmissionRecord {
    submission: Submission,
    verdict: Verdict,
    review: Option<Review>,
    /// A candidate fix was asked for instead of accepting.
    asked_for_fix: bool,
    /// The reviewer's doubts were sent back instead of accepting.
    doubted: bool,
    #[serde(default)]
    reason: Option<String>,
}

impl SubmissionRecord {
    fn is_final(&self) -> bool {
        self.verdict.accepted() && !self.asked_for_fix && !self.doubted
    }
}

/// What the toolbox tells of the trial of a fix.
#[derive(Deserialize)]
struct Trial {
    patch: String,
    report: Report,
}

type Facts = (String, bool, Value);

impl Run {
    pub(super) async fn call_in_fork(
        &mut self,
        tool: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<Facts, Outcome> {
        let answer = self
            .session
            .call_in_fork(tool, arguments, deadline)
            .await
            .map_err(infrastructure)?;
        if !answer.refused {
            self.book_trial(&answer.data);
        }
        Ok((answer.text, answer.refused, answer.data))
    }

    fn book_trial(&mut self, data: &Value) {
        if let Ok(trial) = Trial::deserialize(data) {
            let outcomes = trial
                .report
                .tests
                .into_iter()
                .map(|test| (test.id, test.outcome))
                .collect();
            self.trials.push(FixTrial {
                patch: trial.patch,
                outcomes,
            });
        }
    }

    pub(super) async fn submit(
        &mut self,
        arguments: &Value,
        deadline: Duration,
    ) -> Result<Facts, Outcome> {
        let check = gate::check_submission(
            &self.session,
            &self.source,
            &self.issue.text(),
            arguments,
            deadline,
        )
        .await
        .map_err(infrastructure)?;
        let (submission, verdict) = match check {
            SubmissionCheck::Refused(text) => return Ok((text, true, Value::Null)),
            SubmissionCheck::Judged {
                submission,
                verdict,
            } => (*submission, verdict),
        };
        let mut submitted = SubmissionRecord {
            submission,
            verdict,
            review: None,
            asked_for_fix: false,
            doubted: false,
            reason: arguments
                .get("reason")
                .and_then(Value::as_str)
                .map(str::to_owned),
        };
        let mut text = if self.submission_policy.feedback {
            submitted.verdict.text()
        } else {
            "Submitted.".to_owned()
        };
        if submitted.verdict.accepted() {
            if self.submission_policy.wants_fix
                && !self.fix_asked_for
                && self.trials_of(&submitted.verdict).is_empty()
            {
                submitted.asked_for_fix = true;
                text = prompt(TryAFix {}.render())?;
            } else if self.submission_policy.reviews > 0 {
                submitted.review = self.review(&submitted).await?;
                if let Some(review) = &submitted.review
                    && review.verdict == ReviewVerdict::No
                    && self.doubts < self.submission_policy.reviews
                {
                    submitted.doubted = true;
                    text = prompt(
                        ReviewDoubt {
                            reason: review.reason.clone(),
                        }
                        .render(),
                    )?;
                }
            }
        }
        self.book_submission(&submitted);
        let data = serde_json::to_value(&submitted).unwrap_or_default();
        Ok((text, false, data))
    }

    /// Facts of a recorded answer, for a run that goes on.
    pub(super) fn take_facts(&mut self, answer: &Answer) {
        match registry::find(&answer.tool).map(|tool| tool.route()) {
            Some(Route::Fork) if !answer.refused => self.book_trial(&answer.data),
            Some(Route::Gate) => {
                if let Ok(submitted) = SubmissionRecord::deserialize(&answer.data) {
                    self.book_submission(&submitted);
                }
            }
            _ => {}
        }
    }

    fn book_submission(&mut self, submitted: &SubmissionRecord) {
        self.fix_asked_for |= submitted.asked_for_fix;
        self.doubts += u32::from(submitted.doubted);
        self.submission = submitted.is_final().then(|| {
            (
                submitted.submission.patch.clone(),
                Box::new(self.evidence(submitted)),
            )
        });
    }

    /// After a submission was answered: has the run ended?
    pub(super) fn submitted(&mut self, when: OnSubmit, answer: &Answer) -> Option<Outcome> {
        if let Some((patch, evidence)) = self.submission.take() {
            return Some(Outcome::Accepted { patch, evidence });
        }
        if when == OnSubmit::UntilAccepted || answer.refused {
            return None;
        }
        let submitted = SubmissionRecord::deserialize(&answer.data).ok()?;
        Some(Outcome::Refused {
            patch: submitted.submission.patch,
            findings: submitted
                .verdict
                .findings
                .into_iter()
                .map(|finding| finding.text)
                .collect(),
        })
    }

    fn trials_of(&self, verdict: &Verdict) -> Vec<FixTrial> {
        self.trials
            .iter()
            .filter(|trial| {
                verdict
                    .failing
                    .iter()
                    .any(|test| trial.outcomes.iter().any(|(id, _)| *id == test.id))
            })
            .cloned()
            .collect()
    }

    fn evidence(&self, submitted: &SubmissionRecord) -> Evidence {
        let verdict = &submitted.verdict;
        let spent = &self.budget.spent;
        let words: Vec<String> = verdict
            .failing
            .iter()
            .map(|test| format!("{} {} {}", test.exception, test.message, test.id))
            .chain(submitted.reason.clone())
            .chain(sources(&submitted.submission))
            .collect();
        Evidence {
            tests: verdict.failing.clone(),
            passing: verdict.passing.clone(),
            issue_sentence: gate::best_sentence(&self.issue.text(), &words.join(" ")),
            reason: submitted.reason.clone(),
            reruns: submitted
                .submission
                .reruns
                .iter()
                .map(|rerun| {
                    let failed = rerun
                        .report
                        .tests
                        .iter()
                        .filter(|test| {
                            matches!(
                                test.outcome,
                                TestOutcome::Failed | TestOutcome::Error | TestOutcome::Absent
                            )
                        })
                        .count()
                        + rerun.report.collection_errors.len();
                    format!(
                        "hash seed {}, order {}: {failed} failed again",
                        rerun.hash_seed, rerun.order
                    )
                })
                .collect(),
            fixes: self.trials_of(verdict),
            review: submitted.review.clone(),
            dropped: verdict.dropped.clone(),
            steps: spent.steps,
            prompt_tokens: spent.prompt_tokens,
            cached_tokens: spent.cached_tokens,
            completion_tokens: spent.completion_tokens,
            dollars: spent.dollars,
            seconds: self.budget.elapsed().as_secs_f64(),
        }
    }

    async fn review(&mut self, submitted: &SubmissionRecord) -> Result<Option<Review>, Outcome> {
        let failures: Vec<String> = submitted
            .verdict
            .failing
            .iter()
            .map(|test| {
                format!(
                    "{}\n{} {}\n{}",
                    test.id,
                    test.origin(),
                    test.exception,
                    test.message
                )
            })
            .collect();
        let fixes: Vec<String> = self
            .trials_of(&submitted.verdict)
            .iter()
            .map(|trial| {
                let outcome = if trial.cures(&submitted.verdict.failing) {
                    "pass"
                } else {
                    "still fail"
                };
                format!("With this edit the tests {outcome}:\n{}", trial.patch)
            })
            .collect();
        let text = prompt(
            ReviewPrompt {
                issue: self.issue.text(),
                tests: sources(&submitted.submission)
                    .collect::<Vec<_>>()
                    .join("\n\n"),
                failure: failures.join("\n\n"),
                fixes: fixes.join("\n\n"),
            }
            .render(),
        )?;
        let reply = self
            .side_reply(Purpose::Review, vec![Message::User { content: text }])
            .await?;
        Ok(reply.map(|reply| read_review(&reply.content)))
    }
}

fn sources(submission: &Submission) -> impl Iterator<Item = String> {
    submission
        .contributed
        .iter()
        .filter(|test| test.change != Change::Deleted)
        .map(|test| format!("# {}\n{}", test.id, test.source))
}

/// The verdict is the first of the three words that occurs; what cannot be read does not count as a doubt.
fn read_review(text: &str) -> Review {
    let verdict = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .find_map(|word| match word.to_ascii_uppercase().as_str() {
            "YES" => Some(ReviewVerdict::Yes),
            "NO" => Some(ReviewVerdict::No),
            "UNSURE" => Some(ReviewVerdict::Unsure),
            _ => None,
        })
        .unwrap_or(ReviewVerdict::Unsure);
    let reason = text
        .trim()
        .trim_start_matches(['*', '#'])
        .trim_start_matches("YES")
        .trim_start_matches("NO")
        .trim_start_matches("UNSURE")
        .trim_start_matches(['*', '.', ',', ':', ' ', '\n'])
        .chars()
        .take(1_500)
        .collect();
    Review { verdict, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_read_in_the_forms_in_which_models_write_it() {
        for (text, verdict, reason) in [
            (
                "YES\nIt is the same error.",
                ReviewVerdict::Yes,
                "It is the same error.",
            ),
            (
                "**NO**. Another function.",
                ReviewVerdict::No,
                "Another function.",
            ),
            (
                "Unsure: hard to say",
                ReviewVerdict::Unsure,
                "Unsure: hard to say",
            ),
            ("I cannot tell", ReviewVerdict::Unsure, "I cannot tell"),
        ] {
            let review = read_review(text);
            assert_eq!((review.verdict, review.reason.as_str()), (verdict, reason));
        }
    }
}
