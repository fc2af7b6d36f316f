//! OpenTelemetry spans: requests, attempts at runs, their steps, model calls and tool calls. Names and attributes
//! follow the semantic conventions, including those for generative AI. Spans contain no text of issues, models or
//! tools.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use axum::http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    Link, Span as _, SpanContext, SpanKind, Status, TraceContextExt, Tracer as _,
    TracerProvider as _,
};
use opentelemetry::{Context, KeyValue, StringValue, Value};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use super::collector::CollectorClient;
use crate::store::{JobStatus, StoredRun};
use testwright_agent::approaches::{self, ModelKind};
use testwright_agent::trajectory::{Event, RecordedAnswer};
use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;
use testwright_models::{Finish, ModelName, Reply};

/// OpenTelemetry's variables for the collector's address. Its libraries read the others (headers, sampling, names).
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
const DISABLED: &str = "OTEL_SDK_DISABLED";
const SERVICE: &str = "OTEL_SERVICE_NAME";
/// Header of W3C Trace Context.
const TRACEPARENT: &str = "traceparent";
/// Timeout for sending the remaining spans at the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Creates traces; `None` if the environment names no collector.
    pub(super) fn from_environment() -> Result<Option<Self>> {
        let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
        let is_disabled = std::env::var(DISABLED).is_ok_and(|v| v.eq_ignore_ascii_case("true"));
        if is_disabled || !ENDPOINTS.iter().any(set) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpJson)
            .with_http_client(CollectorClient::new()?)
            .build()
            .map_err(|error| {
                Error::usage("send spans")
                    .cause(error)
                    .hint(format!("check {}", ENDPOINTS.join(" and ")))
            })?;
        let service = std::env::var(SERVICE).unwrap_or_else(|_| "testwright".to_owned());
        let resource = Resource::builder()
            .with_service_name(service)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("testwright");
        Ok(Some(Traces { provider, tracer }))
    }

    /// Sends the remaining spans.
    pub(super) async fn shut_down(&self) {
        let provider = self.provider.clone();
        let done =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT))
                .await;
        if let Ok(Err(error)) = done {
            tracing::warn!(%error, "the last spans may be lost");
        }
    }

    /// Starts the span of a request; its parent is the client's span, if the client traces.
    pub(super) fn request(
        &self,
        method: &'static str,
        route: &str,
        headers: &HeaderMap,
    ) -> TracedRequest {
        let parent = TraceContextPropagator::new()
            .extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let attributes = [
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", route.to_owned()),
        ];
        let span = self
            .tracer
            .span_builder(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        TracedRequest(span)
    }

    /// Starts the span of an attempt at a run, in a new trace. The request for the run may be much older, so its span
    /// is only linked.
    pub(super) fn run(&self, run: &StoredRun) -> RunSpans {
        let approach = run.approach.clone();
        let attributes = [
            KeyValue::new("gen_ai.operation.name", "invoke_agent"),
            KeyValue::new("gen_ai.agent.name", approach.clone()),
            KeyValue::new("gen_ai.conversation.id", run.id.to_string()),
            KeyValue::new("gen_ai.provider.name", provider(&run.model)),
            KeyValue::new("gen_ai.request.model", run.model.clone()),
            KeyValue::new("testwright.run.attempt", run.attempt),
        ];
        let span = self
            .tracer
            .span_builder(format!("invoke_agent {approach}"))
            .with_attributes(attributes)
            .with_links(links(run.traceparent.as_deref()))
            .start_with_context(&self.tracer, &Context::new());
        RunSpans {
            tracer: self.tracer.clone(),
            model: run.model.clone(),
            open: Mutex::new(OpenSpans {
                run: span,
                step: None,
                steps: 0,
            }),
        }
    }
}

/// The span of a request in progress.
#[derive(Debug)]
pub(super) struct TracedRequest(Span);

impl TracedRequest {
    pub(super) fn as_parent(&self) -> RequestSpan {
        RequestSpan(self.0.span_context().clone())
    }

