//! Opens a draft pull request with only a test, marked as expected to fail.
//!
//! It uses GitHub's Git database API, so nothing is pushed from here. An existing branch or pull request is reused.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use testwright_sandboxes::repository::{File, FileKind, Files};
use testwright_tools::outcomes::report::{Outcome as TestOutcome, TestReport};

use super::GitHub;
use super::client::{ApiRequest, RequestError};
use super::comment::{self, PullRequestResult};
use super::draft_pull_request::{BRANCH_PREFIX, DraftPullRequest};
use super::expected_failure::{self, Tests};
use super::task_result::TaskError;
use super::test_run::CodeUnderTest;
use crate::store::{GitHubTask, StoredRun};
use testwright_agent::gate::Evidence;

/// An accepted test.
pub(super) struct AcceptedTest<'a> {
    pub run: &'a StoredRun,
    pub patch: &'a str,
    pub evidence: &'a Evidence,
}

/// Opens the pull request, unless it already exists. An error that a retry cannot fix is logged, because the comment with
/// the test is posted anyway.
pub(super) async fn open(
    github: &GitHub,
    task: &GitHubTask,
    installation: Option<u64>,
    test: &AcceptedTest<'_>,
) -> Result<PullRequestResult, TaskError> {
    match try_open(github, task, installation, test).await {
        Err(TaskError::Permanent(why)) => {
            let repository = &task.repository;
            tracing::warn!(repository, why, "could not open a pull request");
            Ok(Err("an error occurred; see the server's log".to_owned()))
        }
        opened => opened,
    }
}

async fn try_open(
    github: &GitHub,
    task: &GitHubTask,
    installation: Option<u64>,
    test: &AcceptedTest<'_>,
) -> Result<PullRequestResult, TaskError> {
    let record = test.run.record_value();
    let Some(commit) = record["commit"].as_str() else {
        return Ok(Err("the test was not written for a commit".to_owned()));
    };
    let code = CodeUnderTest::start(github, &task.repository, commit, test.run).await?;
    let marked = mark_and_verify(&code, test, task.issue).await;
    code.close().await?;
    let files = match marked? {
        Ok(files) => files,
        Err(why) => return Ok(Err(why)),
    };
    let draft = Draft {
        github,
        installation,
        repository: &task.repository,
        issue: task.issue,
        branch: format!("{BRANCH_PREFIX}issue-{}-{}", task.issue, test.run.id),
    };
    if github.settings.dry_run {
        let paths: Vec<&String> = files.keys().collect();
        let (repository, branch) = (&task.repository, &draft.branch);
        tracing::warn!(
            repository,
            branch,
            ?paths,
            "dry run: not opening a pull request"
        );
        return Ok(Err("this is a dry run".to_owned()));
    }
    Ok(Ok(draft.open(commit, &files, test.evidence).await?))
}

/// Returns the files of the test with its marks, after running them on the original commit; or why the test cannot be
/// marked.
async fn mark_and_verify(
    code: &CodeUnderTest,
    test: &AcceptedTest<'_>,
    issue: u64,
) -> Result<Result<Files, String>, TaskError> {
    let Ok(mut files) = code.apply(test.patch).await? else {
        return Ok(Err(
            "the test does not apply to the commit it was written for".to_owned(),
        ));
    };
    let failing: Vec<&str> = test.evidence.tests.iter().map(|t| t.id.as_str()).collect();
    let passing: Vec<&str> = test.evidence.passing.iter().map(String::as_str).collect();
    let tests = Tests { failing, passing };
    let reason = format!("#{issue}");
    for (path, file) in &mut files {
        let Some(file) = file else { continue };
        let Ok(text) = std::str::from_utf8(&file.content) else {
            return Ok(Err("a file of the test is not UTF-8".to_owned()));
        };
        match expected_failure::mark(path, text, &tests, &reason, code.runner()) {
            Ok(text) => file.content = text.into_bytes(),
            Err(why) => {
                tracing::warn!(path, %why, "could not mark a test as expected to fail");
                return Ok(Err(
                    "the test cannot be marked as expected to fail".to_owned()
                ));
            }
        }
    }
    let ids: Vec<String> = tests.failing.iter().map(|&id| id.to_owned()).collect();
    let report = code.run(&files, &ids).await?;
    Ok(match are_expected_failures(&report, &ids) {
        true => Ok(files),
        false => Err("the test did not fail as expected after it was marked".to_owned()),
    })
}

fn are_expected_failures(report: &TestReport, ids: &[String]) -> bool {
    ids.iter().all(|id| {
        let mut of_id = report.tests.iter().filter(|test| test.id == *id);
        of_id.any(|test| test.outcome == TestOutcome::Xfailed)
    })
}

