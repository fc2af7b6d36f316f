//! A minimal HTTP server on the loopback interface, with one response per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct Request {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    /// Returns whether a client asks for the list of models, as a run does before it starts.
    fn lists_models(&self) -> bool {
        self.method == "GET" && self.path.ends_with("/models")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(n, _)| n == name);
        header.map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
pub(crate) struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub(crate) fn json(value: serde_json::Value) -> Self {
        Response {
            status: 200,
            body: value.to_string(),
            ..Response::default()
        }
    }

    pub(crate) fn status(status: u16) -> Self {
        Response {
            status,
            body: format!("{{\"message\": \"status {status}\"}}"),
            ..Response::default()
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

pub(crate) struct MockServer {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl MockServer {
    /// Starts a server that answers one request at a time until the test process ends.
    pub(crate) fn start(answer: impl Fn(&Request) -> Response + Send + 'static) -> MockServer {
        let answer = Mutex::new(answer);
        MockServer::start_parallel(move |request| answer.lock().unwrap()(request))
    }

    /// Starts a server that answers concurrent requests.
    pub(crate) fn start_parallel(
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> MockServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let server = MockServer {
            url,
            seen: requests.clone(),
        };
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, requests) = (answer.clone(), requests.clone());
                std::thread::spawn(move || serve(stream.unwrap(), answer.as_ref(), &requests));
            }
        });
        server
    }

    /// Returns a value for each request so far, oldest first, except for lists of models.
    pub(crate) fn requests<T>(&self, look: impl Fn(&Request) -> T) -> Vec<T> {
        let seen = self.seen.lock().unwrap();
        let calls = seen.iter().filter(|request| !request.lists_models());
        calls.map(look).collect()
    }

    /// Returns a value for each request so far, oldest first.
    pub(crate) fn all_requests<T>(&self, look: impl Fn(&Request) -> T) -> Vec<T> {
        self.seen.lock().unwrap().iter().map(look).collect()
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(&Request) -> Response,
    requests: &Mutex<Vec<Request>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = (&mut reader).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let headers = headers(lines);
    let mut request = Request {
        method,
        path,
        headers,
        body: String::new(),
    };
    if let Some(length) = request.header("content-length") {
        let length = length.parse().unwrap();
        reader
            .take(length)
            .read_to_string(&mut request.body)
            .unwrap();
    }
    let response = match request.lists_models() {
        true => Response::status(404),
        false => answer(&request),
    };
    requests.lock().unwrap().push(request);
    let mut head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {}\r\n",
        response.status,
        response.body.len()
    );
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // The client may have closed the connection.
    let _ = stream.write_all(format!("{head}\r\n{}", response.body).as_bytes());
}

/// Parses headers up to the empty line, with names in lower case.
pub(crate) fn headers(lines: impl Iterator<Item = String>) -> Vec<(String, String)> {
    lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        })
        .collect()
}
