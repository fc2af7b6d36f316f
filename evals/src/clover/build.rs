//! Builds problems from a repository: extracts its tests, runs each alone, measures them and draws problems. A problem
//! is accepted if its golden answers are graded as correct.

mod candidates;
mod measured;

use std::collections::{BTreeMap, BTreeSet};

use testwright_sandboxes::sandbox::Result;
use testwright_tools::python::RepositoryIndex;

use super::VERSION;
use super::answer::Form;
use super::context::{self, Prompts};
use super::evaluation::{Grade, Grader, ModelAnswer, ReplyEnd};
use super::extract::IsolatedTest;
use super::folder::RepositoryProblems;
use super::manifest::{BuildLimits, RepositoryFacts};
use super::problem::{
    Budget, ContextFile, Problem, Provenance, Question, Task, golden, named_files, sha256,
};
use super::rejections::{Counts, DropReason};
use super::repository::Repository;
use super::selection::weighted_shuffle;
use crate::cases::context::{ContextClass, order};
use crate::cases::{self, Case, CaseEnvironment, CaseOptions};
use crate::large_stack::on_large_stack;
use candidates::{Candidate, Candidates};
use measured::TestCoverage;

/// Maximum tokens for the instructions of task II and the target's file.
const MAX_INSTRUCTION_TOKENS: usize = 4_000;

/// Progress is reported each time this many tests or files have finished.
const PROGRESS_INTERVAL: usize = 50;

/// Options for building a benchmark.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Seed for all random choices; the same seed gives the same problems.
    pub seed: u64,
    /// Maximum concurrent sandboxes.
    pub workers: usize,
    /// Limits on the tests and tasks of each repository.
    pub limits: BuildLimits,
}

/// Callback that receives progress messages for display.
pub type ProgressFn<'r> = &'r (dyn Fn(&str) + Send + Sync);

/// Builds the problems of a repository at a commit.
///
/// # Errors
///
/// Fails if the repository cannot be read, or a sandbox fails.
pub async fn build(
    place: &CaseEnvironment,
    options: &BuildOptions,
    prompts: &dyn Prompts,
    report: ProgressFn<'_>,
) -> Result<RepositoryProblems> {
    let repository = Repository::read(place)?;
    let mut counts = Counts::default();
    report("reading the tests");
    let all = on_large_stack(|| repository.tests(&mut counts))?;
    let all = draw_files(options, all, &mut counts);
    let mut builder = Builder {
        place,
        options,
        prompts,
        measured: TestCoverage::new(place, options),
        index: repository.index()?,
        repository,
        report,
    };
    report(&format!("running {} tests, each alone", all.len()));
    let tests = builder.verify_tests(all, &mut counts).await?;
    let files: BTreeSet<&str> = tests.iter().map(|test| test.path.as_str()).collect();
    report(&format!("measuring {} test files", files.len()));
    builder
        .measured
        .measure_files(&builder.repository.texts, &files, report)
        .await?;
    let mut tasks = BTreeMap::new();
    let mut problems = Vec::new();
    for task in &options.limits.tasks {
        let mut candidates = on_large_stack(|| builder.candidates(*task, &tests))?;
        report(&format!(
            "task {}: {} candidates",
            task.numeral(),
            candidates.drawn.len()
        ));
        problems.extend(builder.admit(*task, &mut candidates, &tests).await?);
        tasks.insert(*task, candidates.counts);
    }
    let used: BTreeSet<&str> = problems
        .iter()
        .flat_map(|problem| problem.context.iter().map(|file| file.path.as_str()))
        .collect();
    Ok(RepositoryProblems {
        facts: RepositoryFacts {
            name: place.source.name.clone(),
            commit: builder.repository.commit.clone(),
            date: place.source.date.clone(),
            python: place.environment.python_version.clone(),
            packages: place.environment.packages.clone(),
            test_files: builder.repository.test_files().count(),
            tests: counts,
            tasks,
        },
        sources: builder.repository.sources(&place.source.name, &used),
        problems,
    })
}

/// Draws test files up to the maximum number of tests; the tests keep their order.
fn draw_files(
    options: &BuildOptions,
    tests: Vec<IsolatedTest>,
    counts: &mut Counts,
) -> Vec<IsolatedTest> {
    let mut of_file: BTreeMap<String, usize> = BTreeMap::new();
    for test in &tests {
        *of_file.entry(test.path.clone()).or_default() += 1;
    }
    let name = |(path, _): &(String, usize)| format!("file {path}");
    let files = weighted_shuffle(options.seed, of_file.into_iter().collect(), name, |_| 1.0);
    let mut run = BTreeSet::new();
    let mut number = 0;
    for (path, tests) in files {
        // A file is measured as a whole, so all of its tests must run.
        if number > 0 && number + tests > options.limits.max_tests as usize {
            continue;
        }
        number += tests;
        run.insert(path);
    }
    let (run, skipped_tests): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|t| run.contains(&t.path));
    skipped_tests
        .iter()
        .for_each(|_| counts.drop(DropReason::NotDrawn));
    run
}

