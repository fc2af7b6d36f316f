#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use testwright_sandboxes::error::ErrorKind;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

use super::*;

const MIB: usize = 1 << 20;

/// Starts a server on real pipes that answers a call with a text of this many bytes. If `ends` is false, the
/// text is endless, up to the limits of a test.
async fn connected(bytes: usize, ends: bool) -> (Connection, Arc<AtomicUsize>) {
    let (stdin, requests) = pipe::pipe().unwrap();
    let (mut answers, stdout) = pipe::pipe().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    tokio::spawn(async move {
        let mut requests = BufReader::new(requests).lines();
        while let Ok(Some(line)) = requests.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let result = match request["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": {},
                    "serverInfo": {"name": "fake", "version": "0"},
                }),
                Some("tools/call") => json!({"content": [{"type": "text", "text": "TEXT"}]}),
                _ => continue,
            };
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            let answer = format!("{answer}\n");
            let (begin, end) = answer.split_once("TEXT").unwrap_or((&answer, ""));
            let _ = answers.write_all(begin.as_bytes()).await;
            if !end.is_empty() {
                let piece = vec![b'x'; 1 << 16];
                while counted.load(Ordering::Relaxed) < bytes {
                    if answers.write_all(&piece).await.is_err() {
                        return;
                    }
                    counted.fetch_add(piece.len(), Ordering::Relaxed);
                }
            }
            if end.is_empty() || ends {
                let _ = answers.write_all(end.as_bytes()).await;
            }
        }
    });
    let process = Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(tokio::io::empty()),
        exit: Box::pin(std::future::pending()),
    };
    (Connection::with(process).await.unwrap(), sent)
}

#[tokio::test]
async fn endless_line_ends_connection() {
    let (connection, sent) = connected(64 * MIB, false).await;
    let called = connection.call("search", json!({}), HELLO).await;
    let error = called.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Dead);
    let expected = "the tool server has ended: it sent a line of more than 16 MiB";
    assert!(error.message.contains(expected), "{}", error.message);
    let sent = sent.load(Ordering::Relaxed) / MIB;
    assert!((15..32).contains(&sent), "{sent} MiB were taken");
    assert_eq!(connection.ping().await.unwrap_err().kind, ErrorKind::Dead);
}

#[tokio::test]
async fn long_line_arrives() {
    let (connection, _) = connected(15 * MIB, true).await;
    let called = connection.call("search", json!({}), HELLO).await;
    assert_eq!(called.unwrap().text.len(), 15 * MIB);
}

/// A server that ends at once, like one whose program could not be executed.
#[tokio::test]
async fn failed_start_has_plain_message() {
    let (stdin, _) = pipe::pipe().unwrap();
    let (_, stdout) = pipe::pipe().unwrap();
    let process = Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(&b"toolbox: Text file busy"[..]),
        exit: Box::pin(std::future::ready(Ok(126))),
    };
    let error = Connection::with(process).await.err().unwrap();
    assert_eq!(
        error.message,
        "talk to the sandbox: the tool server ended with code 126 before it answered (it printed: toolbox: Text file busy)"
    );
}

/// A compromised toolbox may send requests without reading the answers.
#[tokio::test]
async fn endless_requests_end_connection() {
    let (stdin, requests) = pipe::pipe().unwrap();
    let (mut answers, stdout) = pipe::pipe().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    tokio::spawn(async move {
        let mut requests = BufReader::new(requests).lines();
        let line = requests.next_line().await.unwrap().unwrap();
        let request: Value = serde_json::from_str(&line).unwrap();
        let result = json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {},
            "serverInfo": {"name": "fake", "version": "0"},
        });
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        answers
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .unwrap();
        while let Ok(Some(line)) = requests.next_line().await {
            if line.contains("tools/call") {
                break;
            }
        }
        let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
        let text = format!("{ping}\n");
        while counted.fetch_add(1, Ordering::Relaxed) < 1_000_000 {
            if answers.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let process = Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(tokio::io::empty()),
        exit: Box::pin(std::future::pending()),
    };
    let connection = Connection::with(process).await.unwrap();
    let called = connection.call("search", json!({}), HELLO).await;
    let message = called.unwrap_err().message;
    assert!(
        message.contains("it sent more messages than requested"),
        "{message}"
    );
    // The messages in the pipe and in the reader's buffer when the connection ended.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 10_000, "{sent} messages were taken");
}
