//! Files on their way to a sandbox. The last part of a file is held back until its digest is known to be right: a file
//! that was tampered with never arrives whole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::downloads::{hex, touch};
use super::serve::{Body, text, whole};
use super::upstream::shown;
use super::{Inner, lock};

const CHUNK: usize = 1 << 18;

/// A file that a page names.
pub struct Wanted {
    pub name: String,
    pub url: Url,
    /// Without one nothing is kept.
    pub sha256: Option<String>,
    pub path: Option<PathBuf>,
}

type Parts = mpsc::Sender<io::Result<Bytes>>;

fn body(parts: mpsc::Receiver<io::Result<Bytes>>) -> Body {
    let stream = futures::stream::unfold(parts, |mut parts| async move {
        let part = parts.recv().await?;
        Some((part.map(Frame::data), parts))
    });
    StreamBody::new(stream).boxed_unsync()
}

/// What passes is read by the digest; what is held back goes when it is right.
struct Checked<'a> {
    wanted: Option<&'a str>,
    digest: Sha256,
    held: Option<Bytes>,
}

impl<'a> Checked<'a> {
    fn new(wanted: Option<&'a str>) -> Checked<'a> {
        Checked {
            wanted,
            digest: Sha256::new(),
            held: None,
        }
    }

    /// What may go now.
    fn pass(&mut self, part: Bytes) -> Option<Bytes> {
        if self.wanted.is_none() {
            return Some(part);
        }
        self.digest.update(&part);
        self.held.replace(part)
    }

    /// The last part, or the digest that was found instead.
    fn end(self) -> Result<Option<Bytes>, String> {
        let Some(wanted) = self.wanted else {
            return Ok(None);
        };
        let found = hex(&self.digest.finalize());
        if found == wanted {
            Ok(self.held)
        } else {
            Err(found)
        }
    }
}

/// From the host's cache, if it is there. Its digest is looked at once a build, before anything of it goes.
pub async fn kept(
    inner: &Inner,
    wanted: &Wanted,
    range: Option<&HeaderValue>,
    head: bool,
) -> Option<Response<Body>> {
    let (path, sha256) = (wanted.path.clone()?, wanted.sha256.clone()?);
    let mut file = File::open(&path).ok()?;
    touch(&file);
    let length = file.metadata().ok()?.len();
    if !lock(&inner.checked).contains(&path) {
        let (checked, right) = tokio::task::spawn_blocking(move || {
            let mut digest = Sha256::new();
            let right = io::copy(&mut file, &mut digest).is_ok();
            (file, right && hex(&digest.finalize()) == sha256)
        })
        .await
        .ok()?;
        if !right {
            // Whoever asks again gets it from the index.
            let _ = std::fs::remove_file(&path);
            return None;
        }
        file = checked;
        lock(&inner.checked).insert(path);
    }
    let range = match range {
        Some(range) => match span(range.to_str().ok()?, length) {
            Some(span) => Some(span),
            None => return Some(text(StatusCode::RANGE_NOT_SATISFIABLE, "no such range")),
        },
        None => None,
    };
    let (from, to) = range.unwrap_or((0, length));
    let mut response = if head {
        whole(Bytes::new())
    } else {
        let (parts, coming) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(file, from, to - from, &parts) {
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
        headers.insert(header::CONTENT_RANGE, HeaderValue::from_str(&text).ok()?);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Some(response)
}

fn read(mut file: File, from: u64, mut left: u64, parts: &Parts) -> io::Result<()> {
    file.seek(SeekFrom::Start(from))?;
    while left > 0 {
        let size = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let mut buffer = vec![0; size];
        file.read_exact(&mut buffer)?;
        left -= size as u64;
        if parts.blocking_send(Ok(buffer.into())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// `bytes=a-b`, `bytes=a-`, `bytes=-n` as the first byte and the one behind the last.
fn span(range: &str, length: u64) -> Option<(u64, u64)> {
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

/// From the index, and into the host's cache on the way.
pub fn fetched(inner: Arc<Inner>, wanted: Wanted, response: reqwest::Response) -> Response<Body> {
    let length = response.headers().get(header::CONTENT_LENGTH).cloned();
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
        if let Err(error) = fetch(&of, &wanted, response, &parts).await {
            of.note(format!("package index: {}: {error}", shown(&wanted.url)));
            let _ = parts.send(Err(error)).await;
        }
    });
    answer
}

async fn fetch(
    inner: &Inner,
    wanted: &Wanted,
    mut response: reqwest::Response,
    parts: &Parts,
) -> io::Result<()> {
    let mut aside = match &wanted.path {
        Some(_) => Some(inner.downloads.aside()?),
        None => None,
    };
    let mut checked = Checked::new(wanted.sha256.as_deref());
    while let Some(part) = response.chunk().await.map_err(io::Error::other)? {
        if let Some(aside) = &mut aside {
            aside.write_all(&part)?;
        }
        if let Some(part) = checked.pass(part)
            && parts.send(Ok(part)).await.is_err()
        {
            return Ok(());
        }
    }
    let last = checked.end().map_err(|found| {
        let text = format!("its sha256 is {found}, which is not what the index says");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    if let (Some(aside), Some(path)) = (aside, &wanted.path) {
        inner.downloads.keep(aside, path)?;
    }
    if let Some(last) = last {
        let _ = parts.send(Ok(last)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(span("bytes=0-9", 100), Some((0, 10)));
        assert_eq!(span("bytes=90-200", 100), Some((90, 100)));
        assert_eq!(span("bytes=5-", 100), Some((5, 100)));
        assert_eq!(span("bytes=-5", 100), Some((95, 100)));
        assert_eq!(span("bytes=-500", 100), Some((0, 100)));
        for wrong in [
            "bytes=100-",
            "bytes=9-3",
            "bytes=-0",
            "bytes=a-b",
            "items=0-1",
            "bytes=0-18446744073709551615x",
        ] {
            assert_eq!(span(wrong, 100), None, "{wrong}");
        }
    }

    #[test]
    fn the_last_part_waits_for_the_digest() {
        let digest = hex(&Sha256::digest(b"one two"));
        let mut checked = Checked::new(Some(&digest));
        assert_eq!(checked.pass("one ".into()), None);
        assert_eq!(checked.pass("two".into()), Some("one ".into()));
        assert_eq!(checked.end(), Ok(Some("two".into())));
        let mut checked = Checked::new(Some(&digest));
        assert_eq!(checked.pass("one too".into()), None);
        assert!(checked.end().is_err());
    }
}
