//! GitHub integration. A label or a comment on an issue requests a test. The answer is a comment and, on request, a
//! draft pull request. The test of an issue also runs on later pull requests that mention it.
//!
//! The webhook only checks and stores deliveries; [`tasks`] processes them. Nothing is lost or done twice if a server
//! stops in between.

mod answer;
mod app_token;
mod client;
mod commands;
mod comment;
mod confirmation;
mod deliveries;
pub mod draft_pull_request;
pub mod expected_failure;
mod mentions;
mod posting;
mod pull_request;
mod settings;
mod signature;
mod task_details;
mod task_result;
pub(crate) mod tasks;
mod test_run;
mod webhook;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;

use super::authentication::GITHUB_WEBHOOK;
use super::state::ApiState;
use client::GitHubClient;
use settings::GitHubSettings;
use testwright_config::error::Result;
use testwright_config::settings::Settings;

/// State that webhooks and tasks share.
pub(crate) type GitHub = Arc<GitHubParts>;

pub(crate) struct GitHubParts {
    settings: GitHubSettings,
    client: GitHubClient,
    api: ApiState,
}

/// A checked configuration for GitHub, created before the server accepts requests.
pub(crate) struct GitHubSetup(GitHubSettings, GitHubClient);

impl GitHubSetup {
    /// Checks the configuration; `None` if no webhook secret is set.
    pub(crate) fn new(settings: &Settings) -> Result<Option<Self>> {
        let Some(github) = GitHubSettings::new(settings)? else {
            return Ok(None);
        };
        let client = GitHubClient::new(settings, &github.login)?;
        Ok(Some(GitHubSetup(github, client)))
    }

    pub(crate) fn serve(self, api: ApiState) -> GitHub {
        Arc::new(GitHubParts {
            settings: self.0,
            client: self.1,
            api,
        })
    }
}

/// Returns the route of the webhook; without a secret, its response explains the setup.
pub(crate) fn router(github: Option<GitHub>) -> Router<ApiState> {
    match github {
        Some(github) => {
            Router::new().route(GITHUB_WEBHOOK, post(webhook::receive).with_state(github))
        }
        None => Router::new().route(GITHUB_WEBHOOK, post(webhook::not_set_up)),
    }
}
