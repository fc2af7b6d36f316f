//! `open_session` and `close_session`: the raw tools, for clients that write the test themselves.

use rmcp::model::{CallToolResult, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::visible;

use super::raw_tools::RawTools;
use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool, answer};
use crate::sandbox_place::SandboxPlace;

pub(super) struct OpenSession;
pub(super) struct CloseSession;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenArgs {
    /// Repository: a URL, or a folder on the server. Required unless the issue is a URL. The server must allow it.
    repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: HEAD.
    commit: Option<String>,
    /// Issue, which `submit` reads if a test uses a name that does not exist yet: URL of a GitHub issue, or a line with
    /// its title, then its text.
    issue: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Opened {
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
struct CloseArgs {}

#[derive(Debug, Serialize, JsonSchema)]
struct Closed {
    /// Id of the session that ended.
    session: String,
}

#[async_trait::async_trait]
impl ServiceTool for OpenSession {
    fn name(&self) -> &'static str {
        "open_session"
    }

    fn tool(&self) -> Tool {
        Tool::new(
            self.name(),
            "Starts a sandbox without network access, with the old code of a repository, and adds tools for reading it and for \
                        writing and running a test to the list of tools. `submit` checks whether the test reproduces the issue. Only one \
                        session can be open; it ends with `close_session`, with your connection, or when it is idle for too long.",
            serde_json::Map::new(),
        )
        .with_input_schema::<OpenArgs>()
        .with_output_schema::<Opened>()
        .with_title("Open a session")
        .with_annotations(Effects::CREATES.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let args: OpenArgs = call.arguments()?;
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
            // The notification fails only if the client has disconnected.
            let _ = peer.notify_tool_list_changed().await;
        });
        let earlier = call.session.replace(Some(session.clone()));
        if let Some(earlier) = earlier.filter(|earlier| !earlier.has_ended()) {
            // Two calls opened a session concurrently.
            parts.sessions.close(&earlier).await;
        }
        let _ = call.context.peer.notify_tool_list_changed().await;
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
        answer(&text, &opened)
    }
}

#[async_trait::async_trait]
impl ServiceTool for CloseSession {
    fn name(&self) -> &'static str {
        "close_session"
    }

    fn tool(&self) -> Tool {
        Tool::new(
            self.name(),
            "Ends the session that you opened, and its sandbox.",
            serde_json::Map::new(),
        )
        .with_input_schema::<CloseArgs>()
        .with_output_schema::<Closed>()
        .with_title("Close the session")
        .with_annotations(Effects::REMOVES.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let CloseArgs {} = call.arguments()?;
        let session = call.session.replace(None);
        let Some(session) = session.filter(|session| !session.has_ended()) else {
            return Err(CallError(
                "no session is open\nhint: open one with `open_session`".to_owned(),
            ));
        };
        call.parts.sessions.close(&session).await;
        let _ = call.context.peer.notify_tool_list_changed().await;
        let closed = Closed {
            session: session.id.clone(),
        };
        answer(&format!("Session {} has ended.", closed.session), &closed)
    }
}
