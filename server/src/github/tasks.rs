//! Works on what was delivered, beside the server: answers, and confirmations on their own, since those take longer.
//!
//! A task is a job of the server: if the server dies, another one claims it, or the same one when it is back.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use super::task_end::{TaskEnd, TaskError};
use super::{GitHub, answer, confirmation};
use crate::attempt;
use crate::jobs::JobSource;
use crate::store::{Attempt, AttemptResults, GitHubTask, GitHubTaskKind, JobStatus, now};
use testwright_config::error::Result;
use testwright_config::stop_signal::{StopSignal, stopped};

/// Failures after which a task is given up.
const MAX_FAILURES: i64 = 8;
/// The same for a confirmation, which builds environments.
const MAX_CONFIRM_FAILURES: i64 = 3;
/// Milliseconds for which GitHub may want to be asked later.
const MAX_WAIT: i64 = 3 * 24 * 3_600_000;
/// Milliseconds after the first failure; twice as many after each further one, up to the second number.
const BACKOFF: (i64, i64) = (2_000, 600_000);

/// The tasks of one kind, as jobs of this server.
pub struct GitHubTasks {
    pub github: GitHub,
    pub kind: GitHubTaskKind,
    /// This process must stop: tasks are returned to the queue.
    pub stop: StopSignal,
}

#[async_trait::async_trait]
impl JobSource for GitHubTasks {
    async fn claim(&self, worker: &str) -> Result<Option<Attempt>> {
        let store = &self.github.api.store;
        store.claim_github_task(self.kind, worker).await
    }

    async fn run(&self, taken: &Attempt) -> Result<()> {
        let (github, store) = (&self.github, &self.github.api.store);
        let Some(task) = store.github_task(taken.id.as_str()).await? else {
            return Ok(());
        };
        let work = async {
            match self.kind {
                GitHubTaskKind::Answer => answer::work(github, &task).boxed().await,
                GitHubTaskKind::Confirm => confirmation::work(github, &task).boxed().await,
            }
        };
        // A bug counts as a failure of the task.
        let work = AssertUnwindSafe(work).catch_unwind();
        let ended = tokio::select! {
            ended = work => ended.unwrap_or_else(|_| Err(TaskError::Temporary("internal error in testwright".to_owned()))),
            () = attempt::unwanted(store, taken) => return Ok(()),
            () = stopped(self.stop.clone()) => Ok(TaskEnd::Wait(now())),
        };
        settle(github, self.kind, &task, taken, ended).await
    }
}

async fn settle(
    github: &GitHub,
    kind: GitHubTaskKind,
    task: &GitHubTask,
    taken: &Attempt,
    ended: std::result::Result<TaskEnd, TaskError>,
) -> Result<()> {
    let store = &github.api.store;
    let (repository, issue) = (&task.repository, task.issue);
    let given_up = match ended {
        Ok(TaskEnd::Done(note)) => {
            tracing::info!(repository, issue, note, "a task of GitHub's is done");
            let results = AttemptResults::explained(note);
            return store
                .end_attempt(taken, JobStatus::Done, results)
                .await
                .map(drop);
        }
        Ok(TaskEnd::Wait(until)) => return store.postpone_github_task(taken, until, None).await,
        Err(TaskError::Later(at)) if at < task.created_at + MAX_WAIT => {
            tracing::info!(repository, issue, at, "GitHub wants to be asked later");
            return store.postpone_github_task(taken, at, None).await;
        }
        Err(TaskError::Temporary(why)) if may_fail_again(kind, task) => {
            tracing::warn!(
                repository,
                issue,
                why,
                "a task of GitHub's failed, and is tried again"
            );
            let at = now() + backoff(task.failures);
            return store.postpone_github_task(taken, at, Some(&why)).await;
        }
        Err(TaskError::Later(_)) => "GitHub wanted to be asked later for days".to_owned(),
        Err(TaskError::Temporary(why) | TaskError::Permanent(why)) => why,
    };
    tracing::error!(
        repository,
        issue,
        why = given_up,
        "a task of GitHub's is given up"
    );
    if kind == GitHubTaskKind::Confirm
        && let Err(error) = confirmation::give_up(github, task).await
    {
        tracing::error!(repository, issue, ?error, "nor was that posted");
    }
    let (status, results) = (
        JobStatus::Infrastructure,
        AttemptResults::explained(given_up),
    );
    store.end_attempt(taken, status, results).await.map(drop)
}

fn may_fail_again(kind: GitHubTaskKind, task: &GitHubTask) -> bool {
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
