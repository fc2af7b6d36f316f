//! Issues from Bitbucket's REST API.

use jiff::Timestamp;
use reqwest::Url;
use serde::Deserialize;

use super::address::Address;
use super::http::{Api, below, incomplete_note};
use super::{Comment, Issue, Options};
use testwright_config::error::Result;

/// Maximum number of pages of comments.
const MAX_PAGES: usize = 20;

#[derive(Deserialize)]
struct IssueAnswer {
    title: String,
    content: Option<Content>,
    created_on: Option<Timestamp>,
    #[serde(default)]
    state: String,
}

#[derive(Deserialize)]
struct Content {
    raw: Option<String>,
}

#[derive(Deserialize)]
struct CommentAnswer {
    content: Option<Content>,
    created_on: Timestamp,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    display_name: String,
}

#[derive(Deserialize)]
struct CommentPage {
    values: Vec<CommentAnswer>,
    next: Option<String>,
}

pub(super) async fn load(address: &Address, options: &Options) -> Result<Issue> {
    let api = Api::new(address, options)?;
    let number = address.number.to_string();
    let (owner, name) = (&address.owner, &address.name);
    let path = ["repositories", owner, name, "issues", &number];
    let (answer, url): (IssueAnswer, _) = api.fetch(address, &path).await?;
    let text = |content: Option<Content>| content.and_then(|content| content.raw);
    let body = text(answer.content);
    let mut issue = Issue::new(address, &answer.title, body, answer.created_on);
    if options.comments {
        let answers = comments(&api, &url, &mut issue.notes).await?;
        issue.comments = answers
            .into_iter()
            .map(|answer| {
                let author = answer.user.map(|user| user.display_name);
                Comment::new(author, answer.created_on, text(answer.content))
            })
            // A change of the issue's state is a comment without text.
            .filter(|comment| !comment.body.trim().is_empty())
            .collect();
        if !matches!(answer.state.as_str(), "" | "new" | "open" | "on hold") {
            let note = "the time of the fix is unknown, so comments after it may be included";
            issue.notes.push(note.to_owned());
        }
        issue.drop_late_comments(None, options);
    }
    Ok(issue)
}

/// Returns all comments, oldest first. A note tells if some are missing.
async fn comments(api: &Api, issue: &Url, notes: &mut Vec<String>) -> Result<Vec<CommentAnswer>> {
    let mut url = below(issue, &["comments"]);
    url.query_pairs_mut()
        .append_pair("pagelen", "100")
        .append_pair("sort", "created_on");
    let mut all = Vec::new();
    for _ in 0..MAX_PAGES {
        let (page, _, _): (CommentPage, _, _) = api.read(api.get(url.clone()).await?)?;
        all.extend(page.values);
        // The server's answer is untrusted: the token must stay on this server.
        let next = page.next.and_then(|next| Url::parse(&next).ok());
        match next.filter(|next| next.origin() == issue.origin()) {
            Some(next) => url = next,
            None => return Ok(all),
        }
    }
    notes.push(incomplete_note(all.len()));
    Ok(all)
}
