//! Tests with a lying index and greedy clients, without a sandbox.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use reqwest::{Client, Method, Response, StatusCode};
use sha2::{Digest, Sha256};

use super::*;
use crate::hex::hex;

/// Requests to an index: method, path, and whether they had a range.
type RequestLog = Arc<Mutex<Vec<(String, String, bool)>>>;

/// Serves one project whose page lists the files with the digests of `listed_files`, but sends the content of `sent`.
fn index(
    listed_files: &[(&'static str, Vec<u8>)],
    sent: &[(&'static str, Vec<u8>)],
) -> (u16, RequestLog) {
    let files: Vec<_> = listed_files
        .iter()
        .map(|(name, content)| {
            let sha256 = hex(&Sha256::digest(content));
            serde_json::json!({"filename": name, "url": format!("/{name}"), "hashes": {"sha256": sha256}})
        })
        .collect();
    let page = serde_json::json!({"files": files}).to_string().into_bytes();
    let sent = sent.to_vec();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = RequestLog::default();
    let all = requests.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines: Vec<String> = lines
                .map_while(|line| line.ok().filter(|line| !line.is_empty()))
                .collect();
            let Some(first) = lines.first() else { continue };
            let (method, rest) = first.split_once(' ').unwrap();
            let path = rest.split(' ').next().unwrap();
            let range = lines.iter().any(|l| l.to_lowercase().starts_with("range:"));
            lock(&all).push((method.to_owned(), path.to_owned(), range));
            let file = sent.iter().find(|(name, _)| path == format!("/{name}"));
            let (kind, body) = match file {
                Some((_, content)) => ("application/octet-stream", content),
                None => (page::JSON, &page),
            };
            // Servers that support ranges respond with a part like this.
            let (status, part) = match range {
                true => ("206 Partial Content", &body[..body.len().min(10)]),
                false => ("200 OK", body.as_slice()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                part.len()
            );
            let _ = stream.write_all(head.as_bytes());
            if method == "GET" {
                let _ = stream.write_all(part);
            }
        }
    });
    (port, requests)
}

struct Asker {
    egress: Egress,
    folder: tempfile::TempDir,
    client: Client,
    address: String,
    _port: HostPort,
}

impl Asker {
    async fn new(port: u16, most_kept: u64, most_fetched: u64) -> Asker {
        let folder = tempfile::tempdir().unwrap();
        let egress = Egress::new(&EgressSettings {
            cache: folder.path().to_owned(),
            max_cache_bytes: most_kept,
            max_download_bytes: most_fetched,
            index_url: Some(format!("http://127.0.0.1:{port}/simple")),
            ..EgressSettings::default()
        })
        .unwrap();
        let port = egress.listen().await.unwrap();
        let variables = egress.variables(&egress.gateway_through(&port));
        Asker {
            egress,
            folder,
            client: crate::http_client::builder().no_proxy().build().unwrap(),
            address: variables["PIP_INDEX_URL"].clone(),
            _port: port,
        }
    }

    async fn ask(&self, method: Method, file: &str, range: Option<&str>) -> Response {
        let (before, id) = self.address.split_once("/index/").unwrap();
        let id = id.split('/').next().unwrap();
        let address = format!("{before}/files/h/{id}/thing/{file}");
        let mut request = self.client.request(method, address);
        if let Some(range) = range {
            request = request.header("Range", range);
        }
        request.send().await.unwrap()
    }

    /// Returns the bytes of all stored files.
    fn stored_bytes(&self) -> u64 {
        let folder = self.folder.path().join("downloads");
        let folders = ["files", "pages", "aside"].map(|name| folder.join(name));
        let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
        files.map(|f| f.unwrap().metadata().unwrap().len()).sum()
    }
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 % 251) as u8).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_come_only_from_verified_files() {
    let right = bytes(50_000);
    let mut other = right.clone();
    // The altered byte lies outside the requested range.
    other[40_000] = 0;
    let listed_files = [("a-1.whl", right.clone()), ("b-1.whl", right.clone())];
    let sent = [("a-1.whl", right.clone()), ("b-1.whl", other)];
    let (port, requests) = index(&listed_files, &sent);
    let client = Asker::new(port, 1 << 30, 1 << 30).await;

    let answer = client
        .ask(Method::GET, "b-1.whl", Some("bytes=10-19"))
        .await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(answer.text().await.unwrap().contains("its sha256 is"));

    let head = client.ask(Method::HEAD, "a-1.whl", None).await;
    assert_eq!(head.headers()["accept-ranges"], "bytes");
    let ranges = ["bytes=10-19", "bytes=-10", "bytes=0-9", "bytes=49990-"];
    let answers = ranges.map(|range| client.ask(Method::GET, "a-1.whl", Some(range)));
    let answers = futures::future::join_all(answers).await;
    for (answer, from) in answers.into_iter().zip([10, 49_990, 0, 49_990]) {
        assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT);
        let range = answer.headers()["content-range"].to_str().unwrap();
        assert_eq!(range, format!("bytes {from}-{}/50000", from + 9));
        assert_eq!(answer.bytes().await.unwrap(), right[from..from + 10]);
    }
    let requests = lock(&requests).clone();
    let got = requests
        .iter()
        .filter(|(m, p, _)| m == "GET" && p == "/a-1.whl");
    assert_eq!(got.count(), 1, "{requests:?}");
    assert!(requests.iter().all(|(_, _, range)| !range), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn build_respects_download_limits() {
    const FILES: [&str; 6] = ["a.whl", "b.whl", "c.whl", "d.whl", "e.whl", "f.whl"];
    let files = FILES.map(|name| (name, [name.as_bytes(), &bytes(400_000)].concat()));
    let (port, _) = index(&files, &files);
    let client = Asker::new(port, 1_000_000, 2_100_000).await;
    let (last, first) = FILES.split_last().unwrap();
    for name in first {
        let answer = client.ask(Method::GET, name, None).await;
        assert_eq!(answer.bytes().await.unwrap().len(), 400_005);
        assert!(
            client.stored_bytes() < 1_500_000,
            "{}",
            client.stored_bytes()
        );
    }
    let answer = client.ask(Method::GET, last, None).await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(answer.text().await.unwrap().contains("limits.disk"));
    let notices = client.egress.take_notices().join("\n");
    assert!(notices.contains("limits.disk"), "{notices}");
    let Asker { egress, folder, .. } = &client;
    assert!(egress.finish() <= 1_000_000);
    assert!(client.stored_bytes() <= 1_000_000);
    // Opening the cache with a lower limit evicts files first.
    drop(Downloads::open(folder.path(), 500_000).unwrap());
    assert!(client.stored_bytes() <= 500_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn excess_connections_are_closed() {
    let (port, _) = index(&[], &[]);
    let client = Asker::new(port, 1 << 20, 1 << 20).await;
    let mut streams = Vec::new();
    for _ in 0..=CONNECTIONS {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", client._port.port));
        streams.push(stream.await.unwrap());
    }
    let ends = streams.iter_mut().map(|stream| {
        Box::pin(async move { tokio::io::AsyncReadExt::read(stream, &mut [0]).await })
    });
    let (end, _, _) = futures::future::select_all(ends).await;
    assert_eq!(end.unwrap(), 0);
    drop(streams);
    let all = client
        .egress
        .inner
        .connections
        .acquire_many(CONNECTIONS as u32);
    drop(all.await.unwrap());
    let answer = client.ask(Method::GET, "a-1.whl", None).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}
