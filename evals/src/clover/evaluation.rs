//! Grades answers: exact match, execution, refined execution (task I), success (tasks II and III).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testwright_sandboxes::sandbox::Result;
use testwright_tools::python::{RepositoryIndex, all_assertions};

use super::answer::{self, Filled, Form, RejectedAnswer, RunnableAnswer};
use super::blanks::{is_copied, trivial};
use super::blocks::are_covered;
use super::context::{Prompts, context};
use super::problem::{Block, Budget, Problem, Question, Task, sha256};
use super::targets::calls;
use crate::cases::{self, Case, CaseCoverage, CaseEnvironment, CaseOptions, CaseOutcome};
use crate::large_stack::on_large_stack;
use crate::untrusted_text::excerpt;

/// Maximum characters of a reason.
const REASON: usize = 300;

/// The way a model's reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum ReplyEnd {
    /// The model ended the reply.
    Complete,
    /// The reply reached the length limit.
    CutOff,
    /// The model gave no reply, for this reason.
    NoReply {
        /// The error, on one line.
        reason: String,
    },
}

/// An answer to a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Id of the problem.
    pub problem: String,
    /// Approach and model.
    pub system: String,
    /// Token budget of the question.
    pub budget: Budget,
    /// Requested form of the answer.
    pub form: Form,
    /// The way the reply ended.
    #[serde(flatten)]
    pub end: ReplyEnd,
    /// The code of the reply.
    pub code: String,
}

/// Key of an answer: problem, system, budget and form.
pub type AnswerKey = (String, String, Budget, Form);

/// Kind of an answer, independent of its grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerClass {
    /// The answer could be run.
    Run,
    /// The answer does not do what was asked, or does more.
    Refused,
    /// The answer is not Python, or does not address the question.
    Gibberish,
    /// The answer exceeds the maximum tokens of its task.
    TooLong,
    /// The reply reached the length limit.
    CutOff,
    /// The model gave no reply.
    NoReply,
}

/// The grade of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// Id of the problem.
    pub problem: String,
    /// Task of the problem.
    pub task: Task,
    /// Approach and model, as `APPROACH@MODEL`.
    pub system: String,
    /// Token budget of the question.
    pub budget: Budget,
    /// Requested form of the answer.
    pub form: Form,
    /// Kind of the answer.
    pub class: AnswerClass,
    /// Task I: the answer equals the reference (EM).
    pub exact: bool,
    /// The test runs and passes (ER).
    pub executed: bool,
    /// Task I: the test passes and is not trivial (RER). Tasks II and III: it passes and does what was asked.
    pub success: bool,
    /// Why the answer is not a success; empty for a success.
    pub reason: String,
}

impl Grade {
    /// Returns the key of the graded answer.
    pub fn key(&self) -> AnswerKey {
        (
            self.problem.clone(),
            self.system.clone(),
            self.budget,
            self.form,
        )
    }
}

/// Grades answers for one repository at one commit.
pub struct Grader<'a> {
    /// Environment that the answers run in.
    pub place: &'a CaseEnvironment,
    /// Index of the definitions in the repository.
    pub index: &'a RepositoryIndex,
    /// Texts of the repository's files.
    pub texts: &'a BTreeMap<String, String>,
    /// Prompts, for the maximum length of answers.
    pub prompts: &'a dyn Prompts,
    /// Maximum concurrent sandboxes.
    pub workers: usize,
    /// Maximum run time of one answer.
    pub timeout: Duration,
}

/// An answer that is ready to run, after its index.
type PreparedAnswer = (usize, RunnableAnswer);

