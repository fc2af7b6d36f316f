//! Unreadable messages on both transports: each request is answered, and the connection stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::ServerProcess;
use crate::support::program::{TestDir, example};

/// The expected response to a message.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    /// An error for an unreadable message; status 400 over HTTP.
    Refused(Value, i64),
    /// An error for a readable message.
    Error(Value, i64),
    Result(Value),
    /// The absence of a response, because the message is not a request.
    Nothing,
}

use Expected::{Error, Nothing, Refused, Result};

fn messages() -> Vec<(Vec<u8>, Expected)> {
    let null = Value::Null;
    let of_id = |id: &str, expected: Expected| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        (text.into_bytes(), expected)
    };
    let of_params = |method: &str, params: &str, expected: Expected| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        (text.into_bytes(), expected)
    };
    let invalid_params = || Refused(json!(7), -32602);
    let unreadable_id = || Refused(Value::Null, -32600);
    let text = |text: &str, expected: Expected| (text.as_bytes().to_vec(), expected);
    let mut cases = vec![
        // Invalid JSON.
        text("{no json", Refused(null.clone(), -32700)),
        text(
            r#"{"jsonrpc":"2.0","id":1,"method"#,
            Refused(null.clone(), -32700),
        ),
        text(
            r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#,
            Refused(null.clone(), -32700),
        ),
        (b"\xff\xfe\x00".to_vec(), Refused(null.clone(), -32700)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}".to_vec(),
            Refused(null.clone(), -32700),
        ),
        (b"[".repeat(100_000), Refused(null.clone(), -32700)),
        // Invalid requests.
        text("[]", Refused(null.clone(), -32600)),
        text(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            Refused(null.clone(), -32600),
        ),
        text("5", Refused(null.clone(), -32600)),
        text("null", Refused(null.clone(), -32600)),
        text("{}", Refused(null.clone(), -32600)),
        text(r#"{"jsonrpc":"2.0","id":7}"#, Refused(json!(7), -32600)),
        text(r#"{"id":7,"method":"ping"}"#, Refused(json!(7), -32600)),
        text(
            r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
            Refused(json!(7), -32600),
        ),
        text(
            r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#,
            Refused(json!(7), -32600),
        ),
        text(
            r#"{"jsonrpc":"2.0","id":7,"method":5}"#,
            Refused(json!(7), -32600),
        ),
        text(
            r#"{"jsonrpc":"2.0","id":7,"method":["ping"]}"#,
            Refused(json!(7), -32600),
        ),
        text(
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#,
            Refused(json!(7), -32600),
        ),
        of_id("null", unreadable_id()),
        of_id("1.5", unreadable_id()),
        of_id("true", unreadable_id()),
        of_id("[1]", unreadable_id()),
        of_id("{}", unreadable_id()),
        of_id("9223372036854775808", unreadable_id()),
        of_id(&"9".repeat(60), unreadable_id()),
        of_id("9223372036854775807", Result(json!(i64::MAX))),
        of_id("-1", Result(json!(-1))),
        of_id("\"\"", Result(json!(""))),
        of_params("no/such/method", "{}", Error(json!(7), -32601)),
        of_params("prompts/get", "{}", Error(json!(7), -32601)),
        of_params("notifications/initialized", "{}", Error(json!(7), -32601)),
        of_params("tools/call", "null", invalid_params()),
        of_params("tools/call", "{}", invalid_params()),
        of_params("tools/call", "[]", invalid_params()),
        of_params("tools/call", r#""verify""#, invalid_params()),
        of_params("tools/call", r#"{"name":5}"#, invalid_params()),
        of_params(
            "tools/call",
            r#"{"name":"verify","arguments":"{}"}"#,
            invalid_params(),
        ),
        of_params(
            "tools/call",
            r#"{"name":"verify","arguments":[]}"#,
            invalid_params(),
        ),
        of_params(
            "tools/call",
            r#"{"name":"verify","_meta":5}"#,
            invalid_params(),
        ),
        of_params("tools/call", r#"{"name":"none"}"#, Error(json!(7), -32602)),
        of_params("tools/list", r#"{"cursor":5}"#, invalid_params()),
        of_params("tools/list", "5", invalid_params()),
        of_params("initialize", "{}", invalid_params()),
        of_params("no/such/method", "[]", invalid_params()),
        of_params("ping", "[]", invalid_params()),
        // Unknown fields are ignored.
        of_params("ping", r#"{"more":1}"#, Result(json!(7))),
        of_params("ping", "null", Result(json!(7))),
        text(
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","more":1}"#,
            Result(json!(7)),
        ),
        text(
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r",
            Result(json!(7)),
        ),
        // Notifications and responses.
        text(
            r#"{"jsonrpc":"2.0","method":"notifications/none"}"#,
            Nothing,
        ),
        text(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
            Nothing,
        ),
        text(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, Nothing),
    ];
    let quoted = format!(r#"{{"name":"{}"}}"#, "a".repeat(200_000));
    cases.push(of_params("tools/list", &quoted, Result(json!(7))));
    cases
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}})
}

/// Returns the id and the error code of a response.
fn summary(answer: &Value) -> (Value, Option<i64>) {
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.len() < 500, "{message}");
    (answer["id"].clone(), answer["error"]["code"].as_i64())
}

fn expected_answers(expected: &Expected) -> Vec<(Value, Option<i64>)> {
    match expected {
        Refused(id, code) | Error(id, code) => vec![(id.clone(), Some(*code))],
        Result(id) => vec![(id.clone(), None)],
        Nothing => Vec::new(),
    }
}

/// A server on stdio, used line by line.
struct LineServer {
    server: Child,
    lines: mpsc::Receiver<Value>,
    pings: u32,
}

impl LineServer {
    fn start(place: &TestDir) -> LineServer {
        let mut command = place.testwright();
        command
            .args(["mcp", "--allow-repository", &example("*")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut server = command.stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(std::result::Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        LineServer {
            server,
            lines,
            pings: 0,
        }
    }

    fn send(&mut self, line: &[u8]) {
        let input = self.server.stdin.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(Duration::from_secs(180)).unwrap()
    }

    /// Returns the responses to a message. Also checks that a request after it is answered.
    fn answers(&mut self, message: &[u8], count: usize) -> Vec<(Value, Option<i64>)> {
        self.send(message);
        let mut answers: Vec<_> = (0..count).map(|_| summary(&self.next())).collect();
        self.pings += 1;
        let id = json!(format!("ping {}", self.pings));
        self.send(
            &serde_json::to_vec(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).unwrap(),
        );
        loop {
            let answer = self.next();
            if answer["id"] == id {
                assert_eq!(answer["result"], json!({}));
                return answers;
            }
            answers.push(summary(&answer));
        }
    }
}

impl Drop for LineServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn unreadable_lines_are_answered_on_stdio() {
    let place = TestDir::new();
    let mut server = LineServer::start(&place);
    // Unreadable lines are also answered before the connection is initialized.
    server.send(b"{no json");
    assert_eq!(summary(&server.next()), (Value::Null, Some(-32700)));
    server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    server.send(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}"#);
    assert_eq!(summary(&server.next()), (json!(1), Some(-32602)));
    server.send(&serde_json::to_vec(&initialize()).unwrap());
    assert_eq!(summary(&server.next()), (json!("first"), None));
    for (message, expected) in messages() {
        let expected_replies = expected_answers(&expected);
        let message_start =
            String::from_utf8_lossy(&message[..message.len().min(200)]).into_owned();
        assert_eq!(
            server.answers(&message, expected_replies.len()),
            expected_replies,
            "{message_start}"
        );
    }
    let long = |length: usize| {
        let fill = "a".repeat(length);
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"fill":"{fill}"}}}}"#)
    };
    for (message, expected_reply) in [
        (vec![b'x'; 10 << 20], (Value::Null, Some(-32700))),
        (long(10 << 20).into_bytes(), (json!(7), None)),
        (long(17 << 20).into_bytes(), (Value::Null, Some(-32600))),
        (b" \t".to_vec(), (Value::Null, None)),
    ] {
        let expected_replies: Vec<_> = (message.len() > 2)
            .then_some(expected_reply)
            .into_iter()
            .collect();
        assert_eq!(
            server.answers(&message, expected_replies.len()),
            expected_replies
        );
    }
    // An ID is in use until its response. This call takes a while, because it starts a sandbox.
    let cases = json!([{"path": "tests/test_given.py", "content": ""}]);
    let arguments = json!({"repository": example("slugs"), "cases": cases});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "verify", "arguments": arguments}});
    server.send(call.to_string().as_bytes());
    server.send(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    assert_eq!(summary(&server.next()), (json!(7), Some(-32600)));
    assert_eq!(summary(&server.next()), (json!(7), None));
    // The last line may lack a newline.
    let mut input = server.server.stdin.take().unwrap();
    input.write_all(b"{no json").unwrap();
    drop(input);
    assert_eq!(summary(&server.next()), (Value::Null, Some(-32700)));
    assert_eq!(server.server.wait().unwrap().code(), Some(0));
}

