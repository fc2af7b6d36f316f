//! An issue as it was at a given time, because edits after the fix may reveal it.
//!
//! Anyone can read the history of titles. The history of bodies requires a token, and comes from the GraphQL
//! API.

use jiff::Timestamp;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::IssueAnswer;
use crate::issues::Options;
use crate::issues::address::Address;
use crate::issues::http::{Api, is_loopback};
use testwright_config::error::{Error, Result};
use testwright_sandboxes::http_client;

/// Title and body of an issue before its fix.
#[derive(Debug, Clone, PartialEq)]
pub struct TextBeforeFix {
    /// Title before the fix.
    pub title: String,
    /// Text in Markdown before the fix, without the title.
    pub body: String,
    /// Address, or name of a file.
    pub origin: String,
    /// Creation time, if known.
    pub created_at: Option<Timestamp>,
    /// Known edits after the fix.
    pub later_edits: String,
}

#[derive(Deserialize)]
struct RenameEvent {
    event: Option<String>,
    created_at: Option<Timestamp>,
    rename: Option<Rename>,
}

#[derive(Deserialize)]
struct Rename {
    from: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edits {
    last_edited_at: Option<Timestamp>,
    user_content_edits: Option<EditList>,
}

#[derive(Deserialize)]
struct EditList {
    nodes: Vec<Edit>,
}

/// An edit of the body. `diff` is the full text after the edit, or missing for a deleted edit.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edit {
    edited_at: Timestamp,
    diff: Option<String>,
}

const QUERY: &str = "query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { \
                     issue(number: $number) { lastEditedAt userContentEdits(first: 100) { nodes { editedAt diff } } } } }";

/// Reads an issue as it was at `time`.
///
/// # Errors
///
/// Fails with kind `Usage` if the text at that time does not exist or is unknown, and otherwise if the server
/// cannot be read.
pub(crate) async fn as_of(
    address: &Address,
    time: Timestamp,
    options: &Options,
) -> Result<TextBeforeFix> {
    let api = Api::new(address, options)?;
    let (answer, url, _) = api.issue(address).await?;
    let absent =
        |cause: &str| Error::usage(format!("read the issue at {}", address.page())).cause(cause);
    if answer.created_at.is_some_and(|created| created >= time) {
        return Err(absent("it was filed after the fix"));
    }
    let is_untouched = answer.updated_at.is_some_and(|updated| updated < time);
    let title = match is_untouched {
        true => answer.title.clone(),
        false => title_at(&api, &url, &answer, time).await?,
    };
    let (body, later_edits) = match is_untouched {
        true => (answer.body.clone(), Some(0)),
        false => match edits(&api, address, &url).await? {
            None => (answer.body.clone(), None),
            Some(edits) => {
                let (body, later) = body_at(&edits, &answer, time).ok_or_else(|| {
                    absent("its text before the fix is unknown, because it was edited later")
                })?;
                (body, Some(later))
            }
        },
    };
    Ok(TextBeforeFix {
        title: title.trim().to_owned(),
        body: body.unwrap_or_default().replace("\r\n", "\n"),
        origin: address.page(),
        created_at: answer.created_at,
        later_edits: match later_edits {
            None => "not known".to_owned(),
            Some(0) => "none".to_owned(),
            Some(number) => format!("{number}, taken back"),
        },
    })
}

/// Returns the title at the time, taken from the first later renaming.
async fn title_at(api: &Api, issue: &Url, answer: &IssueAnswer, time: Timestamp) -> Result<String> {
    let (events, _) = api.pages::<RenameEvent>(issue, "events").await?;
    let later = events.into_iter().filter_map(|event| {
        let renamed = event.event.as_deref() == Some("renamed");
        let at = event.created_at.filter(|at| renamed && *at >= time)?;
        Some((at, event.rename?.from))
    });
    let first = later.min_by_key(|(at, _)| *at);
    Ok(first.map_or_else(|| answer.title.clone(), |(_, from)| from))
}

/// Returns the body at the time and the number of later edits; `None` if that text is not available.
fn body_at(edits: &Edits, answer: &IssueAnswer, time: Timestamp) -> Option<(Option<String>, u64)> {
    let all = edits.user_content_edits.as_ref();
    let all = all.map_or([].as_slice(), |list| list.nodes.as_slice());
    if edits.last_edited_at.is_none_or(|last| last < time) {
        return Some((answer.body.clone(), 0));
    }
    let later = all.iter().filter(|edit| edit.edited_at >= time).count();
    let before = all.iter().filter(|edit| edit.edited_at < time);
    let last = before.max_by_key(|edit| edit.edited_at)?;
    Some((Some(last.diff.clone()?), later as u64))
}

/// Returns the edits; `None` without permission to read them.
async fn edits(api: &Api, address: &Address, issue: &Url) -> Result<Option<Edits>> {
    let private = issue.scheme() == "https" || is_loopback(issue);
    let Some(token) = api.token.as_ref().filter(|_| private) else {
        return Ok(None);
    };
    let path = issue.path();
    let root = path.split("/repos/").next().unwrap_or_default();
    let mut url = issue.clone();
    url.set_query(None);
    let root = root.strip_suffix("/v3").unwrap_or(root);
    url.set_path(&format!("{root}/graphql"));
    let variables = json!({"owner": address.owner, "name": address.name, "number": address.number});
    let body = json!({"query": QUERY, "variables": variables}).to_string();
    let request = api
        .client
        .post(url)
        .header("Authorization", format!("Bearer {}", token.reveal()))
        .header("Content-Type", "application/json")
        .body(body)
        .send();
    let answer = request.await;
    let answer = answer.map_err(|e| api.failed(http_client::describe(&e)))?;
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let Ok(mut answer) = api.parse::<Value>(&api.body(answer).await?) else {
        return Ok(None);
    };
    // A server without this API answers differently, and then nothing is known.
    let issue = answer.pointer_mut("/data/repository/issue");
    Ok(issue.and_then(|issue| serde_json::from_value(issue.take()).ok()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn body(edits: Value) -> Option<(Option<String>, u64)> {
        let edits = serde_json::from_value(edits).unwrap();
        let answer = json!({"title": "t", "body": "today"});
        let answer: IssueAnswer = serde_json::from_value(answer).unwrap();
        body_at(&edits, &answer, "2024-03-10T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn body_is_from_last_edit_before_fix() {
        let edit = |day: u32, diff: Value| json!({"editedAt": format!("2024-03-{day:02}T00:00:00Z"), "diff": diff});
        assert_eq!(
            body(json!({"lastEditedAt": null})),
            Some((Some("today".to_owned()), 0))
        );
        let nodes = [
            edit(12, json!("later")),
            edit(9, json!("then")),
            edit(1, json!("first")),
        ];
        let issue_with_diff =
            json!({"lastEditedAt": "2024-03-12T00:00:00Z", "userContentEdits": {"nodes": nodes}});
        assert_eq!(body(issue_with_diff), Some((Some("then".to_owned()), 1)));
        let nodes = [edit(12, json!("later")), edit(9, Value::Null)];
        let issue_without_diff =
            json!({"lastEditedAt": "2024-03-12T00:00:00Z", "userContentEdits": {"nodes": nodes}});
        assert_eq!(body(issue_without_diff), None);
        let before = json!({"lastEditedAt": "2024-03-02T00:00:00Z"});
        assert_eq!(body(before), Some((Some("today".to_owned()), 0)));
    }
}