    /// Ends the span with the status of the response.
    pub(super) fn end(self, status: u16) {
        let mut span = self.0;
        span.set_attribute(KeyValue::new(
            "http.response.status_code",
            i64::from(status),
        ));
        if status >= 500 {
            span.set_attribute(KeyValue::new("error.type", status.to_string()));
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// The span of a request, as the parent of later spans.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpan(SpanContext);

impl RequestSpan {
    /// Formats the span for the `traceparent` header.
    pub(crate) fn traceparent(&self) -> Option<String> {
        let context = Context::new().with_remote_span_context(self.0.clone());
        let mut headers = HashMap::new();
        TraceContextPropagator::new().inject_context(&context, &mut headers);
        headers.remove(TRACEPARENT)
    }
}

/// Links to the span of a header, if the header is valid.
fn links(traceparent: Option<&str>) -> Vec<Link> {
    let Some(traceparent) = traceparent else {
        return Vec::new();
    };
    let headers = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let span = context.span().span_context().clone();
    let links = span.is_valid().then(|| Link::with_context(span));
    links.into_iter().collect()
}

/// The spans of an attempt. An event is stored when an operation is over, with its duration: the span is created then,
/// with its start time.
#[derive(Debug)]
pub(super) struct RunSpans {
    tracer: SdkTracer,
    model: String,
    open: Mutex<OpenSpans>,
}

#[derive(Debug)]
struct OpenSpans {
    run: Span,
    step: Option<Span>,
    steps: i64,
}

impl OpenSpans {
    /// Returns the parent span of a call: the current step or the run.
    fn parent(&self) -> Context {
        let span = self.step.as_ref().unwrap_or(&self.run);
        Context::new().with_remote_span_context(span.span_context().clone())
    }

    fn end_step(&mut self, at: SystemTime) {
        if let Some(mut step) = self.step.take() {
            step.end_with_timestamp(at);
        }
    }
}

impl RunSpans {
    pub(super) fn stored(&self, event: &Event) {
        let mut open = lock(&self.open);
        match event {
            Event::Reply {
                purpose,
                reply,
                seconds,
                ..
            } => {
                let began = before(*seconds);
                if purpose.is_step() {
                    self.begin_step(&mut open, began);
                }
                self.model_call(&open.parent(), reply, began);
            }
            Event::Answer(answer) => self.tool_call(&open.parent(), answer),
            _ => {}
        }
    }

    fn begin_step(&self, open: &mut OpenSpans, at: SystemTime) {
        open.end_step(at);
        open.steps += 1;
        let of_run = open.parent();
        let step = self
            .tracer
            .span_builder("step")
            .with_start_time(at)
            .with_attributes([KeyValue::new("testwright.step.number", open.steps)])
            .start_with_context(&self.tracer, &of_run);
        open.step = Some(step);
    }

    fn model_call(&self, parent: &Context, reply: &Reply, began: SystemTime) {
        let finish = match reply.finish {
            Finish::Stop => "stop",
            Finish::ToolCalls => "tool_calls",
            Finish::Length => "length",
            Finish::ContentFilter => "content_filter",
        };
        let finish = Value::Array(vec![StringValue::from(finish)].into());
        let usage = &reply.usage;
        let attributes = [
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", provider(&self.model)),
            KeyValue::new("gen_ai.request.model", self.model.clone()),
            KeyValue::new("gen_ai.response.finish_reasons", finish),
            count("gen_ai.usage.input_tokens", usage.prompt_tokens),
            count("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
            count("gen_ai.usage.output_tokens", usage.completion_tokens),
        ];
        let mut span = self
            .tracer
            .span_builder(format!("chat {}", self.model))
            .with_kind(SpanKind::Client)
            .with_start_time(began)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, parent);
        if let Some(dollars) = usage.dollars {
            span.set_attribute(KeyValue::new("testwright.usage.dollars", dollars));
        }
        span.end();
    }

    fn tool_call(&self, parent: &Context, answer: &RecordedAnswer) {
        let attributes = [
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", answer.tool.clone()),
            KeyValue::new("gen_ai.tool.type", "function"),
        ];
        let mut span = self
            .tracer
            .span_builder(format!("execute_tool {}", answer.tool))
            .with_start_time(before(answer.seconds))
            .with_attributes(attributes)
            .start_with_context(&self.tracer, parent);
        if answer.refused {
            span.set_attribute(KeyValue::new("error.type", "refused"));
        }
        span.end();
    }

    pub(super) fn end(&self, status: JobStatus) {
        let mut open = lock(&self.open);
        open.end_step(SystemTime::now());
        let status_text = status.as_str();
        open.run
            .set_attribute(KeyValue::new("testwright.run.status", status_text));
        if status == JobStatus::Infrastructure {
            open.run
                .set_attribute(KeyValue::new("error.type", status_text));
            open.run.set_status(Status::error(""));
        }
        open.run.end();
    }
}

fn before(seconds: f64) -> SystemTime {
    let now = SystemTime::now();
    let ago = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    now.checked_sub(ago).unwrap_or(now)
}

fn count(name: &'static str, value: u64) -> KeyValue {
    KeyValue::new(name, i64::try_from(value).unwrap_or(i64::MAX))
}

/// Returns the provider of a model: language models use OpenAI's protocol.
fn provider(model: &str) -> &'static str {
    let mut approaches = approaches::ALL.iter();
    let is_recording = ModelName::parse(model).is_ok_and(|name| name.is_recording());
    let is_own = is_recording
        || approaches.any(|a| matches!(a.model, ModelKind::Rules(name) if name == model));
    if is_own { "testwright" } else { "openai" }
}
