//! What deliveries say, as far as it matters here, and what they ask for.

use serde::Deserialize;
use testwright_evals::dataset::is_repository;

use super::commands::{self, Command};
use super::mentions::mentioned;
use super::settings::GitHubSettings;
use super::task_details::{AnswerDetails, ConfirmDetails, encode};
use crate::store::{GitHubTaskKind, NewGitHubTask};
use testwright_config::error::{Error, Result};

/// Branches of ours.
pub const BRANCHES: &str = "testwright/";

#[derive(Debug, Deserialize)]
struct Payload {
    #[serde(default)]
    action: String,
    repository: Repository,
    installation: Option<Installation>,
    sender: Option<User>,
    label: Option<Label>,
    issue: Option<Issue>,
    comment: Option<Comment>,
    pull_request: Option<PullRequest>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Debug, Deserialize)]
struct Installation {
    id: u64,
}

#[derive(Debug, Deserialize)]
struct User {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Label {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Issue {
    number: u64,
    title: String,
    body: Option<String>,
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Comment {
    body: String,
    author_association: String,
}

#[derive(Debug, Deserialize)]
struct PullRequest {
    number: u64,
    title: String,
    body: Option<String>,
    author_association: String,
    head: Branch,
    base: Branch,
}

#[derive(Debug, Deserialize)]
struct Branch {
    sha: String,
    #[serde(rename = "ref")]
    name: String,
    repo: Option<Repository>,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Nothing, and why.
    Nothing(&'static str),
    Answer(NewGitHubTask),
    /// One for each issue that is mentioned, whether there is a test for it or not.
    Confirm(Vec<NewGitHubTask>),
}

/// Reads an event; `delivery` is its id.
pub fn read(
    event: &str,
    delivery: &str,
    body: &[u8],
    settings: &GitHubSettings,
) -> Result<Request> {
    if !["issues", "issue_comment", "pull_request"].contains(&event) {
        return Ok(Request::Nothing("this event asks for nothing"));
    }
    let payload: Payload = serde_json::from_slice(body)
        .map_err(|error| Error::usage(format!("read the event `{event}`")).cause(error))?;
    if !is_repository(&payload.repository.full_name) {
        return Err(Error::usage("read the repository's name"));
    }
    match (event, payload.action.as_str()) {
        ("issues", "labeled") => payload.labelled(delivery, settings),
        ("issue_comment", "created") => payload.commented(delivery, settings),
        ("pull_request", "opened" | "synchronize" | "reopened") => payload.pushed(settings),
        _ => Ok(Request::Nothing("this action asks for nothing")),
    }
}

impl Payload {
    /// Who may set labels may ask: GitHub lets nobody else.
    fn labelled(&self, delivery: &str, settings: &GitHubSettings) -> Result<Request> {
        let is_ours = |label: &Label| label.name == settings.label;
        match (&self.issue, &self.label) {
            (Some(issue), Some(label)) if is_ours(label) => self.answer(issue, delivery, false),
            _ => Ok(Request::Nothing("it is another label")),
        }
    }

    fn commented(&self, delivery: &str, settings: &GitHubSettings) -> Result<Request> {
        let (Some(issue), Some(comment)) = (&self.issue, &self.comment) else {
            return Ok(Request::Nothing("there is no comment"));
        };
        let Some(command) = commands::parse(&comment.body, &settings.command) else {
            return Ok(Request::Nothing("it is no command"));
        };
        if self
            .sender
            .as_ref()
            .is_some_and(|sender| sender.kind == "Bot")
        {
            return Ok(Request::Nothing("commands of programs are not taken"));
        }
        let may = &settings.command_associations;
        if !may.contains(&comment.author_association) {
            return Ok(Request::Nothing("who wrote it may not ask for a test"));
        }
        self.answer(issue, delivery, command == Command::PullRequest)
    }

    fn answer(&self, issue: &Issue, delivery: &str, pull_request: bool) -> Result<Request> {
        if issue.pull_request.is_some() {
            return Ok(Request::Nothing("it is a pull request, not an issue"));
        }
        let details = AnswerDetails {
            installation: self.installation.as_ref().map(|i| i.id),
            // A heading, so that a title that is an address is not taken for one.
            issue: format!(
                "# {}\n\n{}",
                issue.title.trim(),
                issue.body.as_deref().unwrap_or_default()
            ),
            pull_request,
        };
        Ok(Request::Answer(NewGitHubTask {
            id: format!("answer {delivery}"),
            kind: GitHubTaskKind::Answer,
            repository: self.repository.full_name.clone(),
            issue: issue.number,
            details: encode(&details)?,
        }))
    }

    fn pushed(&self, settings: &GitHubSettings) -> Result<Request> {
        let Some(pull) = &self.pull_request else {
            return Ok(Request::Nothing("there is no pull request"));
        };
        let name = &self.repository.full_name;
        let is_here = pull
            .head
            .repo
            .as_ref()
            .is_some_and(|repo| repo.full_name == *name);
        if is_here && pull.head.name.starts_with(BRANCHES) {
            return Ok(Request::Nothing("it is a pull request of testwright's own"));
        }
        if !settings
            .confirm_associations
            .contains(&pull.author_association)
        {
            return Ok(Request::Nothing(
                "tests do not run on pull requests of its author",
            ));
        }
        if ![&pull.head.sha, &pull.base.sha]
            .iter()
            .all(|sha| is_hash(sha))
        {
            return Err(Error::usage("read the commits of the pull request"));
        }
        let text = format!(
            "{}\n{}",
            pull.title,
            pull.body.as_deref().unwrap_or_default()
        );
        let details = encode(&ConfirmDetails {
            installation: self.installation.as_ref().map(|i| i.id),
            pull_request: pull.number,
            base: pull.base.sha.clone(),
            head: pull.head.sha.clone(),
        })?;
        let task = |issue| NewGitHubTask {
            // A pull request that is opened again has been tried on these commits.
            id: format!(
                "confirm {name}#{issue} on #{} at {}",
                pull.number, pull.head.sha
            ),
            kind: GitHubTaskKind::Confirm,
            repository: name.clone(),
            issue,
            details: details.clone(),
        };
        let tasks: Vec<_> = mentioned(&text, name).into_iter().map(task).collect();
        Ok(match tasks.is_empty() {
            true => Request::Nothing("it mentions no issue"),
            false => Request::Confirm(tasks),
        })
    }
}

fn is_hash(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}
