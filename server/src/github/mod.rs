//! GitHub: a label or a comment on an issue asks for a test, the answer is a comment and, on request, a draft pull request;
//! the test of an issue runs on later pull requests that mention it.
//!
//! A webhook is checked and stored, and no more: [`tasks`] works on what was stored, so that nothing is lost or done twice
//! where a server ends in between.

mod answer;
mod app_token;
mod client;
mod commands;
mod comment;
mod confirmation;
mod deliveries;
mod expected_failure;
mod mentions;
mod posting;
mod pull_request;
mod settings;
mod signature;
mod task_details;
mod task_end;
pub mod tasks;
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

/// What webhooks and tasks work with.
#[derive(Clone)]
pub struct GitHub(Arc<GitHubParts>);

pub struct GitHubParts {
    settings: GitHubSettings,
    client: GitHubClient,
    api: ApiState,
}

impl std::ops::Deref for GitHub {
    type Target = GitHubParts;

    fn deref(&self) -> &GitHubParts {
        &self.0
    }
}

/// Whether webhooks can be taken, found out before anything is served.
pub struct Connection(GitHubSettings, GitHubClient);

impl Connection {
    /// `None` where no secret of a webhook is set.
    pub fn new(settings: &Settings) -> Result<Option<Self>> {
        let Some(github) = GitHubSettings::new(settings)? else {
            return Ok(None);
        };
        let client = GitHubClient::new(settings, &github)?;
        Ok(Some(Connection(github, client)))
    }

    pub fn serve(self, api: ApiState) -> GitHub {
        GitHub(Arc::new(GitHubParts {
            settings: self.0,
            client: self.1,
            api,
        }))
    }
}

/// The webhook's address; without a secret, it says what to do.
pub fn router(github: Option<GitHub>) -> Router<ApiState> {
    match github {
        Some(github) => {
            Router::new().route(GITHUB_WEBHOOK, post(webhook::receive).with_state(github))
        }
        None => Router::new().route(GITHUB_WEBHOOK, post(webhook::not_set_up)),
    }
}
