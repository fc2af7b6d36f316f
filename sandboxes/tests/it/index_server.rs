//! A package index on the host's loopback that serves the wheels of a folder, or responses that a test defines.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

/// A request as received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexRequest {
    pub method: String,
    pub path: String,
    pub authorization: Option<String>,
}

pub(crate) struct Answer {
    pub status: &'static str,
    /// Header lines, such as `Content-Type: text/html`.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: &'static str, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
        Answer {
            status,
            headers: vec![format!("Content-Type: {kind}")],
            body: body.into(),
        }
    }

    pub(crate) fn text(body: &str) -> Answer {
        Answer::new("200 OK", "text/plain", body)
    }

    pub(crate) fn not_found() -> Answer {
        Answer::new("404 Not Found", "text/plain", "")
    }

    pub(crate) fn to(address: &str) -> Answer {
        let mut answer = Answer::new("302 Found", "text/plain", "");
        answer.headers.push(format!("Location: {address}"));
        answer
    }
}

pub(crate) struct Server {
    pub port: u16,
    asked: Arc<Mutex<Vec<IndexRequest>>>,
}

impl Server {
    /// Starts a server that runs as long as the test.
    pub(crate) fn start(
        answer: impl Fn(&IndexRequest) -> Answer + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<IndexRequest>>> = Arc::default();
        let (answer, all) = (Arc::new(answer), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, all) = (answer.clone(), all.clone());
                std::thread::spawn(move || serve(stream, answer.as_ref(), &all));
            }
        });
        Server { port, asked }
    }

    /// Starts an index of the wheels in a folder, optionally with a login.
    pub(crate) fn index(folder: PathBuf, login: Option<&'static str>) -> Server {
        Server::start(move |request| {
            let authorization = login.map(|login| {
                use base64::Engine;
                let text = base64::engine::general_purpose::STANDARD.encode(login);
                format!("Basic {text}")
            });
            if authorization.is_some() && request.authorization != authorization {
                return Answer::new("401 Unauthorized", "text/plain", "");
            }
            wheels(&folder, request)
        })
    }

    pub(crate) fn requests(&self) -> Vec<IndexRequest> {
        self.asked.lock().unwrap().clone()
    }
}

/// Serves `/simple/NAME/` and `/files/NAME`.
pub(crate) fn wheels(folder: &std::path::Path, request: &IndexRequest) -> Answer {
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["simple", project] => {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let files: Vec<_> = entries
                .filter_map(|entry| {
                    let name = entry.file_name().into_string().ok()?;
                    let own = name.split('-').next()?.replace('_', "-") == *project;
                    let content = own.then(|| std::fs::read(entry.path()).unwrap())?;
                    let digest: String = Sha256::digest(&content)
                        .iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect();
                    Some(serde_json::json!({
                        "filename": name,
                        "url": format!("../../files/{name}"),
                        "hashes": {"sha256": digest},
                        "upload-time": "2020-01-01T00:00:00Z",
                    }))
                })
                .collect();
            if files.is_empty() {
                return Answer::not_found();
            }
            let page = serde_json::json!({
                "meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": files,
            });
            Answer::new(
                "200 OK",
                "application/vnd.pypi.simple.v1+json",
                page.to_string(),
            )
        }
        ["files", name] => match std::fs::read(folder.join(name)) {
            Ok(content) => Answer::new("200 OK", "application/octet-stream", content),
            Err(_) => Answer::not_found(),
        },
        _ => Answer::not_found(),
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(&IndexRequest) -> Answer,
    all: &Mutex<Vec<IndexRequest>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else {
        return;
    };
    let mut words = first.split(' ').map(str::to_owned);
    let mut request = IndexRequest {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        authorization: None,
    };
    for line in lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("authorization")
        {
            request.authorization = Some(value.to_owned());
        }
    }
    all.lock().unwrap().push(request.clone());
    let Answer {
        status,
        headers,
        body,
    } = answer(&request);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n\r\n",
        body.len(),
        headers.join("\r\n")
    );
    let _ = stream.write_all(head.as_bytes());
    if request.method != "HEAD" {
        let _ = stream.write_all(&body);
    }
}
