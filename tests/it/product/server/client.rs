//! A minimal HTTP client with one request per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::server::headers;

#[derive(Debug)]
pub(super) struct Reply {
    pub status: u16,
    /// Header names in lower case, with their values.
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(n, _)| n == name);
        header.map(|(_, value)| value.as_str())
    }
}

/// An event of an event stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamEvent {
    pub id: Option<i64>,
    pub kind: String,
    pub data: String,
}

#[derive(Debug, Clone)]
pub(super) struct Client {
    pub address: String,
}

impl Client {
    pub(super) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "")
    }

    /// Sends a GET request. Returns `None` if the server does not respond.
    pub(super) fn try_get(&self, path: &str) -> Option<Reply> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines().map(str::to_owned);
        Some(Reply {
            status: lines.next()?.split(' ').nth(1)?.parse().ok()?,
            headers: headers(lines),
            body: body.to_owned(),
        })
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Reply {
        let kind = [("content-type", "application/json")];
        self.send("POST", path, &kind, &body.to_string())
    }

    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut reader = self.open(method, path, headers, body);
        let (status, headers) = head(&mut reader);
        let mut body = String::new();
        reader.read_to_string(&mut body).unwrap();
        Reply {
            status,
            headers,
            body,
        }
    }

    /// Returns the events of a run after a number, until the stream ends or `enough` returns true.
    pub(super) fn follow(
        &self,
        run: &str,
        after: i64,
        enough: impl Fn(&StreamEvent) -> bool,
    ) -> Vec<StreamEvent> {
        let after = after.to_string();
        let headers = [("last-event-id", after.as_str())];
        let mut reader = self.open("GET", &format!("/v1/runs/{run}/events"), &headers, "");
        let (status, _) = head(&mut reader);
        assert_eq!(status, 200);
        let mut events = Vec::new();
        let mut event = StreamEvent {
            id: None,
            kind: String::new(),
            data: String::new(),
        };
        for line in reader.lines().map_while(Result::ok) {
            match line.split_once(": ") {
                Some(("id", id)) => event.id = Some(id.parse().unwrap()),
                Some(("event", kind)) => event.kind = kind.to_owned(),
                Some(("data", data)) => event.data.push_str(data),
                _ if line.is_empty() && !event.kind.is_empty() => {
                    events.push(event.clone());
                    if enough(&event) {
                        break;
                    }
                    event.id = None;
                    event.kind.clear();
                    event.data.clear();
                }
                _ => {}
            }
        }
        events
    }

    /// Sends a request and returns the connection, to read the response from.
    pub(super) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(240)))
            .unwrap();
        // With HTTP/1.0 the response has no chunks, and the connection closes after it.
        let mut request = format!(
            "{method} {path} HTTP/1.0\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }
}

fn head(reader: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut lines = reader.lines().map_while(Result::ok);
    let first = lines.next().expect("an answer");
    let status = first.split(' ').nth(1).unwrap().parse().unwrap();
    (status, headers(lines))
}
