//! An MCP client, over HTTP and stdio, based on rmcp.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest,
    ProgressNotificationParam, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;
use tokio::sync::mpsc;

use super::ServerProcess;
use crate::support::program::{TestDir, example};

/// Notifications from a server.
struct Listener {
    progress: mpsc::UnboundedSender<(f64, String)>,
    changes: Arc<AtomicUsize>,
}

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let message = notification.message.unwrap_or_default();
        let _ = self.progress.send((notification.progress, message));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) struct McpClient {
    running: RunningService<RoleClient, Listener>,
    progress: mpsc::UnboundedReceiver<(f64, String)>,
    changes: Arc<AtomicUsize>,
    /// Server process on stdio, which ends with the client.
    pub server: Option<tokio::process::Child>,
}

fn listener() -> (
    Listener,
    mpsc::UnboundedReceiver<(f64, String)>,
    Arc<AtomicUsize>,
) {
    let (progress, notifications) = mpsc::unbounded_channel();
    let changes = Arc::new(AtomicUsize::new(0));
    let listener = Listener {
        progress,
        changes: changes.clone(),
    };
    (listener, notifications, changes)
}

impl McpClient {
    pub(super) async fn over_http(daemon: &ServerProcess) -> McpClient {
        let (listener, progress, changes) = listener();
        let client = testwright_sandboxes::http_client::builder()
            .no_proxy()
            .build()
            .unwrap();
        let address = format!("http://{}/mcp", daemon.client.address);
        let config = StreamableHttpClientTransportConfig::with_uri(address);
        let transport = StreamableHttpClientTransport::with_client(client, config);
        McpClient {
            running: listener.serve(transport).await.unwrap(),
            progress,
            changes,
            server: None,
        }
    }

    /// Starts `testwright mcp` with these arguments.
    pub(super) async fn on_stdio(place: &TestDir, words: &[&str]) -> McpClient {
        let mut command = place.testwright();
        command
            .args(["mcp", "--allow-repository", &example("*")])
            .args(words);
        Self::of_command(command).await
    }

    /// Starts this command, which serves MCP on stdio.
    pub(super) async fn of_command(command: std::process::Command) -> McpClient {
        let mut server = tokio::process::Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let (listener, progress, changes) = listener();
        McpClient {
            running: listener.serve(pipes).await.unwrap(),
            progress,
            changes,
            server: Some(server),
        }
    }

    pub(super) fn instructions(&self) -> String {
        let info = self.running.peer_info().unwrap();
        info.instructions.clone().unwrap()
    }

    pub(super) async fn tools(&self) -> Vec<String> {
        let tools = self.running.list_all_tools().await.unwrap();
        tools
            .into_iter()
            .map(|tool| tool.name.into_owned())
            .collect()
    }

    /// Returns the schema of a tool's result.
    pub(super) async fn output_schema(&self, name: &str) -> Value {
        let tools = self.running.list_all_tools().await.unwrap();
        let tool = tools.into_iter().find(|tool| tool.name == name).unwrap();
        Value::Object(tool.output_schema.unwrap().as_ref().clone())
    }

    /// Waits for a number of notifications that the tools have changed.
    ///
    /// Notifications have a separate stream, so they may arrive before or after the result of a call.
    pub(super) async fn wait_for_tool_changes(&self, expected_count: usize) {
        let begun = Instant::now();
        let change_count = || self.changes.load(Ordering::Relaxed);
        while change_count() < expected_count && begun.elapsed() < Duration::from_secs(60) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(change_count(), expected_count);
    }

    pub(super) async fn start(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let params = CallToolRequestParams::new(tool.to_owned())
            .with_arguments(arguments.as_object().unwrap().clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.running
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .unwrap()
    }

    /// Calls a tool. Returns a protocol error as text.
    pub(super) async fn try_call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<CallToolResult, String> {
        let call = self.start(tool, arguments).await;
        match call.await_response().await {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Calls a tool and returns its structured result.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments).await.unwrap();
        assert_ne!(result.is_error, Some(true), "{result:?}");
        result.structured_content.unwrap_or_default()
    }

    /// Calls a tool and returns the reason for its refusal.
    pub(super) async fn refusal(&self, tool: &str, arguments: Value) -> String {
        let result = self.try_call(tool, arguments).await.unwrap();
        assert_eq!(result.is_error, Some(true), "{result:?}");
        text(&result)
    }

    /// Waits for a progress message that contains this text.
    pub(super) async fn wait_for_progress(&mut self, part: &str) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let waited = tokio::time::timeout(Duration::from_secs(180), self.progress.recv());
            let notification = waited.await.unwrap_or_else(|_| panic!("{part}: {all:?}"));
            all.push(notification.unwrap().1);
            if all.last().unwrap().contains(part) {
                return all;
            }
        }
    }

    /// Returns all progress messages of a call, and checks that the progress increases.
    ///
    /// rmcp delivers each message in its own task, so messages may arrive late or out of order. This function waits for
    /// the messages that contain these texts.
    pub(super) async fn all_progress(&mut self, parts: &[&str]) -> Vec<String> {
        let mut notifications: Vec<(f64, String)> = Vec::new();
        let is_reported =
            |received: &[(f64, String)], part: &&str| received.iter().any(|t| t.1.contains(part));
        while !parts.iter().all(|part| is_reported(&notifications, part)) {
            let waited = tokio::time::timeout(Duration::from_secs(60), self.progress.recv());
            let next = waited
                .await
                .unwrap_or_else(|_| panic!("{parts:?}: {notifications:?}"));
            notifications.push(next.unwrap());
        }
        notifications.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(
            notifications.windows(2).all(|two| two[0].0 < two[1].0),
            "{notifications:?}"
        );
        notifications
            .into_iter()
            .map(|(_, message)| message)
            .collect()
    }

    /// Closes the connection.
    pub(super) async fn leave(self) -> Option<tokio::process::Child> {
        self.running.cancel().await.unwrap();
        self.server
    }
}

pub(super) fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|part| part.as_text());
    texts.map(|part| part.text.clone()).collect()
}
