//! Agents on problems of task III. Each works in a sandbox of the repository without its tests, within the problem's
//! token budget. The answer is the test file that it leaves.
//!
//! A run has its own folder, and resumes after an interruption. Answers are not graded here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use testwright_evals::clover::evaluation::ReplyEnd;
use testwright_evals::clover::folder::Benchmark;
use testwright_evals::clover::hidden_tests::with_hidden_tests;
use testwright_evals::clover::{Problem, Question};
use testwright_evals::harness::{Harness, Step};
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::mutex::lock;
use testwright_sandboxes::repository::{self, Files, Source};
use tokio::sync::{OnceCell, Semaphore};

use super::RUNS;
use super::plan::ModelQuestion;
use super::replies::StoredReply;
use crate::compare::cell_run::{self, PreparedCode, prepare_code};
use crate::compare::{costs, encoded, first_line};
use testwright_agent::agent::{CpuPermit, Outcome, Progress};
use testwright_agent::approaches::Variant;
use testwright_agent::approaches::extra_inputs::ExtraInputs;
use testwright_agent::issues::Issue;
use testwright_agent::job::RunJob;
use testwright_agent::setup::RepositoryLocation;
use testwright_agent::trajectory::{Event, RunFolder};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::{Model, ModelName, Usage};

/// Settings and state shared by the agents of an evaluation.
pub struct Agents<'a> {
    settings: &'a Settings,
    harness: &'a Harness,
    benchmark: &'a Benchmark,
    /// Folder of the evaluation.
    folder: &'a Path,
    max_tokens: Option<u64>,
    progress: Arc<dyn Progress>,
    processors: Arc<Semaphore>,
    /// Prepared code without hidden tests, by problem.
    code: Mutex<BTreeMap<String, Arc<OnceCell<PreparedCode>>>>,
}

/// Result of running an agent.
pub enum AgentRun {
    /// The run ended, with a test file or the reason why it has no answer.
    Ended(Box<StoredReply>),
    /// The run was interrupted and can resume later.
    CutShort(Outcome),
}

impl<'a> Agents<'a> {
    /// Creates the agents. Their tools share `workers` processors. `max_tokens` is the maximum of a reply, in place of
    /// the task's limit.
    pub fn new(
        settings: &'a Settings,
        harness: &'a Harness,
        benchmark: &'a Benchmark,
        folder: &'a Path,
        max_tokens: Option<u64>,
        workers: usize,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Agents {
            settings,
            harness,
            benchmark,
            folder,
            max_tokens,
            progress,
            processors: Arc::new(Semaphore::new(workers.max(1))),
            code: Mutex::default(),
        }
    }

    /// Starts the run, or resumes it.
    ///
    /// # Errors
    ///
    /// Fails if the folder of the run cannot be read or written, or the approach or model is invalid. Infrastructure
    /// failures are part of the result.
    pub async fn run(&self, ask: &ModelQuestion<'_>, model: Arc<dyn Model>) -> Result<AgentRun> {
        let cell = self.cell(ask.problem);
        let code = match cell.get_or_init(|| self.code(ask.problem)).await {
            Ok(code) => code,
            Err(outcome) => return Ok(AgentRun::CutShort(outcome.clone())),
        };
        let out = self.folder.join(run_folder(ask));
        let run = self.execute(ask, code, &out, model);
        let outcome = cell_run::run_unless_ended(&out, run).await?;
        if !outcome.is_final() {
            return Ok(AgentRun::CutShort(outcome));
        }
        let events = RunFolder::read(&out).map_err(Error::from)?;
        let reply = reply(ask, &code.0, &events, &outcome)?;
        Ok(AgentRun::Ended(Box::new(reply)))
    }

    /// Stops the builds of environments.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot stop them.
    pub async fn abandon(&self) -> Result<()> {
        Ok(self.harness.backend.abandon().await?)
    }

    async fn execute(
        &self,
        ask: &ModelQuestion<'_>,
        code: &(Source, Environment),
        out: &Path,
        model: Arc<dyn Model>,
    ) -> Result<Outcome> {
        let job = self.job(ask, &code.0, out)?;
        let processor = CpuPermit::new(self.processors.clone());
        let progress = self.progress.clone();
        match cell_run::execute(job, self.harness, code, model, processor, progress).await {
            Ok(record) => Ok(record.outcome),
            // Other runs continue.
            Err(error) if error.kind.is_infrastructure() => Ok(error.into()),
            Err(error) => Err(error),
        }
    }

