//! Issues from GitHub and other forges, from a file, or from standard input.
//!
//! A run sees [`Issue::text`]. Nothing here reads the repository; if an issue says which one it is about,
//! that is in [`Issue::repository`].

mod address;
mod bitbucket;
mod fold;
mod gitea;
mod github;
mod gitlab;
mod historical_text;
mod http;
mod named_packages;
mod named_python;
mod reference;
mod text;
mod traceback;
mod wish;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::environment::NamedPackages;
use testwright_sandboxes::recipe::PreferredPython;

use testwright_config::error::Result;
use testwright_config::settings::{RedactedUrl, Secret, Settings};

use address::{Address, Forge};

/// An issue of a repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    /// Title; empty if the issue has none.
    pub title: String,
    /// Text in Markdown, without the title.
    pub body: String,
    /// Comments, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// URL, path, or `standard input`.
    pub origin: String,
    /// URL to clone, if the issue gives one.
    pub repository: Option<String>,
    /// Number in its repository, for an issue from a forge such as GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Creation time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Notes for the user, one line each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Wish of the user beyond the issue. It is recorded with the extra inputs of a run.
    #[serde(skip)]
    pub wish: Wish,
}

/// A comment on an issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    /// Name of the author on the forge.
    pub author: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Text in Markdown.
    pub body: String,
}

impl Comment {
    /// Creates a comment from a forge's answer. The forge names no author if the account was deleted.
    fn new(author: Option<String>, created_at: Timestamp, body: Option<String>) -> Self {
        Comment {
            author: author.unwrap_or_else(|| "ghost".to_owned()),
            created_at,
            body: body.unwrap_or_default().replace("\r\n", "\n"),
        }
    }
}

impl Issue {
    /// Returns title, body and comments as one text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n{}", self.title, self.body.trim_end());
        for comment in &self.comments {
            let day = comment.created_at.strftime("%Y-%m-%d");
            let (author, body) = (&comment.author, comment.body.trim_end());
            text.push_str(&format!("\n\nComment by {author} on {day}:\n\n{body}"));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Returns the text as sent to a model, with repeated parts folded, followed by the user's wish.
    pub fn folded_text(&self) -> String {
        let text = self.text();
        self.wish.append_to(fold::folded(&text).unwrap_or(text))
    }

    /// Returns the folded text without the middle calls of long tracebacks.
    pub fn brief_text(&self) -> String {
        traceback::without_middles(&self.folded_text())
    }

    /// Returns the brief text with a hint, for a model that has `open_file`.
    pub fn folded_text_with_hint(&self) -> String {
        let text = self.brief_text();
        let hint = fold::hint(&text);
        text + &hint
    }

    /// Returns the Python version on which the issue says it happens.
    pub fn named_python(&self) -> Option<PreferredPython> {
        named_python::named_python(&self.title, &self.body)
    }

    /// Returns the modules and packages that the issue names in code and in lists of versions.
    pub fn named_packages(&self) -> NamedPackages {
        named_packages::named_packages(&self.body)
    }

    /// Returns a note if the tests run on another Python version than the issue names.
    pub fn note_on_python(&self, version: &str) -> Option<String> {
        let issue_version = self.named_python()?.version;
        (issue_version != version).then(|| {
            format!("the issue names Python {issue_version}, and the tests run on Python {version}")
        })
    }

    /// Creates an issue from a forge's answer, without comments.
    fn new(
        address: &Address,
        title: &str,
        body: Option<String>,
        created_at: Option<Timestamp>,
    ) -> Self {
        Issue {
            title: title.trim().to_owned(),
            body: body.unwrap_or_default().replace("\r\n", "\n"),
            origin: address.page(),
            repository: Some(address.repository()),
            number: Some(address.number),
            created_at,
            notes: address.notes.clone(),
            ..Issue::default()
        }
    }

    /// Drops the comments that the options exclude, and those written after the fix was known.
    fn drop_late_comments(&mut self, fixed: Option<Timestamp>, options: &Options) {
        if let Some(before) = options.before {
            self.drop_comments_from(before, "as requested");
        }
        if let Some(fixed) = fixed {
            self.drop_comments_from(fixed, "when the fix was known");
        }
    }

    /// Drops the comments written at this time or later, with a note. `why` is the text after the time.
    pub fn drop_comments_from(&mut self, time: Timestamp, why: &str) {
        let all = self.comments.len();
        self.comments.retain(|c| c.created_at < time);
        let dropped = all - self.comments.len();
        if dropped > 0 {
            let time = time.strftime("%Y-%m-%d %H:%M UTC");
            self.notes.push(format!(
                "{dropped} of {all} comments are ignored: written at {time} or later, {why}"
            ));
        }
    }

    /// Drops comments newer than the old code, because they may reveal the fix. An issue that was filed after
    /// that (e.g. about an old release) keeps its comments.
    pub fn drop_comments_newer_than_code(&mut self, commit: Timestamp) {
        if self.created_at.is_none_or(|created| created < commit) {
            self.drop_comments_from(commit, "when the old code was committed");
        }
    }
}

/// Options for reading issues.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether to include comments that are older than the fix.
    pub comments: bool,
    /// Include only comments older than this, e.g. older than the golden code patch.
    pub before: Option<Timestamp>,
    /// GitHub Enterprise server, or its API.
    pub base_url: Option<RedactedUrl>,
    /// Token, sent only to that server (by default GitHub).
    pub token: Option<Secret>,
    /// Tokens of other forges, each with the host that it is sent to.
    pub forge_tokens: Vec<(String, Secret)>,
}

