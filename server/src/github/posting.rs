//! Comments, each posted once: a hidden mark in it shows that it is there.

use serde_json::{Value, json};

use super::client::ApiRequest;
use super::task_end::TaskError;
use super::{GitHub, signature};
use crate::store::{GitHubTask, timestamp};

const PER_PAGE: usize = 100;
/// Pages of comments that are looked through: those of 5,000 comments since the task was made.
const MAX_PAGES: usize = 50;

/// Posts a comment of a task on an issue or a pull request, unless it is there. Answers with its address.
pub async fn post(
    github: &GitHub,
    task: &GitHubTask,
    installation: Option<u64>,
    number: u64,
    text: &str,
) -> Result<String, TaskError> {
    let repository = &task.repository;
    if github.settings.dry_run {
        // Shown unless the log is turned down: it is what a dry run is for.
        tracing::warn!(repository, number, text, "dry run: not posted");
        return Ok("dry run: not posted".to_owned());
    }
    let mark = mark(github, task);
    // At the first attempt there can be none.
    if task.attempts > 1
        && let Some(url) = find(github, task, installation, number, &mark).await?
    {
        return Ok(url);
    }
    let (owner, name) = repository.split_once('/').unwrap_or_default();
    let number = number.to_string();
    let path = ["repos", owner, name, "issues", &number, "comments"];
    let body = json!({ "body": format!("{text}\n{mark}\n") });
    let request = ApiRequest::post(&path, body);
    let login = &github.settings.login;
    let posted = github.client.send(login, installation, request).await?;
    Ok(url(&posted))
}

/// Nobody can post it before: it takes the secret of the webhook to make it.
fn mark(github: &GitHub, task: &GitHubTask) -> String {
    let secret = github.settings.secrets.first();
    let mark = secret.map(|secret| signature::mark(secret, &task.id));
    format!("<!-- testwright {} -->", mark.unwrap_or_default())
}

async fn find(
    github: &GitHub,
    task: &GitHubTask,
    installation: Option<u64>,
    number: u64,
    mark: &str,
) -> Result<Option<String>, TaskError> {
    let (owner, name) = task.repository.split_once('/').unwrap_or_default();
    let number = number.to_string();
    let path = ["repos", owner, name, "issues", &number, "comments"];
    // Clocks differ.
    let since = timestamp(task.created_at - 3_600_000);
    for page in 1..=MAX_PAGES {
        let query = [
            ("since", since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            ("per_page", PER_PAGE.to_string()),
            ("page", page.to_string()),
        ];
        let request = ApiRequest::get(&path, &query);
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
