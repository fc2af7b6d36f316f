#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hostile;
mod server;
mod settings;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use server::{Act, Server};
use testwright_tools::tool::ToolSpec;

use super::*;
use crate::model::retry::{Retry, RetrySettings};
use crate::model::{Finish, Message, ToolCall, ToolResult};

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}),
    }
}

fn request() -> Request {
    Request {
        messages: vec![
            Message::System {
                content: "You write tests.".to_owned(),
            },
            Message::User {
                content: "Go.".to_owned(),
            },
        ],
        tools: vec![spec("search"), spec("open_file")],
        parallel_calls: true,
        temperature: None,
        max_tokens: None,
    }
}

fn settings(server: &Server, stream: bool) -> OpenAiSettings {
    OpenAiSettings {
        base_url: server.url.clone(),
        stream,
        timeout: Duration::from_secs(20),
        ..OpenAiSettings::new("m")
    }
}

fn client(server: &Server, stream: bool) -> OpenAi {
    OpenAi::new(settings(server, stream)).unwrap()
}

fn whole(message: Value, finish: &str) -> Value {
    json!({
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
                  "prompt_tokens_details": {"cached_tokens": 64}},
    })
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(finish: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
}

fn fragment(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    delta(json!({"tool_calls": [call]}))
}

fn names(reply: &Reply) -> Vec<(&str, &str, String)> {
    reply
        .calls
        .iter()
        .map(|c| {
            (
                c.id.as_str(),
                c.name.as_str(),
                c.arguments.as_str().to_owned(),
            )
        })
        .collect()
}

/// One answer of a server that does not stream.
async fn answer_to(act: Act) -> Result<Reply, ModelError> {
    let server = Server::new(vec![act]).await;
    client(&server, false).complete(&request()).await
}

async fn streamed(events: &[Value]) -> Result<Reply, ModelError> {
    let server = Server::new(vec![Act::stream(events)]).await;
    client(&server, true).complete(&request()).await
}

#[tokio::test]
async fn a_plain_reply_with_cached_tokens() {
    let server = Server::new(vec![Act::json(
        200,
        &whole(json!({"role": "assistant", "content": "hello"}), "stop"),
    )])
    .await;
    let mut settings = settings(&server, false);
    settings.api_key = Some(SecretString::from("sk-secret-1\n"));
    let reply = OpenAi::new(settings)
        .unwrap()
        .complete(&request())
        .await
        .unwrap();
    assert_eq!(reply.content, "hello");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.usage.prompt_tokens, 100);
    assert_eq!(reply.usage.cached_tokens, 64);
    assert_eq!(reply.usage.completion_tokens, 7);
    assert!(!reply.usage.estimated);
    let seen = &server.requests()[0];
    assert_eq!(seen.path, "/v1/chat/completions");
    assert!(
        seen.headers
            .contains("authorization: bearer sk-secret-1\r\n")
    );
    assert_eq!(seen.body["stream"], json!(false));
    assert_eq!(seen.body["tools"][1]["function"]["name"], "open_file");
    for absent in [
        "temperature",
        "max_tokens",
        "parallel_tool_calls",
        "stream_options",
    ] {
        assert!(seen.body.get(absent).is_none(), "{absent}");
    }
}

#[tokio::test]
async fn without_tools_none_are_sent_and_text_is_left_alone() {
    let text = "<tool_call>{\"name\": \"search\", \"arguments\": {}}</tool_call>";
    let server = Server::new(vec![Act::json(
        200,
        &whole(json!({"content": text}), "stop"),
    )])
    .await;
    let mut request = request();
    request.tools.clear();
    let reply = client(&server, false).complete(&request).await.unwrap();
    assert_eq!(reply.content, text);
    assert!(reply.calls.is_empty());
    assert!(server.requests()[0].body.get("tools").is_none());
}

