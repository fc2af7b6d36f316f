//! An MCP server on stdio for one workspace: the toolbox.
//!
//! Tools run one at a time, on a thread of their own, so the protocol stays responsive: pings are answered while tests
//! run. Cancelling a call ends every process that it started. The caller sets the time limit of a call
//! (`testwright/deadline_ms` in the request's `_meta`, milliseconds); otherwise the tool's own limit applies. If a tool
//! refuses a call, the answer has `isError`; internal failures are JSON-RPC errors.

mod stdio;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::process::{self, interrupt};
use crate::python::STACK;
use crate::registry;
use crate::runners;
use crate::similarity::most_similar;
use crate::tool::{AnyTool, Context, Effect, Result, ToolAnswer, ToolError, refusal};
use crate::visible::visible;
use crate::workspace::Workspace;

/// The name under which the server introduces itself.
pub const NAME: &str = "testwright-toolbox";
/// Key in a request's `_meta`: milliseconds that the call may take.
pub const DEADLINE_KEY: &str = "testwright/deadline_ms";

/// Serves until the client closes the stream, then ends all running work.
///
/// # Errors
///
/// Fails if a thread, the interrupt or the connection with the client cannot be set up, or serving fails.
pub fn serve(workspace: Workspace) -> Result<()> {
    runners::enable_warm_runs();
    interrupt::enable()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let server = start_worker(workspace)?;
    let streams = stdio::stdio(runtime.handle());
    let broken = |e: &dyn std::fmt::Display| ToolError::Broken(e.to_string());
    let result = runtime.block_on(async {
        let service = server.serve((streams.input, streams.output)).await;
        let ended = service.map_err(|e| broken(&e))?.waiting().await;
        ended.map(drop).map_err(|e| broken(&e))
    });
    process::end_everything();
    // Wait until the last answers are written; this fails if the client is gone.
    let _ = streams.writer.join();
    // Do not wait for the threads: they may be blocked on stdin or in a tool.
    runtime.shutdown_background();
    result
}

/// Serves on any stream, for the fuzz targets: `answer` replaces the thread that runs tools.
#[cfg(fuzzing)]
pub async fn serve_on<S>(stream: S, answer: fn(&dyn AnyTool, Value) -> Result<ToolAnswer>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (jobs, queue) = mpsc::channel::<Job>();
    std::thread::spawn(move || {
        for job in queue {
            let _ = job.answer.send(answer(job.tool, job.arguments));
        }
    });
    let server = Server {
        jobs,
        running: Arc::default(),
    };
    if let Ok(service) = server.serve(stream).await {
        let _ = service.waiting().await;
    }
}

/// Calls a tool with a deadline. A panic in a tool is a bug in testwright, not a mistake of the model.
///
/// # Errors
///
/// Returns the tool's own error, or [`ToolError::Broken`] if it panics.
pub fn call(
    tool: &dyn AnyTool,
    workspace: &mut Workspace,
    arguments: Value,
    time: Duration,
) -> Result<ToolAnswer> {
    let mut context = Context {
        workspace,
        deadline: Instant::now() + time,
    };
    std::panic::catch_unwind(AssertUnwindSafe(|| tool.call(&mut context, arguments)))
        .unwrap_or_else(|panic| {
            let text = (panic.downcast_ref::<&str>().copied())
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            Err(ToolError::Broken(format!(
                "the tool {} panicked: {text}",
                tool.name()
            )))
        })
}

/// Escapes hidden characters in the text of a result. All answers and refusals pass through here. The data is for
/// programs and stays unchanged.
///
/// # Errors
///
/// Returns the given error, with its text escaped.
pub fn with_visible_text(result: Result<ToolAnswer>) -> Result<ToolAnswer> {
    let text = |text: String| visible(&text).into_owned();
    match result {
        Ok(answer) => Ok(ToolAnswer {
            text: text(answer.text),
            ..answer
        }),
        Err(ToolError::Refused(why)) => Err(ToolError::Refused(text(why))),
        Err(ToolError::Broken(why)) => Err(ToolError::Broken(text(why))),
        Err(ToolError::Cancelled) => Err(ToolError::Cancelled),
    }
}

/// Finds a tool by name, including the host's tools.
///
/// # Errors
///
/// Fails if there is no such tool; the error names the nearest ones.
pub fn find(name: &str) -> Result<&'static dyn AnyTool> {
    registry::find(name).ok_or_else(|| {
        let near = most_similar(registry::for_models().map(|tool| tool.name()), name);
        refusal!(
            "There is no tool `{name}`. The nearest are: {}.",
            near.join(", ")
        )
    })
}

