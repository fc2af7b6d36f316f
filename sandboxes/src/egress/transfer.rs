//! Transfer of files to a sandbox.
//!
//! The last part of a file is held back until its digest is verified, so a file that was tampered with never arrives
//! complete. A range is sent only after the whole file was verified.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::downloads::touch;
use super::response::{Body, full_response, text};
use super::upstream::{Refusal, redacted};
use super::{Inner, lock};
use crate::hex::hex;

const CHUNK: usize = 1 << 18;

/// A request for a file that a page lists.
pub(super) struct FileRequest {
    pub name: String,
    pub url: Url,
    /// Expected digest. Without one, the file is not cached.
    pub sha256: Option<String>,
    pub path: Option<PathBuf>,
}

type Parts = mpsc::Sender<io::Result<Bytes>>;

fn body(mut parts: mpsc::Receiver<io::Result<Bytes>>) -> Body {
    let stream = futures::stream::poll_fn(move |context| parts.poll_recv(context));
    StreamBody::new(stream.map_ok(Frame::data)).boxed_unsync()
}

/// A digest check of data in transit, which holds the last part back until the digest matches.
struct DigestCheck<'a> {
    wanted: Option<&'a str>,
    digest: Sha256,
    held: Option<Bytes>,
}

impl<'a> DigestCheck<'a> {
    fn new(wanted: Option<&'a str>) -> DigestCheck<'a> {
        DigestCheck {
            wanted,
            digest: Sha256::new(),
            held: None,
        }
    }

    /// Adds a part and returns the part that may be sent now.
    fn pass(&mut self, part: Bytes) -> Option<Bytes> {
        if self.wanted.is_none() {
            return Some(part);
        }
        self.digest.update(&part);
        self.held.replace(part)
    }

    /// Returns the last part, or the wrong digest.
    fn end(self) -> Result<Option<Bytes>, String> {
        let Some(expected) = self.wanted else {
            return Ok(None);
        };
        let actual = hex(&self.digest.finalize());
        if actual == expected {
            Ok(self.held)
        } else {
            Err(actual)
        }
    }
}

/// Serves a file from the host's cache if it is there. Its digest is verified once a build, before any of it is sent.
pub(super) async fn serve_cached(
    inner: &Inner,
    file_request: &FileRequest,
    range: Option<&HeaderValue>,
    head: bool,
) -> Option<Response<Body>> {
    let file = verified_file(inner, file_request).await?;
    Some(answer(inner, file, range, head).await)
}

async fn verified_file(inner: &Inner, file_request: &FileRequest) -> Option<File> {
    let (path, sha256) = (file_request.path.clone()?, file_request.sha256.clone()?);
    let mut file = File::open(&path).ok()?;
    touch(&file);
    if lock(&inner.checked).contains(&path) {
        return Some(file);
    }
    let (file, right) = tokio::task::spawn_blocking(move || {
        let mut digest = Sha256::new();
        let right = io::copy(&mut file, &mut digest).is_ok();
        (file, right && hex(&digest.finalize()) == sha256)
    })
    .await
    .ok()?;
    if !right {
        // The next request fetches it from the index.
        let _ = std::fs::remove_file(&path);
        return None;
    }
    inner.remember_checked(path);
    Some(file)
}

/// Builds the response for a verified file.
async fn answer(
    inner: &Inner,
    file: File,
    range: Option<&HeaderValue>,
    head: bool,
) -> Response<Body> {
    let failed = || text(StatusCode::INTERNAL_SERVER_ERROR, "could not read the file");
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else {
        return failed();
    };
    let range = match range.map(|range| parse_range(range.to_str().unwrap_or_default(), length)) {
        Some(None) => return text(StatusCode::RANGE_NOT_SATISFIABLE, "invalid range"),
        Some(span) => span,
        None => None,
    };
    let (from, to) = range.unwrap_or((0, length));
    let mut response = if head {
        full_response(Bytes::new())
    } else {
        let Ok(turn) = inner.readers.clone().acquire_owned().await else {
            return failed();
        };
        let (parts, coming) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(file, from, to - from, &parts, turn) {
                let _ = parts.blocking_send(Err(error));
            }
        });
        Response::new(body(coming))
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(to - from));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    if range.is_some() {
        let text = format!("bytes {from}-{}/{length}", to.saturating_sub(1));
        if let Ok(text) = HeaderValue::from_str(&text) {
            headers.insert(header::CONTENT_RANGE, text);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

fn read(
    mut file: File,
    from: u64,
    mut remaining: u64,
    parts: &Parts,
    _turn: OwnedSemaphorePermit,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(from))?;
    while remaining > 0 {
        let size = CHUNK.min(usize::try_from(remaining).unwrap_or(CHUNK));
        let mut buffer = vec![0; size];
        file.read_exact(&mut buffer)?;
        remaining -= size as u64;
        if parts.blocking_send(Ok(buffer.into())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Parses `bytes=a-b`, `bytes=a-` or `bytes=-n`. Returns the first byte and the one after the last.
fn parse_range(range: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let span = match (first.trim(), last.trim()) {
        ("", last) => (length.saturating_sub(last.parse().ok()?), length),
        (first, "") => (first.parse().ok()?, length),
        (first, last) => {
            let last: u64 = last.parse().ok()?;
            (first.parse().ok()?, last.checked_add(1)?.min(length))
        }
    };
    (span.0 < span.1).then_some(span)
}

/// Serves a file from the index, and stores it in the host's cache on the way.
pub(super) fn serve_fetched(
    inner: Arc<Inner>,
    file_request: FileRequest,
    response: reqwest::Response,
) -> Response<Body> {
    let length = response.headers().get(header::CONTENT_LENGTH).cloned();
    // A size that is known in advance is rejected with a response, because clients would retry an interrupted transfer.
    if let Err(error) = inner.check_budget(response.content_length().unwrap_or(0)) {
        let why = format!("{}: {error}", redacted(&file_request.url));
        inner.note(format!("package index: {why}"));
        return text(StatusCode::BAD_GATEWAY, &why);
    }
    let (parts, coming) = mpsc::channel(16);
    let mut answer = Response::new(body(coming));
    if let Some(length) = length {
        answer.headers_mut().insert(header::CONTENT_LENGTH, length);
    }
    let kind = HeaderValue::from_static("application/octet-stream");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    let of = inner.clone();
    inner.spawn(async move {
        let _turn = of.at_once.acquire().await;
        if let Err(error) = fetch(&of, &file_request, response, Some(&parts)).await {
            of.note(format!(
                "package index: {}: {error}",
                redacted(&file_request.url)
            ));
            let _ = parts.send(Err(error)).await;
        }
    });
    answer
}

/// Serves a range of an uncached file with a known digest. The whole file is fetched and verified first, and other
/// requests for its ranges wait for that.
pub(super) async fn range(
    inner: Arc<Inner>,
    file_request: FileRequest,
    range: HeaderValue,
    whole: impl Future<Output = Result<reqwest::Response, Refusal>> + Send + 'static,
) -> Result<Response<Body>, Refusal> {
    let failed = |why: &str| Refusal::Failed(format!("{}: {why}", redacted(&file_request.url)));
    let unfinished = failed("the download was interrupted");
    let turn = inner.download_lock(file_request.path.as_deref());
    let (sender, file) = tokio::sync::oneshot::channel();
    let of = inner.clone();
    // A client that timed out retries, and by then the file is in the cache.
    inner.spawn(async move {
        let _one = turn.lock().await;
        if let Some(file) = verified_file(&of, &file_request).await {
            let _ = sender.send(Ok(file));
            return;
        }
        let _turn = of.at_once.acquire().await;
        let file = match whole.await {
            Ok(response) if response.status() == StatusCode::OK => {
                let fetched = fetch(&of, &file_request, response, None).await;
                let file = fetched.and_then(|file| file.ok_or_else(|| io::Error::other("")));
                file.map_err(|e| Refusal::Failed(format!("{}: {e}", redacted(&file_request.url))))
            }
            Ok(response) => Err(Refusal::Failed(format!(
                "{} returned {}",
                redacted(&file_request.url),
                response.status()
            ))),
            Err(refusal) => Err(refusal),
        };
        let _ = sender.send(file);
    });
    let file = file.await.unwrap_or(Err(unfinished))?;
    Ok(answer(&inner, file, Some(&range), false).await)
}

/// Fetches a file and sends its parts. Returns the cached file, if it was stored.
async fn fetch(
    inner: &Inner,
    file_request: &FileRequest,
    mut response: reqwest::Response,
    parts: Option<&Parts>,
) -> io::Result<Option<File>> {
    let mut aside = match &file_request.path {
        Some(_) => Some(inner.downloads.temporary_file()?),
        None => None,
    };
    let mut checked = DigestCheck::new(file_request.sha256.as_deref());
    while let Some(part) = response.chunk().await.map_err(io::Error::other)? {
        inner.record_download(part.len())?;
        if let Some(aside) = &mut aside {
            aside.write_all(&part)?;
        }
        if let Some(part) = checked.pass(part)
            && let Some(parts) = parts
            && parts.send(Ok(part)).await.is_err()
        {
            return Ok(None);
        }
    }
    let last = checked.end().map_err(|digest| {
        let text = format!("its sha256 is {digest}, which does not match the index");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    let mut file = None;
    if let (Some(aside), Some(path)) = (aside, &file_request.path) {
        file = Some(inner.downloads.store(aside, path)?);
        inner.remember_checked(path.clone());
    }
    if let (Some(last), Some(parts)) = (last, parts) {
        let _ = parts.send(Ok(last)).await;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_ranges_parse() {
        assert_eq!(parse_range("bytes=0-9", 100), Some((0, 10)));
        assert_eq!(parse_range("bytes=90-200", 100), Some((90, 100)));
        assert_eq!(parse_range("bytes=5-", 100), Some((5, 100)));
        assert_eq!(parse_range("bytes=-5", 100), Some((95, 100)));
        assert_eq!(parse_range("bytes=-500", 100), Some((0, 100)));
        for wrong in [
            "bytes=100-",
            "bytes=9-3",
            "bytes=-0",
            "bytes=a-b",
            "items=0-1",
            "bytes=0-18446744073709551615x",
        ] {
            assert_eq!(parse_range(wrong, 100), None, "{wrong}");
        }
    }

    #[test]
    fn last_part_waits_for_digest() {
        let digest = hex(&Sha256::digest(b"one two"));
        let mut checked = DigestCheck::new(Some(&digest));
        assert_eq!(checked.pass("one ".into()), None);
        assert_eq!(checked.pass("two".into()), Some("one ".into()));
        assert_eq!(checked.end(), Ok(Some("two".into())));
        let mut checked = DigestCheck::new(Some(&digest));
        assert_eq!(checked.pass("one too".into()), None);
        assert!(checked.end().is_err());
    }
}
