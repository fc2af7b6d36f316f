//! Issues from GitLab's REST API.

use jiff::Timestamp;
use serde::Deserialize;

use super::address::Address;
use super::http::Api;
use super::{Comment, Issue, Options};
use testwright_config::error::Result;

#[derive(Deserialize)]
struct IssueAnswer {
    title: String,
    description: Option<String>,
    created_at: Option<Timestamp>,
    closed_at: Option<Timestamp>,
    #[serde(default)]
    user_notes_count: u64,
}

/// A comment, or a message of the system, e.g. that a label was added.
#[derive(Deserialize)]
struct Note {
    body: Option<String>,
    created_at: Timestamp,
    author: Option<Author>,
    #[serde(default)]
    system: bool,
}

#[derive(Deserialize)]
struct Author {
    username: String,
}

pub(super) async fn load(address: &Address, options: &Options) -> Result<Issue> {
    let api = Api::new(address, options)?;
    let project = format!("{}/{}", address.owner, address.name);
    let number = address.number.to_string();
    let path = ["projects", &project, "issues", &number];
    let (answer, url): (IssueAnswer, _) = api.fetch(address, &path).await?;
    let mut issue = Issue::new(
        address,
        &answer.title,
        answer.description,
        answer.created_at,
    );
    if options.comments && answer.user_notes_count > 0 {
        issue.comments = api
            .comments(&url, "notes", &mut issue.notes, Note::comment)
            .await?;
        issue.drop_late_comments(answer.closed_at, options);
    }
    Ok(issue)
}

impl Note {
    fn comment(self) -> Option<Comment> {
        let author = self.author.map(|author| author.username);
        (!self.system).then(|| Comment::new(author, self.created_at, self.body))
    }
}