struct Builder<'a> {
    place: &'a CaseEnvironment,
    options: &'a BuildOptions,
    prompts: &'a dyn Prompts,
    measured: TestCoverage<'a>,
    repository: Repository,
    index: RepositoryIndex,
    report: ProgressFn<'a>,
}

impl Builder<'_> {
    /// Returns the tests that pass twice when run alone.
    async fn verify_tests(
        &self,
        tests: Vec<IsolatedTest>,
        counts: &mut Counts,
    ) -> Result<Vec<IsolatedTest>> {
        let cases: Vec<Case> = tests
            .iter()
            .map(|test| self.measured.case(test, test.text.text()))
            .collect();
        let options = CaseOptions {
            workers: self.options.workers,
            repeats: 2,
            ..CaseOptions::default()
        };
        let all = cases.len();
        let done = |done: usize| {
            if done.is_multiple_of(PROGRESS_INTERVAL) {
                (self.report)(&format!("running {all} tests, each alone: {done}"));
            }
        };
        let ran = cases::run(self.place, &cases, &options, false, &done).await?;
        let mut passing_tests = Vec::new();
        for (test, ran) in tests.into_iter().zip(ran) {
            match DropReason::of_outcome(&ran.verification.outcome) {
                Some(why) => counts.drop(why),
                None => passing_tests.push(test),
            }
        }
        counts.selected = passing_tests.len();
        Ok(passing_tests)
    }

    fn candidates(&self, task: Task, tests: &[IsolatedTest]) -> Candidates {
        let mut counts = Counts::default();
        let seed = self.options.seed;
        let drawn = match task {
            Task::Assertion => candidates::assertions(seed, tests, &mut counts),
            Task::Target => {
                candidates::targets(seed, tests, &self.index, &self.measured, &mut counts)
            }
            Task::Blocks => {
                candidates::blocks(seed, tests, &self.measured, &self.repository, &mut counts)
            }
        };
        Candidates { drawn, counts }
    }

    /// Accepts candidates in the order of the draw until there are enough.
    async fn admit(
        &mut self,
        task: Task,
        candidates: &mut Candidates,
        tests: &[IsolatedTest],
    ) -> Result<Vec<Problem>> {
        let by_name: BTreeMap<String, &IsolatedTest> =
            tests.iter().map(|test| (test.name(), test)).collect();
        let mut drawn = std::mem::take(&mut candidates.drawn).into_iter();
        let mut problems: Vec<Problem> = Vec::new();
        let mut places = BTreeSet::new();
        while problems.len() < task.max_problems() {
            // Take a quarter more than needed, since some will be rejected.
            let batch_size = (task.max_problems() - problems.len()).div_ceil(4) * 5;
            let batch: Vec<Candidate> = drawn.by_ref().take(batch_size).collect();
            if batch.is_empty() {
                break;
            }
            let own: Vec<&IsolatedTest> = batch
                .iter()
                .filter_map(|c| by_name.get(&c.test_name()).copied())
                .collect();
            self.measured.alone(&own).await?;
            let mut ready = Vec::new();
            for candidate in batch {
                match on_large_stack(|| self.problem(task, &candidate))? {
                    Ok(problem) => ready.push((candidate, problem)),
                    Err(why) => candidates.counts.drop(why),
                }
            }
            let judged = self.grade_golden_answers(&ready).await?;
            for ((candidate, problem), why) in ready.into_iter().zip(judged) {
                if let Some(why) = why {
                    candidates.counts.drop(why);
                } else if problems.len() >= task.max_problems() {
                    candidates.counts.drop(DropReason::OverCap);
                } else if !places.insert(candidate.place.clone()) {
                    candidates.counts.drop(DropReason::SamePlace);
                } else {
                    problems.push(problem);
                }
            }
            (self.report)(&format!(
                "task {}: {} problems",
                task.numeral(),
                problems.len()
            ));
        }
        drawn.for_each(|_| candidates.counts.drop(DropReason::OverCap));
        candidates.counts.selected = problems.len();
        for (problem, number) in problems.iter_mut().zip(1..) {
            problem.id = problem.numbered_id(number);
        }
        Ok(problems)
    }

    /// Builds the problem of a candidate, with its context.
    fn problem(
        &self,
        task: Task,
        candidate: &Candidate,
    ) -> std::result::Result<Problem, DropReason> {
        let name = candidate.name.as_str();
        let classes = self
            .measured
            .classes(&candidate.test_name())
            .ok_or(DropReason::NotMeasured)?;
        let named_paths = named_files(&candidate.question);
        let ordered = order(&classes, &named_paths, self.options.seed, name);
        let file = |(path, class): (String, Option<ContextClass>)| {
            let sha256 = sha256(self.repository.texts.get(&path)?);
            Some(ContextFile {
                path,
                class,
                sha256,
            })
        };
        let packages = self.place.environment.packages.join("\n");
        let mut problem = Problem {
            id: name.to_owned(),
            task,
            repository: self.place.source.name.clone(),
            commit: self.repository.commit.clone(),
            path: candidate.path.clone(),
            test: candidate.test.clone(),
            context: ordered.into_iter().filter_map(file).collect(),
            budgets: task.budgets().to_vec(),
            provenance: Provenance {
                version: VERSION.to_owned(),
                seed: self.options.seed,
                python: self.place.environment.python_version.clone(),
                tokenizer: self.prompts.name().to_owned(),
                source_sha256: self.place.source.digest.clone(),
                packages_sha256: sha256(&packages),
                golden_sha256: sha256(&golden(&candidate.text, &candidate.question)),
                context_sha256: BTreeMap::new(),
            },
            text: candidate.text.clone(),
            question: candidate.question.clone(),
        };
        self.fits(&problem)?;
        let text = |path: &str| self.repository.texts.get(path).map(String::as_str);
        problem.provenance.context_sha256 = context::hashes(&problem, self.prompts, &text);
        Ok(problem)
    }

    /// Checks that the problem is not too long for a model.
    fn fits(&self, problem: &Problem) -> std::result::Result<(), DropReason> {
        let (tokens, limit, reason) = match &problem.question {
            Question::Assertion {
                prefix,
                reference,
                suffix,
            } => {
                let tokens = self.prompts.count(&format!("{prefix}{reference}{suffix}"));
                let limit = problem.task.max_answer_tokens();
                (tokens, limit, DropReason::LongReference)
            }
            Question::Target { path, .. } => {
                let file = self.repository.texts.get(path).map_or("", String::as_str);
                let tokens = self.prompts.instructions(problem) + self.prompts.count(file);
                (tokens, MAX_INSTRUCTION_TOKENS, DropReason::LongInstructions)
            }
            Question::Blocks { .. } => return Ok(()),
        };
        match tokens > limit {
            true => Err(reason),
            false => Ok(()),
        }
    }

    /// Returns what is wrong with each problem's golden answers, in all forms and with the longest context.
    async fn grade_golden_answers(
        &self,
        ready: &[(Candidate, Problem)],
    ) -> Result<Vec<Option<DropReason>>> {
        let judge = Grader {
            place: self.place,
            index: &self.index,
            texts: &self.repository.texts,
            prompts: self.prompts,
            workers: self.options.workers,
            timeout: self.options.limits.timeout(),
        };
        let answers = ready.iter().map(|(_, problem)| golden_answers(problem));
        let answers: Vec<[ModelAnswer; 2]> = answers.collect();
        let problem_answers: Vec<(&Problem, &ModelAnswer)> = (ready.iter().zip(&answers))
            .flat_map(|((_, problem), forms)| forms.iter().map(move |answer| (problem, answer)))
            .collect();
        let judgements = judge.judge(&problem_answers).await?;
        let of_problems = judgements.chunks(2);
        Ok(of_problems
            .map(|forms| forms.iter().find_map(rejection_reason))
            .collect())
    }
}

/// Returns the golden answer in both forms.
fn golden_answers(problem: &Problem) -> [ModelAnswer; 2] {
    let answer = |form: Form, code: String| ModelAnswer {
        problem: problem.id.clone(),
        system: "golden".to_owned(),
        budget: problem
            .budgets
            .last()
            .copied()
            .unwrap_or(Budget::ProblemOnly),
        form,
        end: ReplyEnd::Complete,
        code,
    };
    match &problem.question {
        Question::Assertion {
            prefix,
            reference,
            suffix,
        } => [
            answer(Form::Operand, reference.clone()),
            answer(Form::Assertion, format!("{prefix}{reference}{suffix}")),
        ],
        _ => [
            answer(Form::Full, problem.golden()),
            answer(Form::Part, problem.text.body.clone()),
        ],
    }
}

fn rejection_reason(judgement: &Grade) -> Option<DropReason> {
    let is_golden = judgement.success && judgement.executed;
    match judgement.task {
        Task::Assertion if is_golden && judgement.exact => None,
        Task::Target | Task::Blocks if is_golden => None,
        Task::Assertion if judgement.executed && judgement.reason.contains("the context has") => {
            Some(DropReason::InContext)
        }
        _ => Some(DropReason::NotGolden),
    }
}
