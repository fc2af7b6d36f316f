//! A client of the MCP server: the tools it can call, and its open session.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use testwright_tools::visible;
use tokio::sync::OwnedSemaphorePermit;

use super::McpParts;
use super::open_sessions::ClientSession;
use super::progress::CallProgress;
use super::raw_tools::RawTools;
use super::service_tool::ServiceCall;
use super::services;
use super::session_end;

/// Maximum characters of a method's name in an error.
const MAX_METHOD_CHARS: usize = 100;

/// The client of one connection. Its session ends with the connection.
pub struct McpClient {
    parts: Arc<McpParts>,
    /// Tools for the repository that was named on the command line; they end with the process.
    named: Option<Arc<RawTools>>,
    session: ClientSession,
    /// Counts a client over HTTP.
    _permit: Option<OwnedSemaphorePermit>,
}

impl McpClient {
    /// Creates the client on stdio, with the tools of a session that may exist from the start.
    pub fn of_stdio(parts: Arc<McpParts>, raw_tools: Option<Arc<RawTools>>) -> Self {
        McpClient {
            parts,
            named: raw_tools,
            session: ClientSession::default(),
            _permit: None,
        }
    }

    /// Creates a client over HTTP.
    ///
    /// # Errors
    ///
    /// Fails if there are too many clients.
    pub fn of_http(parts: Arc<McpParts>) -> io::Result<Self> {
        let permit = parts.sessions.admit_client();
        let permit = permit.ok_or_else(|| io::Error::other("there are too many clients"))?;
        Ok(McpClient {
            parts,
            named: None,
            session: ClientSession::default(),
            _permit: Some(permit),
        })
    }

    async fn call_raw(
        &self,
        request: &CallToolRequestParams,
    ) -> Option<Result<CallToolResult, ErrorData>> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let session = self.session.current();
        let _in_use = session.as_ref().map(|session| session.begin_call());
        let tools = session.as_ref().map(|session| &session.tools);
        let tools = tools.or(self.named.as_ref())?;
        tools.call_by_name(&request.name, arguments).await
    }

    /// Returns the tools of the open session, otherwise those for the repository that was named on the command line.
    fn raw_tools(&self) -> Option<Arc<RawTools>> {
        let session = self.session.current();
        session
            .map(|session| session.tools.clone())
            .or_else(|| self.named.clone())
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let mut names: Vec<Cow<'_, str>> = services::ALL
            .iter()
            .map(|tool| tool.name().into())
            .collect();
        let raw = self.raw_tools();
        names.extend(raw.iter().flat_map(|raw| raw.list()).map(|tool| tool.name));
        let why = match self.session.has_ended() {
            true => "; the session ended because it was idle: open another one",
            false => "",
        };
        let text = format!(
            "unknown tool `{name}`; the tools are: {}{why}",
            names.join(", ")
        );
        ErrorData::invalid_params(visible(&text).into_owned(), None)
    }
}

impl ServerHandler for McpClient {
    /// Sessions belong to a connection, which newer versions of the protocol do not have.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(
            &ProtocolVersion::LATEST_WITH_INITIALIZE,
        ))
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let of_place = self.named.as_ref().map(|tools| {
            format!(
                " The other tools are for {} at its base commit, in a sandbox without network access: use them to write a test; `submit` \
                                checks whether it reproduces the issue.",
                tools.repository()
            )
        });
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("testwright", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!(
                "`write_failing_test` writes a test that fails for the reason stated in an issue; `revise_test` changes it as the user says; `check_test` checks whether a given \
                                test does; `check_patch` runs tests on candidate code patches; `verify` runs test files and `cov` measures \
                                the lines they run; `open_session` provides tools for writing a test yourself. Allowed repositories: \
                                {}.{}",
                self.parts.api.allowed.patterns().join(", "),
                of_place.unwrap_or_default()
            ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools: Vec<_> = services::ALL.iter().map(|tool| tool.tool()).collect();
        tools.extend(self.raw_tools().iter().flat_map(|raw| raw.list()));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut tools = services::ALL.iter();
        let Some(tool) = tools.find(|tool| tool.name() == request.name) else {
            // Dropping the call stops whatever it started.
            let called = tokio::select! {
                called = self.call_raw(&request) => called,
                () = session_end::cancelled(&context) => {
                    Some(Err(ErrorData::internal_error("the call was cancelled", None)))
                }
            };
            let called = called.unwrap_or_else(|| Err(self.unknown_tool(&request.name)));
            return called.map(Into::into);
        };
        let call = ServiceCall {
            parts: &self.parts,
            session: &self.session,
            arguments: request.arguments.unwrap_or_default(),
            context: &context,
            progress: CallProgress::from_context(&context),
        };
        let called = tool.call(&call).await;
        call.progress.flush().await;
        let result = called.unwrap_or_else(|error| {
            CallToolResult::error(vec![ContentBlock::text(visible(&error.0))])
        });
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name: String = request.method.chars().take(MAX_METHOD_CHARS).collect();
        let text = format!("unknown method: {}", visible(&name));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        if let Some(session) = self.session.replace(None) {
            let parts = self.parts.clone();
            tokio::spawn(async move { parts.sessions.close(&session).await });
        }
    }
}
