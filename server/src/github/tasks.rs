//! Processes deliveries: answers and confirmations, in separate queues because confirmations take longer.
//!
//! A task is a job of the server. If the server dies, another server claims it, or the same one after a restart.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use super::task_result::{TaskEnd, TaskError};
use super::{GitHub, answer, confirmation};
use crate::attempt;
use crate::jobs::JobSource;
use crate::store::{Attempt, AttemptResults, GitHubTask, GitHubTaskKind, JobStatus, now};
use testwright_config::error::Result;
use testwright_config::stop_signal::{StopSignal, stopped};

/// Number of failures after which an answer is given up.
const MAX_FAILURES: i64 = 8;
/// Number of failures after which a confirmation, which builds environments, is given up.
const MAX_CONFIRM_FAILURES: i64 = 3;
/// Maximum milliseconds for which a task waits for GitHub's rate limit.
const MAX_WAIT: i64 = 3 * 24 * 3_600_000;
/// Delay in milliseconds after the first failure, which doubles with each failure, and its maximum.
const BACKOFF: (i64, i64) = (2_000, 600_000);

/// A source of tasks of one kind, as jobs for this server.
pub(crate) struct GitHubTasks {
    pub github: GitHub,
    pub kind: GitHubTaskKind,
    /// Signals that this process must stop, and return its tasks to the queue.
    pub stop: StopSignal,
}

#[async_trait::async_trait]
impl JobSource for GitHubTasks {
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>> {
        let store = &self.github.api.store;
        store.claim_github_task(self.kind, worker).await
    }

    async fn run(&self, attempt: &Attempt) -> Result<()> {
        let (github, store) = (&self.github, &self.github.api.store);
        let Some(task) = store.github_task(attempt.id.as_str()).await? else {
            return Ok(());
        };
        let work = async {
            match self.kind {
                GitHubTaskKind::Answer => answer::answer_issue(github, &task).boxed().await,
                GitHubTaskKind::Confirm => {
                    confirmation::confirm_pull_request(github, &task)
                        .boxed()
                        .await
                }
            }
        };
        // A panic counts as a failure of the task.
        let work = AssertUnwindSafe(work).catch_unwind();
        let ended = tokio::select! {
            ended = work => ended.unwrap_or_else(|_| Err(TaskError::Temporary("internal error in testwright".to_owned()))),
            () = attempt::wait_until_unwanted(store, attempt) => return Ok(()),
            () = stopped(self.stop.clone()) => Ok(TaskEnd::Wait(now())),
        };
        store_task_end(github, self.kind, &task, attempt, ended).await
    }
}

async fn store_task_end(
    github: &GitHub,
    kind: GitHubTaskKind,
    task: &GitHubTask,
    attempt: &Attempt,
    ended: std::result::Result<TaskEnd, TaskError>,
) -> Result<()> {
    let store = &github.api.store;
    let (repository, issue) = (&task.repository, task.issue);
    let give_up_reason = match ended {
        Ok(TaskEnd::Done(note)) => {
            tracing::info!(repository, issue, note, "a GitHub task is done");
            let results = AttemptResults::explained(note);
            return store
                .end_attempt(attempt, JobStatus::Done, results)
                .await
                .map(drop);
        }
        Ok(TaskEnd::Wait(until)) => return store.postpone_github_task(attempt, until, None).await,
        Err(TaskError::Later(at)) if at < task.created_at + MAX_WAIT => {
            tracing::info!(repository, issue, at, "rate-limited by GitHub");
            return store.postpone_github_task(attempt, at, None).await;
        }
        Err(TaskError::Temporary(why)) if can_retry(kind, task) => {
            tracing::warn!(
                repository,
                issue,
                why,
                "a GitHub task failed, and will be retried"
            );
            let at = now() + backoff(task.failures);
            return store.postpone_github_task(attempt, at, Some(&why)).await;
        }
        Err(TaskError::Later(_)) => "GitHub's rate limit blocked the task for days".to_owned(),
        Err(TaskError::Temporary(why) | TaskError::Permanent(why)) => why,
    };
    tracing::error!(
        repository,
        issue,
        why = give_up_reason,
        "gave up a GitHub task"
    );
    if kind == GitHubTaskKind::Confirm
        && let Err(error) = confirmation::post_failure(github, task).await
    {
        tracing::error!(
            repository,
            issue,
            ?error,
            "could not post that the task was given up"
        );
    }
    let (status, results) = (
        JobStatus::Infrastructure,
        AttemptResults::explained(give_up_reason),
    );
    store.end_attempt(attempt, status, results).await.map(drop)
}

fn can_retry(kind: GitHubTaskKind, task: &GitHubTask) -> bool {
    let most = match kind {
        GitHubTaskKind::Answer => MAX_FAILURES,
        GitHubTaskKind::Confirm => MAX_CONFIRM_FAILURES,
    };
    task.failures + 1 < most
}

fn backoff(failures: i64) -> i64 {
    let (first, most) = BACKOFF;
    let exponent = u32::try_from(failures).unwrap_or(u32::MAX).min(20);
    (first << exponent).min(most)
}