impl Grader<'_> {
    /// Grades answers and returns their grades in order.
    ///
    /// # Errors
    ///
    /// Fails if a sandbox fails.
    pub async fn judge(&self, answers: &[(&Problem, &ModelAnswer)]) -> Result<Vec<Grade>> {
        let mut judgements = Vec::with_capacity(answers.len());
        let mut prepared = Vec::new();
        on_large_stack(|| {
            for (at, (problem, answer)) in answers.iter().enumerate() {
                let mut judgement = blank(problem, answer);
                match self.read(problem, answer) {
                    Ok(usable) => prepared.push((at, usable)),
                    Err((class, reason)) => {
                        judgement.class = class;
                        judgement.reason = reason;
                    }
                }
                judgements.push(judgement);
            }
        })?;
        let ran = self.run(answers, &prepared).await?;
        on_large_stack(|| {
            let copies = AssertionCache::default();
            for (at, prepared) in &prepared {
                let (problem, answer) = answers[*at];
                let Some(ran) = ran.get(&key(problem, &prepared.source)) else {
                    continue;
                };
                let judgement = &mut judgements[*at];
                judgement.exact = prepared.filled.as_ref().is_some_and(|f| f.is_exact);
                judgement.executed = ran.verification.passed();
                let why = match &ran.verification.outcome {
                    CaseOutcome::Passed => {
                        self.failure_reason(problem, answer, prepared, ran, &copies)
                    }
                    outcome => Some(reason(outcome)),
                };
                judgement.success = why.is_none();
                judgement.reason = excerpt(&why.unwrap_or_default(), REASON);
            }
        })?;
        Ok(judgements)
    }

    fn read(
        &self,
        problem: &Problem,
        answer: &ModelAnswer,
    ) -> std::result::Result<RunnableAnswer, (AnswerClass, String)> {
        match &answer.end {
            ReplyEnd::CutOff => {
                return Err((
                    AnswerClass::CutOff,
                    "the reply reached the length limit".to_owned(),
                ));
            }
            ReplyEnd::NoReply { reason } => return Err((AnswerClass::NoReply, reason.clone())),
            ReplyEnd::Complete => {}
        }
        let tokens = self.prompts.count(&answer.code);
        let room = max_tokens(problem, answer.form);
        if tokens > room {
            let reason = format!("the answer has {tokens} tokens, but the limit is {room}");
            return Err((AnswerClass::TooLong, reason));
        }
        answer::read(problem, answer.form, &answer.code).map_err(|unusable| match unusable {
            RejectedAnswer::Gibberish(reason) => (AnswerClass::Gibberish, reason),
            RejectedAnswer::Refused(reason) => (AnswerClass::Refused, reason),
        })
    }

    /// Runs each distinct file once, even if several answers share it.
    async fn run(
        &self,
        answers: &[(&Problem, &ModelAnswer)],
        prepared: &[PreparedAnswer],
    ) -> Result<HashMap<String, CaseCoverage>> {
        let (mut verified, mut covered) = (Vec::new(), Vec::new());
        let mut seen_ids = HashSet::new();
        for (at, prepared) in prepared {
            let (problem, _) = answers[*at];
            let id = key(problem, &prepared.source);
            if !seen_ids.insert(id.clone()) {
                continue;
            }
            let case = Case {
                id,
                path: problem.path.clone(),
                source: prepared.source.clone(),
                tests: vec![problem.test.clone()],
                timeout: self.timeout,
            };
            match problem.task {
                Task::Blocks => covered.push(case),
                Task::Assertion | Task::Target => verified.push(case),
            }
        }
        let options = CaseOptions {
            workers: self.workers,
            ..CaseOptions::default()
        };
        let mut results = HashMap::new();
        for (batch, is_measured) in [(verified, false), (covered, true)] {
            if !batch.is_empty() {
                let ran = cases::run(self.place, &batch, &options, is_measured, &|_| ()).await?;
                results.extend(
                    ran.into_iter()
                        .map(|ran| (ran.verification.id.clone(), ran)),
                );
            }
        }
        Ok(results)
    }

    /// Returns why an answer that passes is not a success.
    fn failure_reason(
        &self,
        problem: &Problem,
        answer: &ModelAnswer,
        prepared: &RunnableAnswer,
        ran: &CaseCoverage,
        copies: &AssertionCache,
    ) -> Option<String> {
        match &problem.question {
            Question::Assertion { .. } => {
                let filled = prepared.filled.as_ref()?;
                self.triviality_reason(problem, answer, filled, copies)
            }
            Question::Target {
                path,
                qualified_name: qualified,
                ..
            } => {
                let target = (path.as_str(), qualified.as_str());
                let is_called = calls(
                    self.index,
                    &problem.path,
                    &prepared.source,
                    &problem.test,
                    target,
                );
                (!is_called).then(|| format!("the test does not call {qualified} of {path}"))
            }
            Question::Blocks { blocks } => {
                let lines = |path: &str| ran.files.get(path).map(|file| &**file);
                let is_missed = |block: &&Block| !are_covered(std::slice::from_ref(*block), lines);
                let missed = blocks.iter().find(is_missed)?;
                Some(match &ran.problem {
                    Some(problem) => format!("its coverage could not be measured: {problem}"),
                    None => format!(
                        "the test does not cover all of {}:{}-{}",
                        missed.path, missed.first, missed.last
                    ),
                })
            }
        }
    }

    /// Returns why a filled assertion has no content.
    fn triviality_reason(
        &self,
        problem: &Problem,
        answer: &ModelAnswer,
        filled: &Filled,
        copies: &AssertionCache,
    ) -> Option<String> {
        let is_copy = || self.is_in_context(problem, answer.budget, &filled.assertion, copies);
        trivial(&filled.comparison)
            .or_else(|| is_copy().then_some("the context has the same assertion"))
            .map(str::to_owned)
    }

    /// Returns whether the test file or the shown code already contains the assertion.
    fn is_in_context(
        &self,
        problem: &Problem,
        budget: Budget,
        assertion: &str,
        copies: &AssertionCache,
    ) -> bool {
        let text = &problem.text;
        let above = format!("{}{}{}", text.before, text.header, text.body);
        if is_copied(assertion, &above) || is_copied(assertion, &text.after) {
            return true;
        }
        let own = all_assertions(assertion);
        let Some(own) = own.first() else {
            return false;
        };
        let is_near = problem
            .context
            .iter()
            .any(|file| copies.has(self.texts, &file.path, own));
        let text = |path: &str| self.texts.get(path).map(String::as_str);
        is_near
            && context(problem, budget, self.prompts, &text)
                .is_some_and(|context_text| is_copied(assertion, &context_text))
    }
}