#[tokio::test]
async fn tool_calls_good_and_bad() {
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        call("a", "search", json!("{\"pattern\": \"x\"}")),
        call("a", "functions.open_file", json!({"pattern": "y"})),
        call("", "search", json!("{'pattern': 'z',}")),
        call("d", "serach", json!("{}")),
        call("e", "search", json!("{\"pattern\": \"say \"hi\"\"}")),
        call("f", "search", json!("[1]")),
        call("g", "", json!("{}")),
    ]});
    let reply = answer_to(Act::json(200, &whole(message, "stop")))
        .await
        .unwrap();
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(
        names(&reply),
        [
            ("a", "search", r#"{"pattern":"x"}"#.to_owned()),
            ("tw0002000", "open_file", r#"{"pattern":"y"}"#.to_owned()),
            ("tw0002001", "search", r#"{"pattern":"z"}"#.to_owned()),
        ]
    );
    let problems: Vec<&str> = reply.malformed.iter().map(|m| m.problem.as_str()).collect();
    assert!(
        problems[0].contains("nearest name is \"search\""),
        "{problems:?}"
    );
    assert!(problems[1].contains("column 19"), "{problems:?}");
    assert!(problems[2].contains("a list"), "{problems:?}");
    assert!(problems[3].contains("names no tool"), "{problems:?}");
    assert_eq!(reply.malformed[3].id, None);
    assert!(reply.content.contains("without a name"));
}

#[tokio::test]
async fn a_reply_cut_at_its_limit_says_so() {
    let message = json!({"tool_calls": [{"id": "a", "function": {"name": "search", "arguments": "{\"pattern\": \"abc\""}}]});
    let reply = answer_to(Act::json(200, &whole(message, "length")))
        .await
        .unwrap();
    assert_eq!(reply.finish, Finish::Length);
    assert!(reply.calls.is_empty());
    assert!(
        reply.malformed[0].problem.contains("token limit"),
        "{:?}",
        reply.malformed
    );
}

#[tokio::test]
async fn calls_written_as_text_are_calls() {
    let message = json!({"content": "Looking.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>"});
    let reply = answer_to(Act::json(200, &whole(message, "stop")))
        .await
        .unwrap();
    assert_eq!(reply.content, "Looking.");
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(
        names(&reply),
        [("tw0002000", "search", r#"{"pattern":"x"}"#.to_owned())]
    );
}

#[tokio::test]
async fn fragments_of_parallel_calls_are_joined() {
    let reply = streamed(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "On "})),
        delta(json!({"content": "it."})),
        fragment(Some(0), Some("a"), Some("search"), ""),
        fragment(Some(0), None, None, "{\"pat"),
        fragment(Some(1), Some("b"), Some("open_file"), "{\"pattern\""),
        fragment(Some(0), None, None, "tern\": \"x\"}"),
        fragment(Some(1), Some("b"), Some("open_file"), ": \"y\"}"),
        end("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}}),
    ])
    .await
    .unwrap();
    assert_eq!(reply.content, "On it.");
    assert_eq!(
        names(&reply),
        [
            ("a", "search", r#"{"pattern":"x"}"#.to_owned()),
            ("b", "open_file", r#"{"pattern":"y"}"#.to_owned()),
        ]
    );
    assert_eq!(
        (reply.usage.prompt_tokens, reply.usage.cached_tokens),
        (9, 8)
    );
}

#[tokio::test]
async fn servers_without_good_indices_are_understood() {
    // All with index 0, each whole (Ollama); then without any index (gateways).
    for index in [Some(0), None] {
        let reply = streamed(&[
            fragment(index, Some("a"), Some("search"), "{\"pattern\": \"x\"}"),
            fragment(index, Some("b"), Some("search"), "{\"pattern\": "),
            fragment(index, None, None, "\"y\"}"),
            end("tool_calls"),
        ])
        .await
        .unwrap();
        assert_eq!(reply.calls.len(), 2, "{index:?} {reply:?}");
        assert_eq!(reply.calls[1].arguments, json!({"pattern": "y"}));
        assert!(reply.usage.estimated, "no usage came");
        assert!(reply.usage.prompt_tokens > 50 && reply.usage.completion_tokens > 5);
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_all_the_same() {
    let server = Server::new(vec![Act::json(
        200,
        &whole(json!({"content": "hello"}), "stop"),
    )])
    .await;
    let reply = client(&server, true).complete(&request()).await.unwrap();
    assert_eq!(reply.content, "hello");
    assert_eq!(
        server.requests()[0].body["stream_options"],
        json!({"include_usage": true})
    );
}

#[tokio::test]
async fn history_goes_out_as_the_protocol_wants_it() {
    let server = Server::new(vec![
        Act::json(200, &whole(json!({"content": "ok"}), "stop")),
        Act::refuse(400, "registry/m does not support tools"),
        Act::json(200, &whole(json!({"content": "ok"}), "stop")),
    ])
    .await;
    let model = client(&server, false);
    let mut request = request();
    request.parallel_calls = false;
    let bad = Reply {
        calls: vec![ToolCall {
            id: "a".to_owned(),
            name: "search".to_owned(),
            arguments: json!({"pattern": "x"}).into(),
        }],
        malformed: vec![crate::model::MalformedCall {
            id: Some("b".to_owned()),
            name: Some("open file!".to_owned()),
            text: "{oops".to_owned(),
            problem: "no JSON".to_owned(),
        }],
        ..Reply::default()
    };
    let turn = bad.turn();
    request.messages.push(turn.assistant);
    request.messages.push(Message::Tool(ToolResult {
        id: "a".to_owned(),
        content: "found".to_owned(),
    }));
    request
        .messages
        .extend(turn.answers.into_iter().map(Message::Tool));
    model.complete(&request).await.unwrap();
    let sent = &server.requests()[0].body;
    assert_eq!(sent["parallel_tool_calls"], json!(false));
    let assistant = &sent["messages"][2];
    assert_eq!(assistant["content"], Value::Null);
    assert_eq!(assistant["tool_calls"][1]["function"]["name"], "open_file_");
    for call in assistant["tool_calls"].as_array().unwrap() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(
            serde_json::from_str::<Value>(arguments)
                .unwrap()
                .is_object()
        );
    }
    assert_eq!(sent["messages"][4]["tool_call_id"], "b");

    // Refused tools move into the text, in this request and the next.
    model.complete(&request).await.unwrap();
    let sent = &server.requests()[2].body;
    assert!(sent.get("tools").is_none() && sent.get("parallel_tool_calls").is_none());
    let messages = sent["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let system = messages[0]["content"].as_str().unwrap();
    assert!(system.starts_with("You write tests.") && system.contains("does open_file"));
    assert!(
        messages[2]["content"]
            .as_str()
            .unwrap()
            .contains("<tool_call>")
    );
    let answers = messages[3]["content"].as_str().unwrap();
    assert!(answers.contains("found") && answers.contains("no JSON"));
}

#[tokio::test]
async fn servers_that_want_words_beside_calls_get_an_empty_text() {
    // As llama-cpp-python's server says it.
    let refused = "7 validation errors: {'type': 'string_type', 'loc': ('body', 'messages', 2, 'content'), \
                   'msg': 'Input should be a valid string', 'input': None}";
    let ok = || Act::json(200, &whole(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![Act::refuse(500, refused), ok(), ok()]).await;
    let model = client(&server, false);
    let mut request = request();
    let call = Reply {
        calls: vec![ToolCall {
            id: "a".to_owned(),
            name: "search".to_owned(),
            arguments: json!({}).into(),
        }],
        ..Reply::default()
    };
    request.messages.push(call.turn().assistant);
    model.complete(&request).await.unwrap();
    model.complete(&request).await.unwrap();
    let contents: Vec<Value> = server
        .requests()
        .iter()
        .map(|seen| seen.body["messages"][2]["content"].clone())
        .collect();
    assert_eq!(contents, [Value::Null, json!(""), json!("")]);
}

#[tokio::test]
async fn fields_that_are_refused_are_left_out_once_and_for_all() {
    let ok = || Act::json(200, &whole(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![
        Act::refuse(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        Act::refuse(400, "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."),
        ok(),
        ok(),
        Act::refuse(400, "temperature is not supported"),
    ])
    .await;
    let model = client(&server, false);
    let mut request = request();
    request.temperature = Some(0.2);
    request.max_tokens = Some(50);
    model.complete(&request).await.unwrap();
    model.complete(&request).await.unwrap();
    let seen = server.requests();
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[0].body["max_tokens"], json!(50));
    for seen in &seen[2..] {
        assert_eq!(seen.body["max_completion_tokens"], json!(50));
        assert!(seen.body.get("max_tokens").is_none());
        assert!(seen.body.get("temperature").is_none());
    }
    // What has been left out cannot be to blame.
    let error = model.complete(&request).await.unwrap_err();
    assert!(matches!(error, ModelError::Fatal { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_changes_its_mind_does_not_keep_us_for_ever() {
    let script = (0..40)
        .map(|_| Act::refuse(400, "max_completion_tokens: who knows"))
        .collect();
    let server = Server::new(script).await;
    let mut request = request();
    request.max_tokens = Some(50);
    client(&server, false).complete(&request).await.unwrap_err();
    assert!(
        server.requests().len() <= LESSONS,
        "{}",
        server.requests().len()
    );
}

#[tokio::test]
async fn full_contexts_are_told_apart() {
    let texts = [
        (
            400,
            json!({"error": {"message": "This model's maximum context length is 128000 tokens.", "code": "context_length_exceeded"}}),
        ),
        (
            400,
            json!({"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000", "code": 400}),
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_ctx": 4096}}),
        ),
        (
            500,
            json!({"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}),
        ),
        (
            400,
            json!({"error": {"message": "Requested tokens (20000) exceed context window of 16384"}}),
        ),
        (
            400,
            json!({"error": {"message": "litellm.ContextWindowExceededError: too much"}}),
        ),
        (
            400,
            json!({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        ),
        (
            400,
            json!({"error": "input length exceeds the context length"}),
        ),
        (
            429,
            json!({"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."}}),
        ),
        (413, json!({"detail": "Payload Too Large"})),
    ];
    for (status, body) in texts {
        let error = answer_to(Act::json(status, &body)).await.unwrap_err();
        assert!(
            matches!(error, ModelError::ContextFull(_)),
            "{body}: {error:?}"
        );
    }
}

#[tokio::test]
async fn what_will_not_get_better_is_fatal_and_has_a_hint() {
    let cases = [
        (
            401,
            "Incorrect API key provided: sk-secret-1",
            "OPENAI_API_KEY",
        ),
        (403, "forbidden", "OPENAI_API_KEY"),
        (404, "The model `m` does not exist", "--model"),
        (404, "Not Found", "/v1"),
        (
            429,
            "You exceeded your current quota (insufficient_quota)",
            "quota",
        ),
        (402, "Insufficient Balance", "credit"),
        (
            400,
            "The response was filtered: content management policy",
            "filter",
        ),
    ];
    for (status, message, hint) in cases {
        let server = Server::new(vec![Act::refuse(status, message)]).await;
        let mut settings = settings(&server, true);
        settings.api_key = Some(SecretString::from("sk-secret-1"));
        let error = OpenAi::new(settings)
            .unwrap()
            .complete(&request())
            .await
            .unwrap_err();
        let ModelError::Fatal {
            message,
            hint: Some(given),
        } = &error
        else {
            panic!("{status} {message}: {error:?}")
        };
        assert!(given.contains(hint), "{message}: {given}");
        assert!(
            !message.contains("sk-secret"),
            "the key is shown: {message}"
        );
    }
    let error = answer_to(Act::refuse(401, "no key")).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Fatal { hint: Some(h), .. } if h.contains("no key was sent")),
        "{error:?}"
    );
}

#[tokio::test]
async fn what_may_get_better_is_transient() {
    let html = || {
        Act::Answer(
            200,
            vec![("content-type".to_owned(), "text/html".to_owned())],
            "<html>busy</html>".to_owned(),
        )
    };
    let acts: Vec<(&str, Act)> = vec![
        ("500", Act::refuse(500, "boom")),
        (
            "503 without JSON",
            Act::Answer(503, vec![], "upstream".to_owned()),
        ),
        ("529", Act::refuse(529, "overloaded")),
        ("garbage", html()),
        (
            "half JSON",
            Act::Answer(200, vec![], "{\"choices\": [".to_owned()),
        ),
        ("no choice", Act::json(200, &json!({"choices": []}))),
        (
            "error with 200",
            Act::json(200, &json!({"error": {"message": "upstream", "code": 502}})),
        ),
        ("hang up", Act::HangUp),
    ];
    for (name, act) in acts {
        let error = answer_to(act).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { .. }),
            "{name}: {error:?}"
        );
    }
    let server = Server::new(vec![]).await;
    let mut gone = settings(&server, false);
    gone.base_url = "http://me:password@127.0.0.1:1/v1?code=hidden".to_owned();
    let error = OpenAi::new(gone)
        .unwrap()
        .complete(&request())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ModelError::Transient { message, .. } if message.contains("no connection") && !message.contains("password") && !message.contains("hidden")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_stream_that_breaks_is_no_reply() {
    let half = delta(json!({"content": "half a rep"}));
    let broken: Vec<(&str, Act)> = vec![
        (
            "cut",
            Act::Stream {
                events: vec![half.to_string()],
                cut: true,
            },
        ),
        (
            "ended",
            Act::Stream {
                events: vec![half.to_string()],
                cut: false,
            },
        ),
        ("done too early", Act::stream(std::slice::from_ref(&half))),
        (
            "garbage",
            Act::Stream {
                events: vec![half.to_string(), "{oops".to_owned()],
                cut: false,
            },
        ),
        (
            "error",
            Act::stream(&[
                half.clone(),
                json!({"error": {"message": "overloaded", "code": 529}}),
            ]),
        ),
        (
            "html",
            Act::Answer(
                200,
                vec![("content-type".to_owned(), "text/html".to_owned())],
                "<html>".to_owned(),
            ),
        ),
    ];
    for (name, act) in broken {
        let server = Server::new(vec![act]).await;
        let error = client(&server, true)
            .complete(&request())
            .await
            .unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { .. }),
            "{name}: {error:?}"
        );
    }
}

#[tokio::test]
async fn silence_ends() {
    let acts = [
        Act::Silence,
        Act::Stream {
            events: vec![],
            cut: false,
        },
    ];
    for (act, stream) in acts.into_iter().zip([false, true]) {
        let server = Server::new(vec![act]).await;
        let mut settings = settings(&server, stream);
        settings.timeout = Duration::from_millis(200);
        let error = OpenAi::new(settings)
            .unwrap()
            .complete(&request())
            .await
            .unwrap_err();
        let ModelError::Transient { message, .. } = error else {
            panic!("{error:?}")
        };
        assert!(
            message.contains("silent") || message.contains("ended"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn waiting_as_the_server_asks_and_only_once_for_each_failure() {
    let limited = |headers: &[(&str, &str)]| {
        let headers = headers
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Act::Answer(
            429,
            headers,
            "{\"error\": {\"message\": \"slow down\"}}".to_owned(),
        )
    };
    let server = Server::new(vec![
        limited(&[("retry-after", "0.01")]),
        limited(&[("retry-after-ms", "20")]),
        limited(&[
            ("retry-after", "Sat, 21 Nov 2026 22:00:00 GMT"),
            ("date", "Sat, 21 Nov 2026 22:00:00 GMT"),
        ]),
        Act::refuse(500, "boom"),
        Act::json(200, &whole(json!({"content": "at last"}), "stop")),
    ])
    .await;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&waits);
    let retry = Retry::new(
        Box::new(client(&server, true)),
        RetrySettings {
            first: Duration::from_millis(1),
            ..RetrySettings::default()
        },
    )
    .on_wait(move |wait| log.lock().unwrap().push(wait.clone()));
    let reply = retry.complete(&request()).await.unwrap();
    assert_eq!(reply.content, "at last");
    assert_eq!(server.requests().len(), 5, "nobody else may repeat calls");
    assert_eq!(retry.failed_calls(), 4);
    let waits = waits.lock().unwrap();
    assert!(
        waits[0].seconds >= 0.01 && waits[1].seconds >= 0.02,
        "{waits:?}"
    );
    assert!(waits[0].message.contains("slow down"));
}

#[test]
fn retry_after_is_read_in_all_its_forms() {
    let headers = |pairs: &[(&'static str, &str)]| {
        pairs
            .iter()
            .map(|(k, v)| {
                (
                    reqwest::header::HeaderName::from_static(k),
                    v.parse().unwrap(),
                )
            })
            .collect::<reqwest::header::HeaderMap>()
    };
    let now = httpdate::parse_http_date("Sat, 21 Nov 2026 22:00:00 GMT").unwrap();
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(Pairs, Option<f64>); 7] = [
        (&[("retry-after", "7")], Some(7.0)),
        (
            &[("retry-after", "Sat, 21 Nov 2026 22:01:30 GMT")],
            Some(90.0),
        ),
        (
            &[("retry-after", "Sat, 21 Nov 2026 21:00:00 GMT")],
            Some(0.0),
        ),
        (
            &[
                ("retry-after", "Sat, 21 Nov 2026 22:01:30 GMT"),
                ("date", "Sat, 21 Nov 2026 22:01:00 GMT"),
            ],
            Some(30.0),
        ),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-4")], None),
        (&[], None),
    ];
    for (pairs, seconds) in cases {
        assert_eq!(
            endpoint::retry_after(&headers(pairs), now),
            seconds,
            "{pairs:?}"
        );
    }
}

#[tokio::test]
async fn azure_is_addressed_in_its_own_way() {
    let server = Server::new(vec![Act::json(
        200,
        &whole(json!({"content": "ok"}), "stop"),
    )])
    .await;
    let mut settings = settings(&server, false);
    settings.base_url = settings.base_url.replace("/v1", "/");
    settings.api_key = Some(SecretString::from("azure-key"));
    settings.azure = Some(Azure {
        deployment: "my-gpt".to_owned(),
        api_version: "2024-10-21".to_owned(),
    });
    OpenAi::new(settings)
        .unwrap()
        .complete(&request())
        .await
        .unwrap();
    let seen = &server.requests()[0];
    assert_eq!(
        seen.path,
        "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    );
    assert!(seen.headers.contains("api-key: azure-key"));
    assert!(!seen.headers.contains("authorization"));
}
