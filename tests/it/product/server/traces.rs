//! Spans as received by a collector on loopback that accepts OTLP over HTTP.

use serde_json::Value;

use super::{ServerProcess, issue, model, slow_issue};
use crate::support::program::{TestDir, example};
use crate::support::server::{MockServer, Request, Response};

const CLIENT_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";

fn collector() -> MockServer {
    MockServer::start(|_: &Request| {
        Response::json(serde_json::json!({})).with("content-type", "application/json")
    })
}

fn start(place: &TestDir, model: &MockServer, endpoint: &str) -> ServerProcess {
    let mut command = place.testwright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path("data"));
    command.args(["--allow-repository", &example("*")]);
    command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", model.url));
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=tests");
    ServerProcess::logged(command, &place.path("log"))
}

/// Returns the spans of all requests to the collector, and checks their resource.
fn received(collector: &MockServer) -> Vec<Value> {
    let bodies = collector.requests(|request| {
        assert_eq!(request.path, "/v1/traces");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("x-tenant"), Some("tests"));
        serde_json::from_str::<Value>(&request.body).unwrap()
    });
    let mut spans = Vec::new();
    for body in bodies {
        for of_resource in body["resourceSpans"].as_array().unwrap() {
            let service = attribute(&of_resource["resource"], "service.name");
            assert_eq!(service, Some("testwright".into()));
            for of_scope in of_resource["scopeSpans"].as_array().unwrap() {
                spans.extend(of_scope["spans"].as_array().unwrap().clone());
            }
        }
    }
    spans
}

/// Returns the value of an attribute as text.
fn attribute(of: &Value, name: &str) -> Option<String> {
    let all = of["attributes"].as_array().unwrap();
    let entry = all.iter().find(|attribute| attribute["key"] == name)?;
    let (_, value) = entry["value"].as_object().unwrap().iter().next()?;
    Some(value.as_str().map_or(value.to_string(), str::to_owned))
}

fn time(span: &Value, name: &str) -> u128 {
    span[name].as_str().unwrap().parse().unwrap()
}

#[test]
fn collector_receives_all_span_kinds() {
    let (place, model, collector) = (TestDir::new(), model(), collector());
    let daemon = start(&place, &model, &collector.url);
    let traceparent = format!("00-{CLIENT_TRACE}-{CLIENT_SPAN}-01");
    let headers = [
        ("content-type", "application/json"),
        ("traceparent", traceparent.as_str()),
    ];
    let body = slow_issue().to_string();
    let reply = daemon.client.send("POST", "/v1/runs", &headers, &body);
    let run = reply.json()["id"].as_str().unwrap().to_owned();
    daemon.wait_for(&run, "accepted");
    let replies = model.requests(|_| ()).len();
    // The server sends the remaining spans before it exits.
    assert_eq!(daemon.terminate(), Some(0));

    let spans = received(&collector);
    let named_spans =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|s| s["name"] == name).collect() };
    let one = |name: &str| match named_spans(name)[..] {
        [span] => span,
        ref other => panic!("{name}: {other:?}"),
    };
    let request = one("POST /v1/runs");
    assert_eq!(request["traceId"], CLIENT_TRACE);
    assert_eq!(request["parentSpanId"], CLIENT_SPAN);
    let status = attribute(request, "http.response.status_code");
    assert_eq!(status.as_deref(), Some("201"));
    assert!(!named_spans("GET /v1/runs/{id}").is_empty());

    let of_run = one("invoke_agent testwright");
    let conversation = attribute(of_run, "gen_ai.conversation.id");
    assert_eq!(conversation.as_deref(), Some(run.as_str()));
    // A run has its own trace, with a link to the request.
    assert_ne!(of_run["traceId"], request["traceId"]);
    let links = of_run["links"].as_array().unwrap();
    assert_eq!(links.len(), 1, "{of_run}");
    for id in ["traceId", "spanId"] {
        assert_eq!(links[0][id], request[id], "{of_run}");
    }
    let ended = attribute(of_run, "testwright.run.status");
    assert_eq!(ended.as_deref(), Some("accepted"));

    let calls = named_spans("chat m");
    assert_eq!(calls.len(), replies);
    for call in &calls {
        let value = |name: &str| attribute(call, name).unwrap();
        assert_eq!(value("gen_ai.operation.name"), "chat");
        assert_eq!(value("gen_ai.provider.name"), "openai");
        assert_eq!(value("gen_ai.request.model"), "m");
        assert_eq!(value("gen_ai.usage.input_tokens"), "1000");
        assert_eq!(value("gen_ai.usage.output_tokens"), "10");
    }
    let steps = named_spans("step");
    assert!(steps.len() >= 4, "{steps:?}");
    let slow = one("execute_tool run_python");
    let took = time(slow, "endTimeUnixNano") - time(slow, "startTimeUnixNano");
    assert!(took > 5_000_000_000, "it slept for 5 seconds: {took}");

    // Steps are children of the run. Calls and tools are children of their steps, and within their time.
    for step in &steps {
        assert_eq!(step["parentSpanId"], of_run["spanId"]);
    }
    for call in calls.iter().copied().chain([slow]) {
        assert_eq!(call["traceId"], of_run["traceId"]);
        let step = steps
            .iter()
            .find(|step| step["spanId"] == call["parentSpanId"]);
        let step = step.unwrap_or_else(|| panic!("{call}"));
        assert!(time(call, "startTimeUnixNano") >= time(step, "startTimeUnixNano"));
        assert!(time(call, "endTimeUnixNano") <= time(step, "endTimeUnixNano"));
    }
    // Spans contain no prompts or replies.
    let all = serde_json::to_string(&spans).unwrap();
    for prompt_text in ["How to bake bread", "slugify", "the issue's own call"] {
        assert!(!all.contains(prompt_text), "{prompt_text}");
    }
}

#[test]
fn missing_collector_is_harmless() {
    let (place, model) = (TestDir::new(), model());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let daemon = start(&place, &model, &format!("http://user:word@{address}"));
    let mut request = issue();
    request["approach"] = "snippet".into();
    let run = daemon.run(&request);
    daemon.wait_for(&run, "accepted");
    assert_eq!(daemon.terminate(), Some(0));
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("could not send spans"), "{log}");
    assert!(!log.contains("word"), "{log}");
}

#[test]
fn invalid_collector_address_is_reported() {
    let place = TestDir::new();
    let mut command = place.testwright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path("data"));
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{stderr}");
}
