//! Draft pull requests, as the webhook and `testwright pr` open them.

use secrecy::SecretString;
use serde_json::{Value, json};

use super::client::{ApiRequest, GitHubClient, RequestError};
use super::settings::Login;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Prefix of testwright's own branches.
pub const BRANCH_PREFIX: &str = "testwright/";

const OPEN: &str = "open the pull request";

/// A draft pull request to open.
#[derive(Debug, Clone, Copy)]
pub struct DraftPullRequest<'a> {
    /// Title, as plain text.
    pub title: &'a str,
    /// Branch with the changes.
    pub head: &'a str,
    /// Branch to merge into.
    pub base: &'a str,
    /// Description in Markdown.
    pub body: &'a str,
}

impl DraftPullRequest<'_> {
    /// Returns the body of the request that opens it.
    pub(super) fn to_json(self) -> Value {
        json!({
            "title": self.title,
            "head": self.head,
            "base": self.base,
            "body": self.body,
            "draft": true,
        })
    }
}

/// A repository on GitHub, with the login of a user.
pub struct GitHubRepository {
    client: GitHubClient,
    login: Login,
    owner: String,
    name: String,
}

impl GitHubRepository {
    /// Creates a client for the repository `OWNER/NAME`, with the token in the settings.
    ///
    /// # Errors
    ///
    /// Fails if there is no token, or the address of the server is not HTTPS.
    pub fn new(settings: &Settings, repository: &str) -> Result<Self> {
        let github = &settings.github;
        let token = settings.github_token().ok_or_else(|| {
            let variable = &github.token_env;
            let hint = match github.base_url {
                Some(_) => format!("set {variable}"),
                None => format!("set {variable}, or log in with `gh auth login`"),
            };
            let error = Error::usage(OPEN).cause("no token for GitHub is set");
            error.hint(hint)
        })?;
        let login = Login::Token(SecretString::from(token.reveal()));
        let (owner, name) = repository.split_once('/').unwrap_or((repository, ""));
        Ok(GitHubRepository {
            client: GitHubClient::new(settings, &login)?,
            login,
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the name of the default branch.
    ///
    /// # Errors
    ///
    /// Fails if GitHub cannot be reached, or the token has no access to the repository.
    pub async fn default_branch(&self) -> Result<String> {
        let path = ["repos", &self.owner, &self.name];
        let response = self.send(ApiRequest::get(&path, &[])).await?;
        let branch = response["default_branch"].as_str().map(str::to_owned);
        branch.ok_or_else(|| Error::infrastructure(OPEN).cause("GitHub named no default branch"))
    }

    /// Opens a draft pull request. Returns its address.
    ///
    /// # Errors
    ///
    /// Fails if GitHub cannot be reached, or refuses the pull request, for example because there already is one.
    pub async fn open(&self, draft: DraftPullRequest<'_>) -> Result<String> {
        let path = ["repos", &self.owner, &self.name, "pulls"];
        let response = self.send(ApiRequest::post(&path, draft.to_json())).await?;
        let address = response["html_url"].as_str().map(str::to_owned);
        Ok(address.unwrap_or_else(|| format!("#{}", response["number"])))
    }

    async fn send(&self, request: ApiRequest<'_>) -> Result<Value> {
        let response = self.client.send(&self.login, None, request).await;
        response.map_err(|error| self.to_error(&error))
    }

    fn to_error(&self, error: &RequestError) -> Error {
        let repository = format!("{}/{}", self.owner, self.name);
        let hint = match error {
            RequestError::Later(_) | RequestError::Failed(_) => {
                let error = Error::unavailable(OPEN).cause(error);
                return error.hint("run the same command again later");
            }
            RequestError::Refused { status: 401, .. } => "renew the token".to_owned(),
            RequestError::Refused {
                status: 301 | 307 | 308,
                ..
            } => format!("set the remote to the new address of {repository}"),
            RequestError::Refused {
                status: 422,
                message,
            } if message.contains("already exists") => {
                "use that pull request, or choose another branch with --branch".to_owned()
            }
            RequestError::Refused { status: 422, .. } => {
                "check the branches, or choose another one with --base".to_owned()
            }
            RequestError::Refused { .. } => {
                format!("use a token that can write pull requests of {repository}")
            }
        };
        Error::usage(OPEN).cause(error).hint(hint)
    }
}