impl Options {
    /// Takes the server and the token from the settings; `comments` tells whether to include comments.
    pub fn from_settings(settings: &Settings, comments: bool) -> Self {
        Options {
            comments,
            before: None,
            base_url: settings.github.base_url.clone(),
            token: settings.github_token(),
            forge_tokens: settings.forge_tokens(),
        }
    }

    /// Returns the token of the server that has the issue.
    fn token_for(&self, address: &Address) -> Option<Secret> {
        if address.forge == Forge::GitHub {
            return self.token.clone();
        }
        let server = server_of(&address.web);
        let token = self.forge_tokens.iter().find(|(host, _)| *host == server);
        token.map(|(_, token)| token.clone())
    }
}

pub use address::{api_base_url, server_of, web_base_url};
pub use fold::FULL_ISSUE_PATH;
pub use github::TextBeforeFix;
pub use historical_text::IssueSource;
pub use reference::{github_repository, is_reference, page_of};
pub use text::title;
pub use wish::Wish;

/// Reads an issue from the URL of an issue on a forge, a Markdown or text file, or `-` for standard input.
///
/// # Errors
///
/// Fails if the address is not that of an issue, or if the server or the file cannot be read.
pub async fn load(location: &str, options: &Options) -> Result<Issue> {
    match address::parse(location, options.base_url.as_ref())? {
        Some(address) => match address.forge {
            Forge::GitHub => github::load(&address, options).await,
            Forge::GitLab => gitlab::load(&address, options).await,
            Forge::Gitea => gitea::load(&address, options).await,
            Forge::Bitbucket => bitbucket::load(&address, options).await,
        },
        None => text::load(location).await,
    }
}

/// Reads an issue from the URL of a GitHub issue, or from its text; never from a file, nor from another server.
///
/// # Errors
///
/// Fails if the URL is not that of an issue, the server cannot be read, or the text is not usable.
pub async fn of_url_or_text(input: &str, options: &Options) -> Result<Issue> {
    match url(input, options)? {
        Some(address) => github::load(&address, options).await,
        None => of_text(input, "request"),
    }
}

/// Returns the repository of the issue at this URL; `None` for a text.
///
/// # Errors
///
/// Fails if the URL is not the address of an issue.
pub fn repository_of_url(input: &str, options: &Options) -> Result<Option<String>> {
    Ok(url(input, options)?.map(|address| address.repository()))
}

/// Parses the URL of a GitHub issue. A text that contains URLs is not one.
fn url(input: &str, options: &Options) -> Result<Option<Address>> {
    let input = input.trim();
    if input.contains(char::is_whitespace) || !input.contains("://") {
        return Ok(None);
    }
    address::parse_github(input, options.base_url.as_ref())
}

/// Creates an issue from a text; `origin` names its source.
///
/// # Errors
///
/// Fails if the text is empty, too long, or binary.
pub fn of_text(text: &str, origin: &str) -> Result<Issue> {
    text::read(text.as_bytes(), origin)
}

/// Reads bytes as an issue, and as the address of one, for the fuzz targets.
///
/// # Errors
///
/// The results are errors if the bytes are not an issue, or the text is a wrong address.
#[cfg(fuzzing)]
pub fn read_bytes(bytes: &[u8]) -> (Result<Issue>, Result<bool>) {
    let address = address::parse(&String::from_utf8_lossy(bytes), None);
    (text::read(bytes, "fuzzed"), address.map(|a| a.is_some()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn issue(created: &str) -> Issue {
        let comment = |time: &str| Comment {
            author: "a".to_owned(),
            created_at: time.parse().unwrap(),
            body: time.to_owned(),
        };
        Issue {
            title: "t".to_owned(),
            body: String::new(),
            comments: vec![
                comment("2020-01-02T00:00:00Z"),
                comment("2020-01-04T00:00:00Z"),
            ],
            created_at: Some(created.parse().unwrap()),
            ..Issue::default()
        }
    }

    #[test]
    fn comments_newer_than_code_are_dropped() {
        let commit: Timestamp = "2020-01-03T00:00:00Z".parse().unwrap();
        let mut older = issue("2020-01-01T00:00:00Z");
        older.drop_comments_newer_than_code(commit);
        assert_eq!(older.comments.len(), 1);
        assert_eq!(older.comments[0].body, "2020-01-02T00:00:00Z");
        assert_eq!(older.notes.len(), 1);
        let mut newer = issue("2020-01-03T12:00:00Z");
        newer.drop_comments_newer_than_code(commit);
        assert_eq!(newer.comments.len(), 2);
        assert!(newer.notes.is_empty());
    }
}