    fn job(&self, ask: &ModelQuestion<'_>, source: &Source, out: &Path) -> Result<RunJob> {
        let approach = Variant::parse(ask.approach)?;
        let settings = self.run_settings(ask, out);
        if let Some(recorded) = cell_run::interrupted_run(out, source)? {
            return RunJob::resumed(recorded, settings, approach);
        }
        let problem = ask.problem;
        let lines = wanted_lines(problem);
        let issue = Issue {
            title: format!("Cover {}", lines.join(", ")),
            origin: format!("CLOVER problem {}", problem.id),
            ..Issue::default()
        };
        let place = RepositoryLocation {
            location: (self.benchmark)
                .location(&problem.repository, &problem.commit)
                .to_owned(),
            revision: Some(problem.commit.clone()),
        };
        let (model, out) = (ModelName::parse(ask.model)?, out.to_owned());
        Ok(RunJob {
            extra_inputs: ExtraInputs {
                lines,
                test: Some(format!("{}::{}", problem.path, problem.test)),
                ..ExtraInputs::default()
            },
            ..RunJob::new(settings, issue, place, approach, model, out)
        })
    }

    /// Returns the settings of a run. The problem's budget applies to all calls together. If longer answers than the
    /// task's limit are allowed, the difference is added to the budget, as for a single call.
    fn run_settings(&self, ask: &ModelQuestion<'_>, out: &Path) -> Settings {
        let room = ask.problem.task.max_answer_tokens() as u64;
        let reply = self.max_tokens.unwrap_or(room);
        let budget = ask.budget.tokens().map(|tokens| tokens as u64);
        let mut settings = self.settings.clone();
        settings.run.out = Some(out.to_owned());
        settings.run.max_tokens = budget.map(|tokens| tokens + reply.saturating_sub(room));
        settings.run.min_confidence = None;
        settings.model.max_tokens = Some(reply);
        settings.model.temperature = settings.model.temperature.or(Some(0.0));
        settings
    }

    fn cell(&self, problem: &Problem) -> Arc<OnceCell<PreparedCode>> {
        let mut code = lock(&self.code);
        code.entry(problem.id.clone()).or_default().clone()
    }

    async fn code(&self, problem: &Problem) -> PreparedCode {
        let hide = {
            let (problem, cache) = (problem.clone(), self.harness.cache.clone());
            move |source: Source| with_hidden_tests(&source, &problem, &cache)
        };
        let report = |step: Step| {
            if let Step::Building { step, .. } = step {
                self.progress.phase(&problem.id, &step);
            }
        };
        let (harness, commit) = (self.harness, problem.commit.as_str());
        let location = self.benchmark.location(&problem.repository, commit);
        let code = harness.changed_code_at(location, Some(commit), hide, &report);
        prepare_code(&self.processors, code).await
    }
}

/// Returns the folder of a run, relative to the folder of the evaluation.
pub fn run_folder(ask: &ModelQuestion<'_>) -> PathBuf {
    let mut path = PathBuf::from(RUNS);
    path.extend([encoded(ask.approach), encoded(ask.model)]);
    path.extend([ask.budget.to_string(), encoded(&ask.problem.id)]);
    path
}

fn wanted_lines(problem: &Problem) -> Vec<String> {
    let Question::Blocks { blocks } = &problem.question else {
        return Vec::new();
    };
    let lines = blocks.iter();
    lines
        .map(|block| format!("{}:{}-{}", block.path, block.first, block.last))
        .collect()
}

fn reply(
    ask: &ModelQuestion<'_>,
    source: &Source,
    events: &[Event],
    outcome: &Outcome,
) -> Result<StoredReply> {
    let problem = ask.problem;
    let skeleton = problem.without_statements();
    let written = match outcome {
        Outcome::Accepted { patch, .. } => of_patch(source, patch, &problem.path)?,
        _ => last_content(events, &problem.path),
    };
    let (end, text) = match written.filter(|text| *text != skeleton) {
        Some(text) => (ReplyEnd::Complete, text),
        None => {
            let reason = format!("no test was written: {}", first_line(&outcome.summary()));
            (ReplyEnd::NoReply { reason }, String::new())
        }
    };
    let (cost, _) = costs(events);
    Ok(StoredReply {
        calls: cost.model_calls,
        usage: Usage {
            prompt_tokens: cost.prompt_tokens,
            cached_tokens: cost.cached_tokens,
            completion_tokens: cost.completion_tokens,
            dollars: cost.dollars,
            estimated: false,
        },
        seconds: cost.model_seconds + cost.tool_seconds,
        ..StoredReply::new(ask, end, text)
    })
}

/// Returns a file as changed by an accepted patch, or `None` if the patch does not change it.
fn of_patch(source: &Source, patch: &str, path: &str) -> Result<Option<String>> {
    let applied = repository::apply(&source.tree()?, &Files::new(), patch)?;
    let files = applied.map(|applied| applied.files).unwrap_or_default();
    let file = files.get(path).cloned().flatten();
    Ok(file.and_then(|file| String::from_utf8(file.content).ok()))
}

/// Returns a file as the run left it, or `None` if it is unchanged or deleted.
fn last_content(events: &[Event], path: &str) -> Option<String> {
    let states = events.iter().filter_map(|event| match event {
        Event::State { files, .. } => Some(files),
        _ => None,
    });
    let last = states.flatten().rfind(|file| file.path == path)?;
    let content = last.content.as_ref().filter(|_| !last.base)?;
    String::from_utf8(BASE64_STANDARD.decode(content).ok()?).ok()
}

#[cfg(test)]
mod tests;
