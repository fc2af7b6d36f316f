//! Settings for GitHub, with their secrets.

use std::path::Path;

use secrecy::SecretString;
use testwright_sandboxes::plain_file::{self, Links};

use super::app_token::AppKey;
use testwright_agent::issues;
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Secret, Settings};

const READ_SETTINGS: &str = "read the settings for GitHub";
/// Minimum length of a secret, because shorter ones can be guessed.
const MIN_SECRET_LEN: usize = 16;

pub(super) struct GitHubSettings {
    /// Secrets of the webhook, each of which may sign deliveries.
    pub secrets: Vec<SecretString>,
    pub login: Login,
    pub label: String,
    pub command: String,
    pub command_associations: Vec<String>,
    pub confirm_associations: Vec<String>,
    pub dry_run: bool,
    /// Address for cloning, with `{owner}` and `{name}`.
    clone_url: String,
}

/// The identity that the server uses on GitHub.
pub(super) enum Login {
    Token(SecretString),
    App(Box<AppKey>),
    /// Missing credentials: nothing is posted.
    None,
}

impl GitHubSettings {
    /// Reads the settings; `None` if no webhook secret is set.
    pub(super) fn new(settings: &Settings) -> Result<Option<Self>> {
        let github = &settings.github;
        let secret = settings.github_webhook_secret();
        let Some(text) = secret_text(secret, github.webhook_secret_file.as_deref())? else {
            return Ok(None);
        };
        let secrets: Vec<&str> = text.split_whitespace().collect();
        if secrets.is_empty() || secrets.iter().any(|s| s.len() < MIN_SECRET_LEN) {
            return Err(Error::usage(READ_SETTINGS)
                .cause(format!(
                    "a webhook secret has fewer than {MIN_SECRET_LEN} characters"
                ))
                .hint("create one with `openssl rand -hex 32`"));
        }
        if github.label.trim().is_empty() || github.command.split_whitespace().count() != 1 {
            return Err(Error::usage(READ_SETTINGS)
                .cause("`github.label` is empty, or `github.command` is not a single word"));
        }
        let web = issues::web_base_url(github.base_url.as_ref());
        let clone_url = github.clone_url.clone();
        Ok(Some(GitHubSettings {
            secrets: secrets.into_iter().map(SecretString::from).collect(),
            login: login(settings)?,
            label: github.label.clone(),
            command: github.command.trim().to_owned(),
            command_associations: github.command_associations.clone(),
            confirm_associations: github.confirm_associations.clone(),
            dry_run: github.dry_run,
            clone_url: clone_url.unwrap_or_else(|| format!("{web}/{{owner}}/{{name}}")),
        }))
    }

    /// Returns the address for cloning `OWNER/NAME`.
    pub(super) fn clone_url(&self, repository: &str) -> String {
        let (owner, name) = repository.split_once('/').unwrap_or((repository, ""));
        self.clone_url
            .replace("{owner}", owner)
            .replace("{name}", name)
    }
}

fn login(settings: &Settings) -> Result<Login> {
    let github = &settings.github;
    if let Some(id) = github.app_id {
        let key = secret_text(settings.github_app_key(), github.app_key_file.as_deref())?;
        let key = key.ok_or_else(|| {
            Error::usage(READ_SETTINGS)
                .cause("`github.app-id` is set, but the App's private key is missing")
                .hint("set github.app-key-file to the file with the key")
        })?;
        return Ok(Login::App(Box::new(AppKey::new(id, &key)?)));
    }
    match settings.github_token() {
        Some(token) => Ok(Login::Token(SecretString::from(token.reveal()))),
        None if github.dry_run => Ok(Login::None),
        None => Err(Error::usage(READ_SETTINGS)
            .cause("a webhook secret is set, but no credentials for posting answers")
            .hint(format!(
                "set {}, or github.app-id and github.app-key-file, or github.dry-run",
                github.token_env
            ))),
    }
}

/// Maximum bytes of a file with a secret.
const MAX_SECRET: u64 = 1 << 20;

/// Reads a secret from the file, if one is configured, otherwise from the variable.
fn secret_text(variable: Option<Secret>, file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else {
        return Ok(variable.map(|secret| secret.reveal().to_owned()));
    };
    let text = plain_file::read_text(path, Links::Follow, MAX_SECRET);
    text.map(Some)
        .map_err(|error| Error::usage(READ_SETTINGS).cause(format!("{}: {error}", path.display())))
}
