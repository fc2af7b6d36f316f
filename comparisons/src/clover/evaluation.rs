//! Grades the replies in a folder, and reports on them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testwright_evals::cases::CaseEnvironment;
use testwright_evals::clover::Problem;
use testwright_evals::clover::evaluation::{AnswerKey, Grade, Grader, ModelAnswer};
use testwright_evals::clover::folder::Benchmark;
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
        let location = self.benchmark.location(repository, commit);
        let place = open(self.harness, location, Some(commit), self.report).await?;
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
            let error = Error::infrastructure(format!("prepare {location}")).cause(&trouble);
            match &trouble.log {
                Some(log) => error.hint(format!("see the log {log}")),
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
    all.sort_by_cached_key(|grade| {
        let (problem, system, budget, form) = grade.key();
        (system, grade.task, problem, budget, form)
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
    let request = |reply: &StoredReply| (reply.model.clone(), reply.request_sha256.clone());
    let original = replies.iter().filter(|reply| !reply.shared);
    let by_request: HashMap<(String, String), &StoredReply> = original
        .filter(|reply| reply.is_reusable())
        .map(|reply| (request(reply), reply))
        .collect();
    let cost = |reply: &StoredReply| {
        let paid = match reply.shared {
            true => by_request.get(&request(reply)).copied().unwrap_or(reply),
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
    let sum = |of: fn(&StoredReply) -> u64| {
        let original = replies.iter().filter(|reply| !reply.shared);
        original.map(of).sum::<u64>().to_string()
    };
    let mut facts = vec![
        ("Model calls", sum(|reply| reply.calls.into())),
        ("Prompt tokens", sum(|reply| reply.usage.prompt_tokens)),
        (
            "Completion tokens",
            sum(|reply| reply.usage.completion_tokens),
        ),
    ];
    if let Some(dollars) = dollars.filter(|dollars| *dollars > 0.0) {
        facts.push(("Dollars", format!("{dollars:.2}")));
    }
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    Ok(facts.into_iter().map(owned).collect())
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
