//! Grades the replies in a folder, and reports on them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testwright_evals::cases::CaseEnvironment;
use testwright_evals::clover::Problem;
use testwright_evals::clover::evaluation::{AnswerKey, Grade, Grader, ModelAnswer};
use testwright_evals::clover::folder::{Benchmark, location_key};
use testwright_evals::clover::problem::sha256;
use testwright_evals::clover::report::{AnswerCost, CloverReport, page};
use testwright_evals::clover::repository::Repository;
use testwright_evals::folder::Versioned;
use testwright_evals::harness::{Harness, Step};
use testwright_sandboxes::SandboxError;

use super::JUDGEMENTS;
use super::plan::ModelQuestion;
use super::prompts::TaskPrompts;
use super::replies::{StoredReply, key, stored};
use crate::model_work::spent_dollars;
use crate::record_file::{Record, RecordFile, write_file};
use testwright_config::error::{Error, Result};

/// Number of answers that are graded before their grades are stored.
const BATCH: usize = 100;

/// A grade with its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredJudgement {
    /// Hash of the problem and the answer.
    answer_sha256: String,
    #[serde(flatten)]
    judgement: Grade,
}

impl Record for StoredJudgement {
    type Key = String;
    const WHAT: &'static str = "a judgement";

    fn key(&self) -> String {
        self.answer_sha256.clone()
    }
}

type Judgements = RecordFile<StoredJudgement>;

/// Settings for grading answers.
pub struct GradingTask<'a> {
    /// Harness that builds the environments.
    pub harness: &'a Harness,
    /// The benchmark with the problems that were asked.
    pub benchmark: &'a Benchmark,
    /// Folder of the evaluation, which contains the replies and receives the grades.
    pub folder: &'a Path,
    /// Maximum concurrent sandboxes.
    pub workers: usize,
    /// Maximum run time of one answer.
    pub timeout: Duration,
    /// Callback that receives progress messages for display.
    pub report: &'a (dyn Fn(&str) + Send + Sync),
}

impl GradingTask<'_> {
    /// Grades the replies to these questions; existing grades are reused.
    ///
    /// # Errors
    ///
    /// Fails if a repository cannot be prepared, a sandbox fails, or a file in the folder cannot be read or written.
    pub async fn judge(&self, asks: &[ModelQuestion<'_>]) -> Result<Vec<Grade>> {
        let judgements = Judgements::open(self.folder.join(JUDGEMENTS))?;
        let replies: BTreeMap<AnswerKey, ModelAnswer> = stored(self.folder)?
            .into_iter()
            .map(|reply| (reply.key(), reply.answer()))
            .collect();
        let mut groups: BTreeMap<(&str, &str), Vec<(&Problem, &ModelAnswer)>> = BTreeMap::new();
        let mut hashes = Vec::new();
        for ask in asks {
            let Some(answer) = replies.get(&key(ask)) else {
                continue;
            };
            let hash = hash(ask.problem, answer)?;
            if judgements.get(&hash).is_none() {
                let place = (ask.problem.repository.as_str(), ask.problem.commit.as_str());
                groups.entry(place).or_default().push((ask.problem, answer));
            }
            hashes.push(hash);
        }
        for ((repository, commit), answers) in groups {
            (self.report)(&format!("{repository}: grading {} answers", answers.len()));
            self.group(repository, commit, &answers, &judgements)
                .await?;
        }
        let judged = hashes.iter().filter_map(|hash| judgements.get(hash));
        Ok(judged.map(|stored| stored.judgement).collect())
    }

    async fn group(
        &self,
        repository: &str,
        commit: &str,
        answers: &[(&Problem, &ModelAnswer)],
        judgements: &Judgements,
    ) -> Result<()> {
        let place = self.place(repository, commit).await?;
        let failed = |error: SandboxError| {
            Error::from(error).while_doing(format!("grade answers on {repository}"))
        };
        let code = Repository::read(&place).map_err(failed)?;
        let index = code.index().map_err(failed)?;
        let judge = Grader {
            place: &place,
            index: &index,
            texts: &code.texts,
            prompts: &TaskPrompts,
            workers: self.workers,
            timeout: self.timeout,
        };
        for batch in answers.chunks(BATCH) {
            let judged = judge.judge(batch).await.map_err(failed)?;
            for ((problem, answer), judgement) in batch.iter().zip(judged) {
                judgements.add(StoredJudgement {
                    answer_sha256: hash(problem, answer)?,
                    judgement,
                })?;
            }
        }
        Ok(())
    }

    async fn place(&self, repository: &str, commit: &str) -> Result<CaseEnvironment> {
        let key = location_key(repository, commit);
        let location = self
            .benchmark
            .locations
            .get(&key)
            .map_or(repository, String::as_str);
        open(self.harness, location, Some(commit), self.report).await
    }
}

