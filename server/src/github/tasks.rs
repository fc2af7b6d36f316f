//! Works on what was delivered, beside the server: answers, and confirmations on their own, since those take longer.
//!
//! A task is taken for a while, and for longer as long as it is worked on: one whose server dies is taken again by another,
//! or by the same one when it is back.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;

use super::task_end::{TaskEnd, TaskError};
use super::{GitHub, answer, confirmation};
use crate::store::{GitHubTask, GitHubTaskKind, now};
use testwright_config::error::Result;
use testwright_config::stop_signal::{StopSignal, stopped};

/// How often is looked for what is due.
const POLL: Duration = Duration::from_secs(1);
/// After the database did not answer.
const PAUSE: Duration = Duration::from_secs(10);
/// Milliseconds for which a task is taken, and how often that is made longer.
const CLAIM: i64 = 20_000;
const RENEWAL: Duration = Duration::from_secs(5);
/// Failures after which a task is given up.
const MOST_FAILURES: i64 = 8;
/// The same for a confirmation, which builds environments.
const MOST_FAILURES_TO_CONFIRM: i64 = 3;
/// Milliseconds for which GitHub may want to be asked later.
const LONGEST_WAIT: i64 = 3 * 24 * 3_600_000;
/// Milliseconds after the first failure; twice as many after each further one, up to the second number.
const BACKOFF: (i64, i64) = (2_000, 600_000);

/// Works until `stop` says so.
pub async fn work(github: Option<GitHub>, stop: StopSignal) {
    let Some(github) = github else { return };
    tokio::join!(
        work_on(&github, GitHubTaskKind::Answer, stop.clone()),
        work_on(&github, GitHubTaskKind::Confirm, stop)
    );
}

async fn work_on(github: &GitHub, kind: GitHubTaskKind, stop: StopSignal) {
    while !*stop.borrow() {
        let pause = match github
            .api
            .store
            .claim_github_task(kind, now() + CLAIM)
            .await
        {
            Ok(Some(task)) => match take(github, kind, &task, stop.clone()).await {
                Ok(()) => continue,
                Err(error) => failed(&error),
            },
            Ok(None) => POLL,
            Err(error) => failed(&error),
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(stop.clone()) => {}
        }
    }
}

fn failed(error: &testwright_config::error::Error) -> Duration {
    tracing::error!(
        error = error.with_cause(),
        "a task of GitHub's was not stored"
    );
    PAUSE
}

/// Works on a task. It is given back where this process ends.
async fn take(
    github: &GitHub,
    kind: GitHubTaskKind,
    task: &GitHubTask,
    stop: StopSignal,
) -> Result<()> {
    let work = async {
        match kind {
            GitHubTaskKind::Answer => answer::work(github, task).boxed().await,
            GitHubTaskKind::Confirm => confirmation::work(github, task).boxed().await,
        }
    };
    // A defect ends the task and not the server.
    let work = AssertUnwindSafe(work).catch_unwind();
    let ended = tokio::select! {
        ended = work => ended.unwrap_or_else(|_| Err(TaskError::Temporary("a defect of testwright".to_owned()))),
        // What it has done until now, the other finds.
        () = keep_claim(github, task) => return Ok(()),
        () = stopped(stop) => Ok(TaskEnd::Wait(now())),
    };
    settle(github, kind, task, ended).await
}

/// Ends where another server has taken the task.
async fn keep_claim(github: &GitHub, task: &GitHubTask) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        match github
            .api
            .store
            .extend_github_claim(task, now() + CLAIM)
            .await
        {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => drop(failed(&error)),
        }
    }
}

async fn settle(
    github: &GitHub,
    kind: GitHubTaskKind,
    task: &GitHubTask,
    ended: std::result::Result<TaskEnd, TaskError>,
) -> Result<()> {
    let store = &github.api.store;
    let (repository, issue) = (&task.repository, task.issue);
    let given_up = match ended {
        Ok(TaskEnd::Done(note)) => {
            tracing::info!(repository, issue, note, "a task of GitHub's is done");
            return store.end_github_task(task, true, &note).await;
        }
        Ok(TaskEnd::Wait(until)) => return store.postpone_github_task(task, until, None).await,
        Err(TaskError::Later(at)) if at < task.created_at + LONGEST_WAIT => {
            tracing::info!(repository, issue, at, "GitHub wants to be asked later");
            return store.postpone_github_task(task, at, None).await;
        }
        Err(TaskError::Temporary(why)) if may_fail_again(kind, task) => {
            tracing::warn!(
                repository,
                issue,
                why,
                "a task of GitHub's failed, and is tried again"
            );
            let at = now() + backoff(task.failures);
            return store.postpone_github_task(task, at, Some(&why)).await;
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
    store.end_github_task(task, false, &given_up).await
}

fn may_fail_again(kind: GitHubTaskKind, task: &GitHubTask) -> bool {
    let most = match kind {
        GitHubTaskKind::Answer => MOST_FAILURES,
        GitHubTaskKind::Confirm => MOST_FAILURES_TO_CONFIRM,
    };
    task.failures + 1 < most
}

fn backoff(failures: i64) -> i64 {
    let (first, most) = BACKOFF;
    let exponent = u32::try_from(failures).unwrap_or(u32::MAX).min(20);
    (first << exponent).min(most)
}
