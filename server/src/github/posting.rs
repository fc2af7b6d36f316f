//! Posts comments, each only once: a hidden mark in a comment identifies it.

use serde_json::{Value, json};

use super::client::ApiRequest;
use super::task_result::TaskError;
use super::{GitHub, signature};
use crate::store::{GitHubTask, timestamp};

const PER_PAGE: usize = 100;
/// Maximum pages of comments to search: 5,000 comments since the creation of the task.
const MAX_PAGES: usize = 50;

/// Posts a comment of a task on an issue or a pull request, unless it already exists. Returns its URL.
pub(super) async fn post(
    github: &GitHub,
    task: &GitHubTask,
    installation: Option<u64>,
    number: u64,
    text: &str,
) -> Result<String, TaskError> {
    let repository = &task.repository;
    if github.settings.dry_run {
        // Logged as a warning so that it is visible by default: it is the result of a dry run.
        tracing::warn!(repository, number, text, "dry run: not posted");
        return Ok("dry run: not posted".to_owned());
    }
    let mark = mark(github, task);
    let (owner, name) = repository.split_once('/').unwrap_or_default();
    let number = number.to_string();
    let path = ["repos", owner, name, "issues", &number, "comments"];
    // Before the second attempt, no comment can exist.
    if task.attempts > 1
        && let Some(url) = find_posted_comment(github, task, installation, &path, &mark).await?
    {
        return Ok(url);
    }
    let body = json!({ "body": format!("{text}\n{mark}\n") });
    let request = ApiRequest::post(&path, body);
    let login = &github.settings.login;
    let posted = github.client.send(login, installation, request).await?;
    Ok(url(&posted))
}

/// Returns the mark of a task. Others cannot forge it, because it requires the webhook secret.
fn mark(github: &GitHub, task: &GitHubTask) -> String {
    let secret = github.settings.secrets.first();
    let mark = secret.map(|secret| signature::mark(secret, &task.id));
    format!("<!-- testwright {} -->", mark.unwrap_or_default())
}

async fn find_posted_comment(
    github: &GitHub,
    task: &GitHubTask,
    installation: Option<u64>,
    path: &[&str],
    mark: &str,
) -> Result<Option<String>, TaskError> {
    // The search starts earlier, because clocks differ.
    let since = timestamp(task.created_at - 3_600_000);
    for page in 1..=MAX_PAGES {
        let query = [
            ("since", since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            ("per_page", PER_PAGE.to_string()),
            ("page", page.to_string()),
        ];
        let request = ApiRequest::get(path, &query);
        let login = &github.settings.login;
        let answer = github.client.send(login, installation, request).await?;
        let comments = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_ours = |comment: &&Value| comment["body"].as_str().is_some_and(|b| b.contains(mark));
        if let Some(comment) = comments.iter().find(is_ours) {
            return Ok(Some(url(comment)));
        }
        if comments.len() < PER_PAGE {
            break;
        }
    }
    Ok(None)
}

fn url(comment: &Value) -> String {
    comment["html_url"].as_str().unwrap_or_default().to_owned()
}
