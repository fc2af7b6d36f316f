//! `open_session` and `close_session`: the raw tools, for a client that writes the test itself.

use rmcp::model::{CallToolResult, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::visible;

use super::place::SandboxPlace;
use super::raw_tools::RawTools;
use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool, answer};

pub struct OpenSession;
pub struct CloseSession;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenArgs {
    /// The repository: a URL, or a folder of the server; needed where the issue is no URL. The server's list says which are
    /// allowed.
    repository: Option<String>,
    /// The old code: a commit, tag or branch. Default: HEAD.
    commit: Option<String>,
    /// The issue, which `submit` reads when a test asks for a name that does not exist yet: the URL of a GitHub issue, or a line
    /// with its title, and its text.
    issue: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Opened {
    /// Of the session.
    session: String,
    repository: String,
    /// The full hash of the old code, where it has one.
    commit: Option<String>,
    /// The tools that can be called now.
    tools: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseArgs {}

#[derive(Debug, Serialize, JsonSchema)]
struct Closed {
    /// Of the session that ended.
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
            "Starts a sandbox with the old code of a repository, without network, and gives you tools to read it and to write \
             and run a test: the list of tools is longer from then on. `submit` says whether the test reproduces the issue. One \
             session at a time; it ends with `close_session`, with your connection, or when it is not used.",
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
                "session {} is open, and there is one at a time\nhint: close it with `close_session`",
                open.id
            )));
        }
        let parts = call.parts;
        let place = SandboxPlace::of(
            &parts.api,
            args.repository.as_deref(),
            args.commit.as_deref(),
            args.issue.as_deref(),
        )
        .await?;
        let room = parts.sessions.room_now(&call.caller().owner)?;
        let (source, session) = tokio::select! {
            started = place.start(&parts.api, &call.progress) => started?,
            () = call.cancelled() => return Err(CallError::cancelled()),
        };
        let opened = (source.name.clone(), source.commit.clone());
        let tools = RawTools::new(session.into(), source, place.issue_text());
        let peer = call.context.peer.clone();
        let session = parts.sessions.add(tools, room, async move {
            // Nobody may be listening.
            let _ = peer.notify_tool_list_changed().await;
        });
        let earlier = call.session.replace(Some(session.clone()));
        if let Some(earlier) = earlier.filter(|earlier| !earlier.has_ended()) {
            // Two were opened at once.
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
            "Session {} is open on {} at {}. Its tools: {}",
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
                "there is no open session\nhint: `open_session` opens one".to_owned(),
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
