//! Issues from the REST API of Gitea and Forgejo, e.g. of Codeberg. Its answers have the form of GitHub's.

use super::address::Address;
use super::github::{CommentAnswer, IssueAnswer};
use super::http::Api;
use super::{Issue, Options};
use testwright_config::error::Result;

pub(super) async fn load(address: &Address, options: &Options) -> Result<Issue> {
    let api = Api::new(address, options)?;
    let number = address.number.to_string();
    let path = ["repos", &address.owner, &address.name, "issues", &number];
    let (answer, url): (IssueAnswer, _) = api.fetch(address, &path).await?;
    if answer.pull_request.is_some() {
        return Err(api.is_pull_request());
    }
    let mut issue = Issue::new(address, &answer.title, answer.body, answer.created_at);
    if options.comments && answer.comments > 0 {
        issue.comments = api
            .comments(&url, "comments", &mut issue.notes, CommentAnswer::comment)
            .await?;
        issue.drop_late_comments(answer.closed_at, options);
    }
    Ok(issue)
}
