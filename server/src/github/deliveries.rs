//! Parses deliveries and decides what to do for them.

use serde::Deserialize;
use testwright_evals::dataset::is_repository;

use super::commands::{self, Command};
use super::draft_pull_request::BRANCH_PREFIX;
use super::mentions::mentioned;
use super::settings::GitHubSettings;
use super::task_details::{AnswerDetails, ConfirmDetails};
use crate::json::encode;
use crate::store::{GitHubTaskKind, NewGitHubTask};
use testwright_config::error::{Error, Result};

const STORE_DETAILS: &str = "store what GitHub delivered";

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

/// The request in a delivery.
#[derive(Debug, PartialEq)]
pub(super) enum DeliveryRequest {
    /// The delivery is ignored, for this reason.
    Nothing(&'static str),
    Answer(NewGitHubTask),
    /// A task for each mentioned issue, whether or not it has a test.
    Confirm(Vec<NewGitHubTask>),
}

/// Parses an event; `delivery` is its id.
pub(super) fn read(
    event: &str,
    delivery: &str,
    body: &[u8],
    settings: &GitHubSettings,
) -> Result<DeliveryRequest> {
    if !["issues", "issue_comment", "pull_request"].contains(&event) {
        return ignored("this event is ignored");
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
        _ => ignored("this action is ignored"),
    }
}

impl Payload {
    /// Handles a new label. Anyone whom GitHub allows to set labels may start a run.
    fn labelled(&self, delivery: &str, settings: &GitHubSettings) -> Result<DeliveryRequest> {
        let is_ours = |label: &Label| label.name == settings.label;
        match (&self.issue, &self.label) {
            (Some(issue), Some(label)) if is_ours(label) => {
                self.answer(issue, delivery, Command::Test)
            }
            _ => ignored("the label does not start a run"),
        }
    }

    fn commented(&self, delivery: &str, settings: &GitHubSettings) -> Result<DeliveryRequest> {
        let (Some(issue), Some(comment)) = (&self.issue, &self.comment) else {
            return ignored("the comment is missing");
        };
        let Some(command) = commands::parse(&comment.body, &settings.command) else {
            return ignored("the comment is not a command");
        };
        if self
            .sender
            .as_ref()
            .is_some_and(|sender| sender.kind == "Bot")
        {
            return ignored("commands from bots are ignored");
        }
        let may = &settings.command_associations;
        if !may.contains(&comment.author_association) {
            return ignored("the author may not request a test");
        }
        self.answer(issue, delivery, command)
    }

    fn answer(&self, issue: &Issue, delivery: &str, command: Command) -> Result<DeliveryRequest> {
        if issue.pull_request.is_some() {
            return ignored("this is a pull request, not an issue");
        }
        let details = AnswerDetails {
            installation: self.installation.as_ref().map(|i| i.id),
            // The heading prevents a title that is a URL from being read as the URL of an issue.
            issue: format!(
                "# {}\n\n{}",
                issue.title.trim(),
                issue.body.as_deref().unwrap_or_default()
            ),
            pull_request: command == Command::PullRequest,
            revision: match command {
                Command::Revise(words) => Some(words),
                Command::Test | Command::PullRequest => None,
            },
        };
        Ok(DeliveryRequest::Answer(NewGitHubTask {
            id: format!("answer {delivery}"),
            kind: GitHubTaskKind::Answer,
            repository: self.repository.full_name.clone(),
            issue: issue.number,
            details: encode(&details, STORE_DETAILS)?,
        }))
    }

    fn pushed(&self, settings: &GitHubSettings) -> Result<DeliveryRequest> {
        let Some(pull) = &self.pull_request else {
            return ignored("the pull request is missing");
        };
        let name = &self.repository.full_name;
        let is_here = pull
            .head
            .repo
            .as_ref()
            .is_some_and(|repo| repo.full_name == *name);
        if is_here && pull.head.name.starts_with(BRANCH_PREFIX) {
            return ignored("testwright opened this pull request");
        }
        if !settings
            .confirm_associations
            .contains(&pull.author_association)
        {
            return ignored("tests do not run on pull requests of this author");
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
        let details = ConfirmDetails {
            installation: self.installation.as_ref().map(|i| i.id),
            pull_request: pull.number,
            base: pull.base.sha.clone(),
            head: pull.head.sha.clone(),
        };
        let details = encode(&details, STORE_DETAILS)?;
        let task = |issue| NewGitHubTask {
            // A reopened pull request has already been checked on these commits.
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
            true => DeliveryRequest::Nothing("the pull request mentions no issue"),
            false => DeliveryRequest::Confirm(tasks),
        })
    }
}

fn ignored(why: &'static str) -> Result<DeliveryRequest> {
    Ok(DeliveryRequest::Nothing(why))
}

fn is_hash(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}