/// Opens a repository at a revision, and builds its environment.
///
/// # Errors
///
/// Fails if the repository cannot be opened or its environment cannot be built.
pub async fn open(
    harness: &Harness,
    location: &str,
    revision: Option<&str>,
    report: &(dyn Fn(&str) + Send + Sync),
) -> Result<CaseEnvironment> {
    let progress = |step: Step| {
        if let Step::Building { instance, step } = step {
            report(&format!("{instance}: {step}"));
        }
    };
    CaseEnvironment::open(harness, location, revision, &progress)
        .await
        .map_err(|trouble| {
            let log = trouble.log.as_ref().map(|log| format!("see the log {log}"));
            let error = Error::infrastructure(format!("prepare {location}"))
                .cause(format!("{}: {}", trouble.stage, trouble.cause));
            match log {
                Some(log) => error.hint(log),
                None => error,
            }
        })
}

fn hash(problem: &Problem, answer: &ModelAnswer) -> Result<String> {
    let text = serde_json::to_string(&(&problem.provenance.golden_sha256, answer))
        .map_err(|error| Error::infrastructure("encode an answer").cause(error))?;
    Ok(sha256(&text))
}

/// Returns all grades in a folder.
///
/// # Errors
///
/// Fails if the grades cannot be read.
pub fn judgements(folder: &Path) -> Result<Vec<Grade>> {
    let stored = Judgements::read(&folder.join(JUDGEMENTS))?.into_values();
    let mut all: Vec<Grade> = stored.map(|stored| stored.judgement).collect();
    all.sort_by(|a, b| {
        let key = |j: &Grade| {
            (
                j.system.clone(),
                j.task,
                j.problem.clone(),
                j.budget,
                j.form,
            )
        };
        key(a).cmp(&key(b))
    });
    Ok(all)
}

/// Returns the cost of each answer in a folder. Answers to identical requests get the cost of the original call.
///
/// # Errors
///
/// Fails if the replies cannot be read.
pub fn answer_costs(folder: &Path) -> Result<BTreeMap<AnswerKey, AnswerCost>> {
    let replies = stored(folder)?;
    let by_request: HashMap<(&str, &str), &StoredReply> = replies
        .iter()
        .filter(|reply| !reply.shared && reply.is_reusable())
        .map(|reply| ((reply.model.as_str(), reply.request_sha256.as_str()), reply))
        .collect();
    let cost = |reply: &StoredReply| {
        let request = (reply.model.as_str(), reply.request_sha256.as_str());
        let paid = match reply.shared {
            true => by_request.get(&request).copied().unwrap_or(reply),
            false => reply,
        };
        let usage = &paid.usage;
        AnswerCost {
            calls: paid.calls,
            tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
            dollars: usage.dollars,
        }
    };
    Ok(replies
        .iter()
        .map(|reply| (reply.key(), cost(reply)))
        .collect())
}

/// Returns the total costs of a folder's calls.
///
/// # Errors
///
/// Fails if the replies or the ledger cannot be read.
pub fn cost_facts(folder: &Path) -> Result<Vec<(String, String)>> {
    let replies = stored(folder)?;
    let dollars = spent_dollars(folder)?;
    let unshared_replies: Vec<_> = replies.iter().filter(|reply| !reply.shared).collect();
    let sum = |of: fn(&testwright_models::Usage) -> u64| {
        unshared_replies.iter().map(|r| of(&r.usage)).sum::<u64>()
    };
    let mut facts = vec![
        (
            "Model calls".to_owned(),
            unshared_replies
                .iter()
                .map(|r| u64::from(r.calls))
                .sum::<u64>()
                .to_string(),
        ),
        (
            "Prompt tokens".to_owned(),
            sum(|u| u.prompt_tokens).to_string(),
        ),
        (
            "Completion tokens".to_owned(),
            sum(|u| u.completion_tokens).to_string(),
        ),
    ];
    if let Some(dollars) = dollars.filter(|dollars| *dollars > 0.0) {
        facts.push(("Dollars".to_owned(), format!("{dollars:.2}")));
    }
    Ok(facts)
}

/// Writes `report.json`, `report.md` and `report.html`.
///
/// # Errors
///
/// Fails if the report cannot be rendered or written.
pub fn write(folder: &Path, report: &CloverReport) -> Result<PathBuf> {
    let write = |name: &str, text: &[u8]| write_file(&folder.join(name), text);
    let json = serde_json::to_vec_pretty(&Versioned::new(report))
        .map_err(|error| Error::infrastructure("encode the report").cause(error))?;
    write("report.json", &json)?;
    write("report.md", report.markdown("report.json").as_bytes())?;
    let html =
        page(report).map_err(|error| Error::infrastructure("render the report").cause(error))?;
    write("report.html", html.as_bytes())?;
    Ok(folder.join("report.html"))
}
