//! A loopback server with scripted answers, down to single bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) enum Act {
    /// An answer with status, headers and body.
    Answer(u16, Vec<(String, String)>, String),
    /// The events of a stream; `cut` breaks the connection after them.
    Stream { events: Vec<String>, cut: bool },
    /// A very long body of this type: the piece, repeated up to this number of bytes.
    Flood(&'static str, Vec<u8>, usize),
    /// Accepts the request and sends nothing.
    Silence,
    /// Closes the connection without an answer.
    HangUp,
}

impl Act {
    pub(super) fn json(status: u16, body: &Value) -> Act {
        Act::Answer(
            status,
            vec![("content-type".to_owned(), "application/json".to_owned())],
            body.to_string(),
        )
    }

    pub(super) fn refuse(status: u16, message: &str) -> Act {
        Act::json(status, &serde_json::json!({"error": {"message": message}}))
    }

    pub(super) fn stream(events: &[Value]) -> Act {
        Act::Stream {
            events: events
                .iter()
                .map(Value::to_string)
                .chain(["[DONE]".to_owned()])
                .collect(),
            cut: false,
        }
    }
}

/// A request that the server received.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub path: String,
    pub headers: String,
    pub body: Value,
}

pub(super) struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    flooded: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server that answers requests in the order of `script`, then refuses further ones.
    pub(super) async fn new(script: Vec<Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let flooded = Arc::new(AtomicUsize::new(0));
        let sent = Arc::clone(&flooded);
        let script = Arc::new(Mutex::new(script.into_iter()));
        tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    return;
                };
                let (log, script) = (Arc::clone(&log), Arc::clone(&script));
                let sent = Arc::clone(&sent);
                tokio::spawn(async move {
                    let _ = serve(socket, &log, &script, &sent).await;
                });
            }
        });
        Server { url, seen, flooded }
    }

    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the bytes sent in floods.
    pub(super) fn flooded(&self) -> usize {
        self.flooded.load(Ordering::Relaxed)
    }
}

async fn serve(
    mut socket: TcpStream,
    log: &Mutex<Vec<ReceivedRequest>>,
    script: &Mutex<std::vec::IntoIter<Act>>,
    flooded: &AtomicUsize,
) -> std::io::Result<()> {
    let mut input = Vec::new();
    let head_end = loop {
        if let Some(end) = input.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&input[..head_end]).to_lowercase();
    let length: usize = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length:"))
        .map_or(0, |n| n.trim().parse().unwrap());
    while input.len() < head_end + length {
        socket.read_buf(&mut input).await?;
    }
    let first = String::from_utf8_lossy(&input[..head_end])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    log.lock().unwrap().push(ReceivedRequest {
        path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
        headers: head,
        body: serde_json::from_slice(&input[head_end..]).unwrap_or(Value::Null),
    });
    let act = script.lock().unwrap().next();
    match act.unwrap_or_else(|| Act::refuse(418, "the script is over")) {
        Act::Answer(status, headers, body) => {
            let mut answer = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
            for (name, value) in headers {
                answer.push_str(&format!("{name}: {value}\r\n"));
            }
            answer.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
            socket.write_all(answer.as_bytes()).await?;
        }
        Act::Stream { events, cut } => {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")
                .await?;
            for event in events {
                let data = format!("data: {event}\n\n");
                let chunk = format!("{:x}\r\n{data}\r\n", data.len());
                socket.write_all(chunk.as_bytes()).await?;
                socket.flush().await?;
            }
            if !cut {
                socket.write_all(b"0\r\n\r\n").await?;
            }
        }
        Act::Flood(kind, piece, most) => {
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            socket.write_all(head.as_bytes()).await?;
            let pieces = piece.repeat((1 << 16) / piece.len() + 1);
            while flooded.load(Ordering::Relaxed) < most {
                socket.write_all(&pieces).await?;
                flooded.fetch_add(pieces.len(), Ordering::Relaxed);
            }
        }
        Act::Silence => tokio::time::sleep(Duration::from_secs(3600)).await,
        Act::HangUp => {}
    }
    socket.shutdown().await
}
