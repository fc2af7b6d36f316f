//! `open_session` and `close_session`: the raw tools, for clients that write the test themselves.

use rmcp::{Peer, RoleServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::visible;

use super::raw_tools::RawTools;
use super::service_tool::{CallError, Effects, Service, ServiceCall};
use crate::sandbox_place::SandboxPlace;

pub(super) struct OpenSession;
pub(super) struct CloseSession;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenArgs {
    /// Repository: a URL, or a folder on the server. Required unless the issue is a URL. The server must allow it.
    repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: HEAD.
    commit: Option<String>,
    /// Issue, which `submit` reads if a test uses a name that does not exist yet: URL of a GitHub issue, or a line with
    /// its title, then its text.
    issue: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Opened {
    /// Id of the session.
    session: String,
    repository: String,
    /// Full hash of the old code's commit, if there is one.
    commit: Option<String>,
    /// Tools that can be called now.
    tools: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CloseArgs {}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Closed {
    /// Id of the session that ended.
    session: String,
}

/// Tells the client that its list of tools has changed.
async fn announce_tools(peer: &Peer<RoleServer>) {
    if let Err(error) = peer.notify_tool_list_changed().await {
        tracing::debug!(%error, "could not announce the tools of a session");
    }
}

#[async_trait::async_trait]
impl Service for OpenSession {
    type Args = OpenArgs;
    type Output = Opened;

    const NAME: &'static str = "open_session";
    const TITLE: &'static str = "Open a session";
    const DESCRIPTION: &'static str = "Starts a sandbox without network access, with the old code of a repository, and adds tools for reading it and for \
                               writing and running a test to the list of tools. `submit` checks whether the test reproduces the issue. Only one \
                               session can be open; it ends with `close_session`, with your connection, or when it is idle for too long.";
    const EFFECTS: Effects = Effects::Creates;

    async fn run(call: &ServiceCall<'_>, args: OpenArgs) -> Result<(String, Opened), CallError> {
        if let Some(open) = call.session.current() {
            return Err(CallError(format!(
                "session {} is already open, and only one is allowed\nhint: close it with `close_session`",
                open.id
            )));
        }
        let parts = call.parts;
        let place = SandboxPlace::resolve(
            &parts.api,
            args.repository.as_deref(),
            args.commit.as_deref(),
            args.issue.as_deref(),
        )
        .await?;
        let room = parts.sessions.try_acquire_sandbox(&call.caller().owner)?;
        let (source, session) = tokio::select! {
            started = place.start(&parts.api, call.sandbox_progress()) => started?,
            () = call.cancelled() => return Err(CallError::cancelled()),
        };
        let opened = (source.name.clone(), source.commit.clone());
        let tools = RawTools::new(session.into(), source, place.issue_text());
        let peer = call.context.peer.clone();
        let session = parts.sessions.add(tools, room, async move {
            announce_tools(&peer).await;
        });
        let earlier = call.session.replace(Some(session.clone()));
        if let Some(earlier) = earlier.filter(|earlier| !earlier.has_ended()) {
            // Two calls opened a session concurrently.
            parts.sessions.close(&earlier).await;
        }
        announce_tools(&call.context.peer).await;
        let names = session.tools.list().into_iter();
        let (repository, commit) = opened;
        let opened = Opened {
            session: session.id.clone(),
            repository,
            commit,
            tools: names.map(|tool| tool.name.into_owned()).collect(),
        };
        let text = format!(
            "Session {} is open for {} at {}. Its tools: {}",
            opened.session,
            visible(&opened.repository),
            opened.commit.as_deref().unwrap_or("no commit"),
            opened.tools.join(", ")
        );
        Ok((text, opened))
    }
}

#[async_trait::async_trait]
impl Service for CloseSession {
    type Args = CloseArgs;
    type Output = Closed;

    const NAME: &'static str = "close_session";
    const TITLE: &'static str = "Close the session";
    const DESCRIPTION: &'static str = "Ends the session that you opened, and its sandbox.";
    const EFFECTS: Effects = Effects::Removes;

    async fn run(call: &ServiceCall<'_>, _: CloseArgs) -> Result<(String, Closed), CallError> {
        let session = call.session.replace(None);
        let Some(session) = session.filter(|session| !session.has_ended()) else {
            return Err(CallError(
                "no session is open\nhint: open one with `open_session`".to_owned(),
            ));
        };
        call.parts.sessions.close(&session).await;
        announce_tools(&call.context.peer).await;
        let session = session.id.clone();
        let text = format!("Session {session} has ended.");
        Ok((text, Closed { session }))
    }
}