#[test]
fn unreadable_bodies_are_refused_over_http() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let address = &daemon.client.address;
    let (status, head, _) = post(address, None, &serde_json::to_vec(&initialize()).unwrap());
    assert_eq!(status, 200, "{head}");
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap().trim();
    for (message, expected) in messages() {
        let (status, head, body) = post(address, Some(session), &message);
        let message_start =
            String::from_utf8_lossy(&message[..message.len().min(200)]).into_owned();
        let answers: Vec<_> = match status {
            200 => (body.lines())
                .filter_map(|line| line.strip_prefix("data: "))
                .filter(|data| data.starts_with('{'))
                .map(|data| summary(&serde_json::from_str(data).unwrap()))
                .collect(),
            400 => {
                assert!(head.contains("content-type: application/json"), "{head}");
                vec![summary(&serde_json::from_str(&body).unwrap())]
            }
            _ => Vec::new(),
        };
        let expected_status = match &expected {
            Refused(..) => 400,
            Error(..) | Result(_) => 200,
            Nothing => 202,
        };
        assert_eq!(
            (status, answers),
            (expected_status, expected_answers(&expected)),
            "{message_start}: {body}"
        );
    }
    let unknown = br#"{"jsonrpc":"2.0","id":8,"method":"no/such/method"}"#;
    let (_, _, body) = post(address, Some(session), unknown);
    assert!(body.contains("unknown method: no/such/method"), "{body}");
    // A notification gets only a status.
    let wrong =
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#;
    assert_eq!(post(address, Some(session), wrong).0, 400);
}

/// Sends a POST request. Returns status, head and body.
fn post(address: &str, session: Option<&str>, body: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let session = session
        .map(|id| format!("mcp-session-id: {id}\r\n"))
        .unwrap_or_default();
    let head = format!(
        "POST /mcp HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}
