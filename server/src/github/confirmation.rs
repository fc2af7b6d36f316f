//! Checks what the test of an issue does on a pull request that mentions the issue: the test runs on the code before
//! and after, with the other tests of its files.

use testwright_sandboxes::repository::Files;
use testwright_tools::outcomes::report::{Outcome as TestOutcome, TestReport};
use testwright_tools::outcomes::{covers, file_of};

use super::GitHub;
use super::answer::{newest_accepted_run, outcome};
use super::comment::{code_block, short_commit};
use super::expected_failure::unmark;
use super::posting::post;
use super::task_details::ConfirmDetails;
use super::task_result::{TaskEnd, TaskError};
use super::test_run::CodeUnderTest;
use crate::json::decode;
use crate::store::{GitHubTask, StoredRun, now};
use testwright_agent::agent::Outcome;

/// Milliseconds before checking again whether the test exists.
const POLL_INTERVAL_MS: i64 = 10_000;

/// The result of the check.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Confirmed,
    /// The test passes without the pull request too.
    PassesAlready,
    /// These tests of the issue do not pass.
    StillFailing(Vec<String>),
    /// These other tests passed before and fail now.
    Broken(Vec<String>),
    /// Tests of the issue do not pass, and other tests broke.
    FailingAndBroken(Vec<String>, Vec<String>),
    /// The test file changed, so that the test cannot be added, and it does not contain the test either.
    DoesNotApply,
}

pub(super) async fn confirm_pull_request(
    github: &GitHub,
    task: &GitHubTask,
) -> Result<TaskEnd, TaskError> {
    let details: ConfirmDetails = decode(&task.details, "read what GitHub delivered")?;
    let Some(run) = newest_accepted_run(github, &task.repository, task.issue).await? else {
        let is_underway = is_underway(github, task).await?;
        return Ok(match is_underway {
            true => TaskEnd::Wait(now() + POLL_INTERVAL_MS),
            false => TaskEnd::Done("the issue has no test".to_owned()),
        });
    };
    let verdict = determine_verdict(github, task, &details, &run).await?;
    let text = verdict_text(&verdict, task.issue, &details);
    let posted = post(
        github,
        task,
        details.installation,
        details.pull_request,
        &text,
    )
    .await?;
    Ok(TaskEnd::Done(posted))
}

/// Reports that the check failed.
pub(super) async fn post_failure(github: &GitHub, task: &GitHubTask) -> Result<String, TaskError> {
    let details: ConfirmDetails = decode(&task.details, "read what GitHub delivered")?;
    let text = format!(
        "The test for #{} could not be run on this pull request ({}): the environment could not be built, or the server \
         failed. See the server's log for details.\n",
        task.issue,
        short_commit(&details.head)
    );
    post(
        github,
        task,
        details.installation,
        details.pull_request,
        &text,
    )
    .await
}

