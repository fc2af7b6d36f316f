//! Issues come in: from GitHub, from a file, from standard input.
//!
//! What a run sees is [`Issue::text`]. Nothing here reads the repository; where an issue tells which one it is
//! about, [`Issue::repository`] says so.

mod address;
mod before_fix;
mod fold;
mod github;
mod named_python;
mod text;
mod traceback;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::recipe::PreferredPython;

use testwright_config::error::Result;
use testwright_config::settings::{RedactedUrl, Secret, Settings};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    pub title: String,
    pub body: String,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// URL or path; `standard input`.
    pub origin: String,
    /// URL to clone, where the issue tells.
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// What the user should know, one line each.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    pub author: String,
    pub created_at: Timestamp,
    pub body: String,
}

impl Issue {
    /// Title, body and comments as one text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n{}", self.title, self.body.trim_end());
        for comment in &self.comments {
            let day = comment.created_at.strftime("%Y-%m-%d");
            let body = comment.body.trim_end();
            text.push_str(&format!(
                "\n\nComment by {} on {day}:\n\n{body}",
                comment.author
            ));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The text as it is sent to a model: what repeats is folded.
    pub fn folded_text(&self) -> String {
        let text = self.text();
        fold::folded(&text).unwrap_or(text)
    }

    /// The same without the calls in the middle of long tracebacks.
    pub fn brief_text(&self) -> String {
        traceback::without_middles(&self.folded_text())
    }

    /// The same for a model that has `open_file`.
    pub fn folded_text_with_hint(&self) -> String {
        let text = self.brief_text();
        let hint = fold::hint(&text);
        text + &hint
    }

    /// The Python that it says it happens on.
    pub fn named_python(&self) -> Option<PreferredPython> {
        named_python::named_python(&self.title, &self.body)
    }

    /// That the tests run on another Python than the issue names.
    pub fn note_on_python(&self, version: &str) -> Option<String> {
        let named = self.named_python()?.version;
        (named != version).then(|| {
            format!("the issue names Python {named}, and the tests run on Python {version}")
        })
    }

    /// Drops the comments that were written at this time or later, and notes it. `why` follows the time.
    pub fn drop_comments_from(&mut self, time: Timestamp, why: &str) {
        let all = self.comments.len();
        self.comments.retain(|c| c.created_at < time);
        let dropped = all - self.comments.len();
        if dropped > 0 {
            let time = time.strftime("%Y-%m-%d %H:%M UTC");
            self.notes.push(format!(
                "{dropped} of {all} comments are left out: written at {time} or later, {why}"
            ));
        }
    }

    /// Drops the comments that are newer than the old code: they may tell the fix. An issue that was filed later still
    /// (one about an old release, say) keeps them.
    pub fn drop_comments_newer_than_code(&mut self, commit: Timestamp) {
        if self.created_at.is_none_or(|created| created < commit) {
            self.drop_comments_from(commit, "when the old code was committed");
        }
    }
}

/// How issues are looked up.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Comments too, as far as they are older than the fix.
    pub comments: bool,
    /// Only comments older than this, e.g. than the golden code patch.
    pub before: Option<Timestamp>,
    /// A GitHub Enterprise server, or its API.
    pub base_url: Option<RedactedUrl>,
    /// Sent to that server (to GitHub where there is none), and nowhere else.
    pub token: Option<Secret>,
}

impl Options {
    pub fn from_settings(settings: &Settings, comments: bool) -> Self {
        Options {
            comments,
            before: None,
            base_url: settings.github.base_url.clone(),
            token: settings.github_token(),
        }
    }
}

pub use address::{api_of, server_of, web_of};
pub use before_fix::{IssueSource, TextBeforeFix};
pub use fold::WHOLE;

/// Reads an issue: the URL of a GitHub issue, a Markdown or text file, or `-`.
pub async fn load(named: &str, options: &Options) -> Result<Issue> {
    match address::parse(named, options.base_url.as_ref())? {
        Some(address) => github::load(&address, options).await,
        None => text::load(named).await,
    }
}

/// The URL of a GitHub issue, or the issue itself; never a file.
pub async fn of_url_or_text(given: &str, options: &Options) -> Result<Issue> {
    match url(given, options)? {
        Some(address) => github::load(&address, options).await,
        None => of_text(given, "request"),
    }
}

/// The repository of the issue at this URL; `None` for a text.
pub fn repository_of_url(given: &str, options: &Options) -> Result<Option<String>> {
    Ok(url(given, options)?.map(|address| address.repository()))
}

/// A text may hold addresses, and is none.
fn url(given: &str, options: &Options) -> Result<Option<address::Address>> {
    let given = given.trim();
    if given.contains(char::is_whitespace) || !given.contains("://") {
        return Ok(None);
    }
    address::parse(given, options.base_url.as_ref())
}

/// An issue whose text is at hand; `origin` names it.
pub fn of_text(text: &str, origin: &str) -> Result<Issue> {
    text::read(text.as_bytes(), origin)
}

/// What an issue of this text is called; its address, where the text is one.
pub fn title(text: &str) -> Option<String> {
    text::title(text)
}

/// Reads bytes as an issue, and a text as the address of one, for the fuzz targets.
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
            origin: String::new(),
            repository: None,
            number: None,
            created_at: Some(created.parse().unwrap()),
            notes: Vec::new(),
        }
    }

    #[test]
    fn comments_newer_than_the_old_code_are_dropped_unless_the_issue_is_newer_too() {
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
