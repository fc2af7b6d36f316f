//! The answer to an issue: a run that writes a test, and a comment once the run has ended.

use super::GitHub;
use super::comment;
use super::posting::post;
use super::pull_request::{self, AcceptedTest};
use super::task_details::AnswerDetails;
use super::task_result::{TaskEnd, TaskError};
use crate::api::{Problem, runs};
use crate::authentication::Caller;
use crate::json::decode;
use crate::request::RunRequest;
use crate::reserved_owners;
use crate::store::{GitHubTask, JobId, JobStatus, StoredRun, now};
use testwright_agent::agent::Outcome;

pub(super) async fn answer_issue(github: &GitHub, task: &GitHubTask) -> Result<TaskEnd, TaskError> {
    let details: AnswerDetails = decode(&task.details, "read what GitHub delivered")?;
    let store = &github.api.store;
    let Some(run) = &task.run else {
        let run = start(github, task, &details).await?;
        store.link_github_run(&task.id, &run).await?;
        return Ok(TaskEnd::Wait(now()));
    };
    let Some(run) = store.run(run).await? else {
        return Err(TaskError::Permanent("the run was deleted".to_owned()));
    };
    if !run.status.has_ended() {
        return Ok(TaskEnd::Wait(now()));
    }
    let outcome = outcome(&run);
    let opened = match &outcome {
        Some(Outcome::Accepted { patch, evidence }) if details.pull_request => {
            let run = &run;
            let test = AcceptedTest {
                run,
                patch,
                evidence,
            };
            Some(pull_request::open(github, task, details.installation, &test).await?)
        }
        _ => None,
    };
    let command = &github.settings.command;
    let text = comment::format_answer(&run, outcome.as_ref(), opened.as_ref(), command);
    let posted = post(github, task, details.installation, task.issue, &text).await?;
    Ok(TaskEnd::Done(posted))
}

/// Returns the outcome of a run, if it has a result.
pub(super) fn outcome(run: &StoredRun) -> Option<Outcome> {
    serde_json::from_value(run.record_value()).ok()
}

/// Requests a run for an issue. If only a pull request is wanted, an existing run with a test is reused.
async fn start(
    github: &GitHub,
    task: &GitHubTask,
    details: &AnswerDetails,
) -> Result<JobId, TaskError> {
    if details.pull_request
        && let Some(run) = newest_accepted_run(github, &task.repository, task.issue).await?
    {
        return Ok(run.id);
    }
    let key = Some(format!("github {}", task.id));
    // Each repository is an owner, so that repositories share the workers.
    let caller = Caller {
        owner: format!("{}:{}", reserved_owners::GITHUB, task.repository),
        // The span of the delivery has already ended.
        traceparent: None,
    };
    let request = RunRequest {
        issue: details.issue.clone(),
        repository: Some(github.settings.clone_url(&task.repository)),
        // Without a test to revise, the words are a hint for a new one.
        hint: details.revision.clone(),
        ..RunRequest::default()
    };
    let earlier = match &details.revision {
        Some(words) => newest_accepted_run(github, &task.repository, task.issue)
            .await?
            .map(|run| (run.id, words)),
        None => None,
    };
    let added = match earlier {
        Some((id, words)) => runs::revise_run(&github.api, &caller, id.as_str(), words, key).await,
        None => runs::add(&github.api, &caller, &request, key).await,
    };
    let (run, _) = added.map_err(
        |problem: Problem| match problem.status().is_client_error() {
            true => TaskError::Permanent(problem.text()),
            false => TaskError::Temporary(problem.text()),
        },
    )?;
    Ok(run.id)
}

/// Returns the newest run for an issue that has a test.
pub(super) async fn newest_accepted_run(
    github: &GitHub,
    repository: &str,
    issue: u64,
) -> Result<Option<StoredRun>, TaskError> {
    let store = &github.api.store;
    for id in store.github_runs(repository, issue).await?.iter().flatten() {
        if let Some(run) = store.run(id).await?
            && run.status == JobStatus::Accepted
        {
            return Ok(Some(run));
        }
    }
    Ok(None)
}
