//! Issues from GitHub's REST API.

mod edits;

use jiff::Timestamp;
use reqwest::{StatusCode, Url};
use serde::Deserialize;

use super::address::Address;
use super::http::{Api, ApiResponse, page};
use super::{Comment, Issue, Options};
use testwright_config::error::{Error, Result};

pub use edits::TextBeforeFix;
pub(super) use edits::as_of;

#[derive(Deserialize)]
pub(super) struct IssueAnswer {
    pub(super) title: String,
    pub(super) body: Option<String>,
    #[serde(default)]
    html_url: String,
    pub(super) created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    pub(super) closed_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) comments: u64,
    pub(super) pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct CommentAnswer {
    body: Option<String>,
    created_at: Timestamp,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct EventAnswer {
    event: Option<String>,
    commit_id: Option<String>,
    created_at: Option<Timestamp>,
}

impl CommentAnswer {
    pub(super) fn comment(self) -> Option<Comment> {
        let author = self.user.map(|user| user.login);
        Some(Comment::new(author, self.created_at, self.body))
    }
}

pub(super) async fn load(address: &Address, options: &Options) -> Result<Issue> {
    let api = Api::new(address, options)?;
    let (answer, url, moved) = api.issue(address).await?;
    let mut issue = Issue::new(address, &answer.title, answer.body, answer.created_at);
    if moved {
        follow(&mut issue, address, &answer.html_url, options)?;
    }
    if options.comments && answer.comments > 0 {
        let fixed = api.fixed_at(&url, answer.closed_at, &mut issue.notes).await;
        issue.comments = api
            .comments(&url, "comments", &mut issue.notes, CommentAnswer::comment)
            .await?;
        issue.drop_late_comments(fixed, options);
    }
    Ok(issue)
}

/// Follows an issue to another repository, given by its own page. The server's answer is untrusted: it may
/// only name an issue on the server that the user named.
fn follow(issue: &mut Issue, address: &Address, page: &str, options: &Options) -> Result<()> {
    if page.is_empty() || page == issue.origin {
        return Ok(());
    }
    let Some(moved) = address.moved(page, options.base_url.as_ref()) else {
        let page: String = page.chars().take(200).collect();
        let web = &address.web;
        return Err(
            Error::infrastructure(format!("read the issue at {}", issue.origin))
                .cause(format!(
                    "it has moved to `{page}`, which is not an issue of {web}"
                ))
                .hint("use the issue's current address"),
        );
    };
    issue.origin = moved.page();
    let note = format!("the issue has moved to {}", issue.origin);
    issue.notes.push(note);
    issue.number = Some(moved.number);
    issue.repository = Some(moved.repository());
    Ok(())
}

impl Api {
    /// Returns the issue from the server that has it, and whether it has moved.
    async fn issue(&self, address: &Address) -> Result<(IssueAnswer, Url, bool)> {
        let number = address.number.to_string();
        let path = ["repos", &address.owner, &address.name, "issues", &number];
        let mut response = None;
        for base in &address.apis {
            let answer = self.get(self.url(base, &path)?).await?;
            let is_missing = match &answer {
                ApiResponse::Refused(status, _) => *status == StatusCode::NOT_FOUND,
                ApiResponse::Found { .. } => false,
            };
            response = Some(answer);
            if !is_missing {
                break;
            }
        }
        let response = response.ok_or_else(|| self.failed("no server to ask"))?;
        let moved = matches!(&response, ApiResponse::Found { moved: true, .. });
        let (answer, url, _): (IssueAnswer, _, _) = self.read(response)?;
        match answer.pull_request.is_some() {
            true => Err(self.is_pull_request()),
            false => Ok((answer, url, moved)),
        }
    }

    /// Returns when the fix was first seen: the first commit that names or closes the issue, or at the latest
    /// the closing.
    async fn fixed_at(
        &self,
        issue: &Url,
        closed: Option<Timestamp>,
        notes: &mut Vec<String>,
    ) -> Option<Timestamp> {
        let answer = self.get(page(issue, "events", 1)).await;
        let events = answer.and_then(|answer| self.read::<Vec<EventAnswer>>(answer));
        let events = events.map_or_else(
            |_| {
                let note = "the time of the fix is unknown, so comments up to the closing of the issue are included";
                notes.push(note.to_owned());
                Vec::new()
            },
            |(events, ..)| events,
        );
        let is_fix = |e: &&EventAnswer| {
            e.commit_id.is_some() && matches!(e.event.as_deref(), Some("closed" | "referenced"))
        };
        let fixes = events.iter().filter(is_fix);
        fixes.filter_map(|e| e.created_at).chain(closed).min()
    }
}