struct Job {
    tool: &'static dyn AnyTool,
    arguments: Value,
    time: Duration,
    answer: oneshot::Sender<Result<ToolAnswer>>,
    is_cancelled: CancelFlag,
}

/// Set once the client has cancelled the call.
type CancelFlag = Arc<AtomicBool>;

fn start_worker(mut workspace: Workspace) -> std::io::Result<Server> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let running = Arc::new(RunningCall::default());
    let server = Server {
        jobs,
        running: running.clone(),
    };
    let worker = std::thread::Builder::new().stack_size(STACK);
    worker.spawn(move || {
        for job in queue {
            if !running.begin(&job.is_cancelled) {
                continue;
            }
            let result = call(job.tool, &mut workspace, job.arguments, job.time);
            running.end(&job.is_cancelled);
            // Fails only if the client went away.
            let _ = job.answer.send(result);
        }
    })?;
    Ok(server)
}

/// The running call, if any. It ensures that a cancellation does not reach the next call.
#[derive(Default)]
struct RunningCall(Mutex<Option<CancelFlag>>);

impl RunningCall {
    /// Returns `false` if the call was cancelled while it waited for its turn.
    fn begin(&self, call: &CancelFlag) -> bool {
        let mut running = self.lock();
        let begins = !call.load(Ordering::Relaxed);
        *running = begins.then(|| call.clone());
        begins
    }

    /// Ends the processes that a cancelled call left behind.
    fn end(&self, call: &CancelFlag) {
        *self.lock() = None;
        if call.load(Ordering::Relaxed) {
            process::end_leftovers();
            interrupt::clear();
        }
    }

    fn cancel(&self, call: &CancelFlag) {
        let running = self.lock();
        call.store(true, Ordering::Relaxed);
        if running.as_ref().is_some_and(|one| Arc::ptr_eq(one, call)) {
            interrupt::raise();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<CancelFlag>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Server {
    jobs: mpsc::Sender<Job>,
    running: Arc<RunningCall>,
}

impl Server {
    async fn answer(
        &self,
        name: &str,
        arguments: Value,
        time: Option<Duration>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<ToolAnswer> {
        let tool = find(name)?;
        let (answer, answered) = oneshot::channel();
        let is_cancelled = CancelFlag::default();
        let job = Job {
            tool,
            arguments,
            time: time.unwrap_or(Duration::from_secs(tool.seconds())),
            answer,
            is_cancelled: is_cancelled.clone(),
        };
        let to_stopped_error = |_| ToolError::Broken("the tool thread has stopped".to_owned());
        self.jobs
            .send(job)
            .map_err(|e| to_stopped_error(e.to_string()))?;
        tokio::select! {
            answer = answered => answer.map_err(|e| to_stopped_error(e.to_string()))?,
            () = cancelled => {
                self.running.cancel(&is_cancelled);
                Err(ToolError::Cancelled)
            }
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(NAME, env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            registry::for_models().map(listed).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let own = request
            .meta
            .as_ref()
            .and_then(|meta| meta.0.get(DEADLINE_KEY));
        let time = own
            .or_else(|| context.meta.0.get(DEADLINE_KEY))
            .and_then(Value::as_u64)
            .map(Duration::from_millis);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let cancelled = context.ct.cancelled();
        let answer = self.answer(&request.name, arguments, time, cancelled).await;
        match with_visible_text(answer) {
            Ok(answer) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
                if !answer.data.is_null() {
                    result.structured_content = Some(answer.data);
                }
                Ok(result.into())
            }
            Err(ToolError::Refused(text)) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into())
            }
            Err(error @ (ToolError::Broken(_) | ToolError::Cancelled)) => {
                Err(ErrorData::internal_error(error.to_string(), None))
            }
        }
    }
}

/// Returns a tool as MCP clients list it. Models get less: see [`crate::tool::ToolSpec`].
pub fn listed(tool: &dyn AnyTool) -> Tool {
    let spec = tool.spec();
    let annotations = ToolAnnotations::new()
        .read_only(tool.effect() == Effect::Reads)
        .destructive(tool.is_destructive())
        .idempotent(tool.is_idempotent())
        // Sandboxes have no network.
        .open_world(false);
    Tool::new(spec.name, spec.description, object(spec.parameters))
        .with_title(tool.title())
        .with_annotations(annotations)
        .with_raw_output_schema(object(tool.data_schema()).into())
}

fn object(schema: Value) -> JsonObject {
    serde_json::from_value(schema).unwrap_or_default()
}