/// Cache of the assertions in each file.
#[derive(Default)]
struct AssertionCache(RefCell<HashMap<String, HashSet<Vec<String>>>>);

impl AssertionCache {
    fn has(&self, texts: &BTreeMap<String, String>, path: &str, assertion: &Vec<String>) -> bool {
        let mut files = self.0.borrow_mut();
        let of = files.entry(path.to_owned()).or_insert_with(|| {
            let text = texts.get(path).map_or("", String::as_str);
            all_assertions(text).into_iter().collect()
        });
        of.contains(assertion)
    }
}

/// Returns the maximum tokens of an answer. A full file may also repeat the text that was given.
fn max_tokens(problem: &Problem, form: Form) -> usize {
    let given = match form {
        Form::Full => problem.text.before.len() + problem.text.after.len(),
        _ => 0,
    };
    problem.task.max_answer_tokens() + given / 2
}

fn key(problem: &Problem, source: &str) -> String {
    let kind = if problem.task == Task::Blocks {
        "cov"
    } else {
        "verify"
    };
    sha256(&format!(
        "{kind}\n{}\n{}\n{source}",
        problem.path, problem.test
    ))
}

fn blank(problem: &Problem, answer: &ModelAnswer) -> Grade {
    Grade {
        problem: problem.id.clone(),
        task: problem.task,
        system: answer.system.clone(),
        budget: answer.budget,
        form: answer.form,
        class: AnswerClass::Run,
        exact: false,
        executed: false,
        success: false,
        reason: String::new(),
    }
}

/// Describes an outcome in a sentence, for the reason of a grade.
pub fn reason(outcome: &CaseOutcome) -> String {
    match outcome {
        CaseOutcome::Passed => "the test passes".to_owned(),
        CaseOutcome::Failed { message } => format!("the test fails: {message}"),
        CaseOutcome::Error { message } => format!("the test cannot be run: {message}"),
        CaseOutcome::NotRun { reason } => format!("the test does not run: {reason}"),
        CaseOutcome::TimedOut => "the test timed out".to_owned(),
        CaseOutcome::Crashed { reason } => format!("the process ended without a report: {reason}"),
        CaseOutcome::Flaky => "the outcome varies".to_owned(),
    }
}