async fn is_underway(github: &GitHub, task: &GitHubTask) -> Result<bool, TaskError> {
    let store = &github.api.store;
    for id in store.github_runs(&task.repository, task.issue).await? {
        let Some(id) = id else { return Ok(true) };
        if store
            .run(&id)
            .await?
            .is_some_and(|run| !run.status.has_ended())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn determine_verdict(
    github: &GitHub,
    task: &GitHubTask,
    details: &ConfirmDetails,
    run: &StoredRun,
) -> Result<Verdict, TaskError> {
    let Some(Outcome::Accepted { patch, evidence }) = outcome(run) else {
        return Err(TaskError::Permanent("the run has no test".to_owned()));
    };
    let test = StoredTest {
        ids: evidence.tests.into_iter().map(|test| test.id).collect(),
        patch,
        issue: task.issue,
    };
    let mut reports = Vec::new();
    for commit in [&details.head, &details.base] {
        let code = CodeUnderTest::start(github, &task.repository, commit, run).await?;
        let report = test.run_on(&code).await;
        code.close().await?;
        match report? {
            Some(report) => reports.push(report),
            None => return Ok(Verdict::DoesNotApply),
        }
    }
    Ok(match &reports[..] {
        [head, base] => compare_reports(base, head, &test.ids),
        _ => Verdict::DoesNotApply,
    })
}

struct StoredTest {
    ids: Vec<String>,
    patch: String,
    issue: u64,
}

impl StoredTest {
    /// Runs the tests in the files of the test; `None` if the test neither applies nor exists already.
    async fn run_on(&self, code: &CodeUnderTest) -> Result<Option<TestReport>, TaskError> {
        let files = match code.apply(&self.patch).await? {
            Ok(files) => files,
            Err(_) => match self.merged(code).await? {
                Some(files) => files,
                None => return Ok(None),
            },
        };
        let paths: Vec<String> = files
            .iter()
            .filter(|(_, file)| file.is_some())
            .map(|(path, _)| path.clone())
            .collect();
        Ok(Some(code.run(&files, &paths).await?))
    }

    /// Returns the existing files if they already contain the test, without the marks for expected failures.
    async fn merged(&self, code: &CodeUnderTest) -> Result<Option<Files>, TaskError> {
        let mut paths: Vec<String> = self.ids.iter().map(|id| file_of(id).to_owned()).collect();
        paths.sort();
        paths.dedup();
        let ids: Vec<&str> = self.ids.iter().map(String::as_str).collect();
        let mut files = code.files(paths).await?;
        for (path, file) in &mut files {
            let Some(file) = file else { return Ok(None) };
            let Ok(text) = std::str::from_utf8(&file.content) else {
                return Ok(None);
            };
            match unmark(path, text, &ids, &format!("#{}", self.issue)) {
                Ok(text) => file.content = text.into_bytes(),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(files))
    }
}

fn compare_reports(base: &TestReport, head: &TestReport, ids: &[String]) -> Verdict {
    let passes = |report: &TestReport, id: &str| {
        report.tests.iter().any(|test| {
            test.id == id && matches!(test.outcome, TestOutcome::Passed | TestOutcome::Xpassed)
        })
    };
    let failing: Vec<String> = ids.iter().filter(|id| !passes(head, id)).cloned().collect();
    let is_own = |id: &str| ids.iter().any(|own| own == id || covers(own, id));
    let broken: Vec<String> = base
        .tests
        .iter()
        .filter(|test| test.outcome == TestOutcome::Passed && !is_own(&test.id))
        .filter(|test| is_broken(head, &test.id))
        .map(|test| test.id.clone())
        .collect();
    match (failing.is_empty(), broken.is_empty()) {
        (true, true) if ids.iter().all(|id| passes(base, id)) => Verdict::PassesAlready,
        (true, true) => Verdict::Confirmed,
        (false, true) => Verdict::StillFailing(failing),
        (true, false) => Verdict::Broken(broken),
        (false, false) => Verdict::FailingAndBroken(failing, broken),
    }
}

/// Returns whether a test broke. A removed or skipped test did not; a test whose module cannot be collected did.
fn is_broken(report: &TestReport, id: &str) -> bool {
    let of_id = report.tests.iter().find(|test| test.id == id);
    match of_id.map(|test| test.outcome) {
        Some(outcome) => matches!(
            outcome,
            TestOutcome::Failed | TestOutcome::Error | TestOutcome::Absent
        ),
        None => !report.collection_errors.is_empty(),
    }
}

fn verdict_text(verdict: &Verdict, issue: u64, details: &ConfirmDetails) -> String {
    let head = short_commit(&details.head);
    let list = |ids: &[String]| code_block("text", &ids.join("\n"));
    match verdict {
        Verdict::Confirmed => format!(
            "Fail-to-pass confirmed: the test for #{issue} fails without this pull request and passes with it ({head}).\n"
        ),
        Verdict::PassesAlready => format!(
            "The test for #{issue} passes both with this pull request ({head}) and without it, so it says nothing about this change.\n"
        ),
        Verdict::StillFailing(failing) => format!(
            "Still failing: the test for #{issue} does not pass with this pull request ({head}).\n\n{}",
            list(failing)
        ),
        Verdict::Broken(broken) => format!(
            "Other tests broke: the test for #{issue} passes with this pull request ({head}), but these tests in the same \
             files passed before and fail now:\n\n{}",
            list(broken)
        ),
        Verdict::FailingAndBroken(failing, broken) => format!(
            "Still failing, and other tests broke: the test for #{issue} does not pass with this pull request ({head}).\n\n\
             {}\nThese tests in the same files passed before and fail now:\n\n{}",
            list(failing),
            list(broken)
        ),
        Verdict::DoesNotApply => format!(
            "The test for #{issue} was not run on this pull request ({head}): its file has changed, so the test can no \
             longer be added to it.\n"
        ),
    }
}

#[cfg(test)]
mod tests;
