//! Issues by number, with their text before the fix: from GitHub's API, or from a folder of files.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::address::{self, Address};
use super::github::TextBeforeFix;
use super::{Options, github, text};
use testwright_config::error::{Error, Kind, Result};

/// The source of a repository's issues.
pub enum IssueSource {
    /// Repository `owner/name`, on GitHub or on the server in the settings.
    GitHub {
        /// Name, as `owner/name`.
        repo: String,
        /// Server and token.
        options: Options,
    },
    /// Folder with `N.md` or `N.json` for issue N; the JSON has the format of GitHub's API.
    Folder(PathBuf),
}

/// The fields read from a file in the format of GitHub's API. `origin` may give the source of a text that is
/// not an issue.
#[derive(Deserialize)]
struct StoredIssue {
    title: String,
    body: Option<String>,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    pull_request: Option<serde::de::IgnoredAny>,
    origin: Option<String>,
}

impl IssueSource {
    /// Returns the text of an issue at the time of its fix, or the reason why it is missing. The outer error is about
    /// the machine or the token, so a retry may succeed.
    ///
    /// # Errors
    ///
    /// Fails if the server or the folder cannot be read, or the token is not accepted.
    pub async fn read(
        &self,
        number: u64,
        fixed_at: Timestamp,
    ) -> Result<std::result::Result<TextBeforeFix, String>> {
        let read = match self {
            IssueSource::GitHub { repo, options } => {
                let address = address_of(repo, number, options)?;
                github::as_of(&address, fixed_at, options).await
            }
            IssueSource::Folder(folder) => stored(folder, number, fixed_at).await,
        };
        match read {
            Ok(text) if text.title.is_empty() && text.body.trim().is_empty() => {
                Ok(Err("it is empty".to_owned()))
            }
            Ok(text) => Ok(Ok(text)),
            // Other issues may still be readable.
            Err(error) if error.kind == Kind::Usage => {
                Ok(Err(error.cause.unwrap_or(error.message)))
            }
            Err(error) => Err(error),
        }
    }
}

fn address_of(repo: &str, number: u64, options: &Options) -> Result<Address> {
    let page = format!("https://github.com/{repo}/issues/{number}");
    let parsed = address::parse(&page, options.base_url.as_ref())?;
    parsed.ok_or_else(|| {
        Error::usage(format!("read the issue at {page}")).cause("it is not an address")
    })
}

async fn stored(folder: &Path, number: u64, fixed_at: Timestamp) -> Result<TextBeforeFix> {
    let name = format!("{number}.json");
    let path = folder.join(&name);
    if !path.is_file() {
        let name = format!("{number}.md");
        let path = folder.join(&name);
        if !path.is_file() {
            return Err(Error::usage("read the issue").cause("the folder has no file for it"));
        }
        let issue = text::load(&path.to_string_lossy()).await?;
        return Ok(TextBeforeFix {
            title: issue.title,
            body: issue.body,
            origin: name,
            created_at: None,
            later_edits: "not known".to_owned(),
        });
    }
    let refused = |cause: &str| Error::usage(format!("read {name}")).cause(cause);
    let bytes = plain_file::read(&path, Links::Follow, MAX_DOCUMENT)
        .map_err(|error| Error::io(format!("read {}", path.display()), &error))?;
    let issue: StoredIssue = serde_json::from_slice(&bytes)
        .map_err(|error| refused(&format!("{name} is not an issue: {error}")))?;
    if issue.pull_request.is_some() {
        return Err(refused("it is a pull request, not an issue"));
    }
    if issue.created_at.is_some_and(|created| created >= fixed_at) {
        return Err(refused("it was filed after the fix"));
    }
    let untouched = issue.updated_at.is_some_and(|updated| updated < fixed_at);
    Ok(TextBeforeFix {
        title: issue.title.trim().to_owned(),
        body: issue.body.unwrap_or_default().replace("\r\n", "\n"),
        origin: issue.origin.unwrap_or_else(|| name.clone()),
        created_at: issue.created_at,
        later_edits: if untouched { "none" } else { "not known" }.to_owned(),
    })
}

#[cfg(test)]
mod tests;