struct Draft<'a> {
    github: &'a GitHub,
    installation: Option<u64>,
    repository: &'a str,
    issue: u64,
    branch: String,
}

impl Draft<'_> {
    async fn open(
        &self,
        commit: &str,
        files: &Files,
        evidence: &Evidence,
    ) -> Result<u64, TaskError> {
        if let Some(number) = self.existing().await? {
            return Ok(number);
        }
        self.make_branch(commit, files).await?;
        let base = self.get(&[], &[]).await?["default_branch"].clone();
        let issue = self.issue;
        let body = format!(
            "A test that fails for the reason stated in the issue. It is marked as expected to fail until the issue is fixed.\n\n\
             Refs #{issue}\n\n{}",
            comment::evidence_block(evidence)
        );
        let draft = DraftPullRequest {
            title: &format!("Add a failing test for #{issue}"),
            head: &self.branch,
            base: base.as_str().unwrap_or_default(),
            body: &body,
        };
        number(&self.post(&["pulls"], draft.to_json()).await?)
    }

    async fn existing(&self) -> Result<Option<u64>, TaskError> {
        let owner = self.repository.split('/').next().unwrap_or_default();
        let query = [
            ("head", format!("{owner}:{}", self.branch)),
            ("state", "all".to_owned()),
        ];
        let listed = self.get(&["pulls"], &query).await?;
        listed.get(0).map(number).transpose()
    }

    async fn make_branch(&self, commit: &str, files: &Files) -> Result<(), TaskError> {
        let parent = self.get(&["git", "commits", commit], &[]).await?;
        let mut entries = Vec::new();
        for (path, file) in files {
            entries.push(self.tree_entry(path, file.as_ref()).await?);
        }
        let tree = json!({"base_tree": parent["tree"]["sha"], "tree": entries});
        let tree = self.post(&["git", "trees"], tree).await?;
        let message = format!("Add a failing test for #{}", self.issue);
        let commit = json!({"message": message, "tree": tree["sha"], "parents": [commit]});
        let commit = self.post(&["git", "commits"], commit).await?;
        let reference = format!("refs/heads/{}", self.branch);
        let reference = json!({"ref": reference, "sha": commit["sha"]});
        match self
            .send(ApiRequest::post(&self.path(&["git", "refs"]), reference))
            .await
        {
            Ok(_) => Ok(()),
            // An earlier attempt created the branch.
            Err(RequestError::Refused {
                status: 422,
                message,
            }) if message.contains("already exists") => Ok(()),
            Err(error) => Err(to_task_error(error)),
        }
    }

    async fn tree_entry(&self, path: &str, file: Option<&File>) -> Result<Value, TaskError> {
        let mode = match file.map(|file| file.kind) {
            Some(FileKind::Executable) => "100755",
            _ => "100644",
        };
        let sha = match file {
            Some(file) => {
                let content = BASE64_STANDARD.encode(&file.content);
                let blob = json!({"content": content, "encoding": "base64"});
                self.post(&["git", "blobs"], blob).await?["sha"].clone()
            }
            // A null hash removes the file.
            None => Value::Null,
        };
        Ok(json!({"path": path, "mode": mode, "type": "blob", "sha": sha}))
    }

    fn path<'b>(&'b self, rest: &[&'b str]) -> Vec<&'b str> {
        let (owner, name) = self.repository.split_once('/').unwrap_or_default();
        [&["repos", owner, name], rest].concat()
    }

    async fn get(&self, rest: &[&str], query: &[(&str, String)]) -> Result<Value, TaskError> {
        let path = self.path(rest);
        let response = self.send(ApiRequest::get(&path, query)).await;
        response.map_err(to_task_error)
    }

    async fn post(&self, rest: &[&str], body: Value) -> Result<Value, TaskError> {
        let path = self.path(rest);
        let response = self.send(ApiRequest::post(&path, body)).await;
        response.map_err(to_task_error)
    }

    async fn send(&self, request: ApiRequest<'_>) -> Result<Value, RequestError> {
        let login = &self.github.settings.login;
        self.github
            .client
            .send(login, self.installation, request)
            .await
    }
}

/// Converts the error of a request. A token without a permission is not worth a retry: the test can be posted without a
/// pull request.
fn to_task_error(error: RequestError) -> TaskError {
    match error {
        RequestError::Refused { status: 403, .. } => TaskError::Permanent(error.to_string()),
        error => error.into(),
    }
}

fn number(pull_request: &Value) -> Result<u64, TaskError> {
    let number = pull_request["number"].as_u64();
    number.ok_or_else(|| TaskError::Temporary("GitHub's response is not a pull request".to_owned()))
}
