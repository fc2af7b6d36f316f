//! A package index for sandboxes, with pages and files of the real indexes. It serves a file only if a page lists it.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use reqwest::Url;

use super::downloads::{Page, key};
use super::page::{self, HTML, JSON};
use super::pages::{CachedPage, PageBody};
use super::response::{Body, full_response, text};
use super::transfer::{self, FileRequest};
use super::upstream::{Refusal, redacted};
use super::{Index, Inner, forward};
use crate::http_client::percent_decoded;

/// Maximum bytes of a page.
const MAX_PAGE_LEN: usize = 48 << 20;
/// Size above which a page counts as long. Such pages are rare, and only a few are read at the same time.
const LONG_PAGE: usize = 1 << 20;

/// `Accept` header for clients that read JSON. Others, such as an old pip, get HTML.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01";
const ACCEPT_HTML: &str = "application/vnd.pypi.simple.v1+html, text/html;q=0.9";

/// The status and the reason if a page is not available.
type IndexFailure = (StatusCode, String);

/// Handles `GET …/index/ID/simple/PROJECT/`.
pub(super) async fn page(
    inner: &Inner,
    id: &str,
    project: &str,
    headers: &HeaderMap,
) -> Response<Body> {
    let accepts = headers.get(header::ACCEPT);
    let json = accepts.is_some_and(|accept| {
        let accept = String::from_utf8_lossy(accept.as_bytes()).to_lowercase();
        accept.contains("vnd.pypi.simple.v1+json") || accept.contains("simple.latest+json")
    });
    match find(inner, id, project, json).await {
        Ok(held) => {
            let kind = if held.page.head.json { JSON } else { HTML };
            let mut response = full_response(Bytes::from_owner(PageBody(held)));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            let fresh = HeaderValue::from_static("max-age=600");
            headers.insert(header::CACHE_CONTROL, fresh);
            response
        }
        Err((status, why)) => text(status, &why),
    }
}

async fn find(
    inner: &Inner,
    id: &str,
    project: &str,
    json: bool,
) -> Result<Arc<CachedPage>, IndexFailure> {
    let Some(index) = inner.indexes.iter().find(|index| index.id == id) else {
        return Err(nothing());
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if project.is_empty() || project.starts_with('.') || !project.chars().all(fits) {
        return Err(nothing());
    }
    let name = key(&[&redacted(&index.url), project, form_of(json)]);
    if let Some(page) = inner.pages.get(&name) {
        return Ok(page);
    }
    let (downloads, of) = (inner.downloads.clone(), name.clone());
    let cached_page = {
        let _turn = inner.reading.acquire().await;
        tokio::task::spawn_blocking(move || downloads.page(&of)).await
    };
    let cached_page = cached_page.ok().flatten();
    let (page, new) = match cached_page {
        Some(page) if inner.offline || page.is_fresh() => (page, false),
        None if inner.offline => {
            inner.note(format!(
                "package index: {project} is not in the cache, and the build is offline"
            ));
            return Err(nothing());
        }
        cached_page => (fetch(inner, index, project, json, cached_page).await?, true),
    };
    let Some(page) = inner.pages.insert(name.clone(), page).await else {
        let why = "too many pages of package indexes are being read";
        return Err((StatusCode::SERVICE_UNAVAILABLE, why.to_owned()));
    };
    if new {
        let (downloads, held) = (inner.downloads.clone(), page.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = downloads.store_page(&name, &held.page) {
                tracing::warn!(%error, "could not store a page of a package index");
            }
        });
    }
    Ok(page)
}

async fn fetch(
    inner: &Inner,
    index: &Index,
    project: &str,
    json: bool,
    cached_page: Option<Page>,
) -> Result<Page, IndexFailure> {
    let bad = |why: String| {
        inner.note(format!("package index: {why}"));
        (StatusCode::BAD_GATEWAY, why)
    };
    let _turn = inner.at_once.acquire().await;
    let url = index.url.join(&format!("{project}/"));
    let url = url.map_err(|e| bad(e.to_string()))?;
    let mut headers = HeaderMap::new();
    let accept = if json { ACCEPT } else { ACCEPT_HTML };
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    let etag = cached_page
        .as_ref()
        .and_then(|page| page.head.etag.as_deref());
    if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
        headers.insert(header::IF_NONE_MATCH, etag);
    }
    let mut response = inner
        .upstream
        .get(
            &Method::GET,
            url.clone(),
            &headers,
            Some(&index.url),
            &inner.hosts,
        )
        .await
        .map_err(|refusal| failed(inner, refusal))?;
    let status = response.status();
    if let (StatusCode::NOT_MODIFIED, Some(mut page)) = (status, cached_page) {
        page.renew();
        return Ok(page);
    }
    if status == StatusCode::NOT_FOUND || status == StatusCode::GONE {
        return Err(nothing());
    }
    if !status.is_success() {
        let why = format!("{} returned {status}", redacted(&url));
        inner.note(format!("package index: {why}"));
        return Err((status, why));
    }
    let (etag, kind) = {
        let text = |name: HeaderName| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        (text(header::ETAG), text(header::CONTENT_TYPE))
    };
    let is_json = kind.is_some_and(|kind| kind.contains("json"));
    // Relative URLs start at the target of the redirects.
    let base = response.url().clone();
    let mut body = Vec::new();
    let mut long = None;
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_PAGE_LEN => {
                inner
                    .record_download(chunk.len())
                    .map_err(|e| bad(e.to_string()))?;
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Err(bad(format!("{} is too large", redacted(&url)))),
            Ok(None) => break,
            Err(error) => return Err(bad(format!("{} was cut off: {error}", redacted(&url)))),
        }
        if body.len() > LONG_PAGE && long.is_none() {
            long = Some(inner.long_pages.acquire().await);
        }
    }
    let place = format!(
        "../../../../files/{}/{}/{project}/",
        form_of(json),
        index.id
    );
    let _reading = inner.reading.acquire().await;
    let read = tokio::task::spawn_blocking(move || page::rewrite(&body, is_json, &base, &place));
    let read = read.await.map_err(|e| bad(e.to_string()))?;
    let (body, files) = read.map_err(|why| bad(format!("{}: {why}", redacted(&url))))?;
    Ok(Page::new(etag, is_json, files, body))
}

fn nothing() -> IndexFailure {
    (StatusCode::NOT_FOUND, "unknown project".to_owned())
}

/// Returns the form of a page as a part of addresses: JSON or HTML.
fn form_of(json: bool) -> &'static str {
    if json { "j" } else { "h" }
}

fn failed(inner: &Inner, refusal: Refusal) -> IndexFailure {
    match refusal {
        Refusal::Forbidden(host) => {
            inner.refused(&host);
            let why = format!("a build may not reach {host}");
            (StatusCode::FORBIDDEN, why)
        }
        Refusal::Failed(why) => {
            inner.note(format!("package index: {why}"));
            (StatusCode::BAD_GATEWAY, why)
        }
    }
}

/// Handles `GET …/files/KIND/ID/PROJECT/FILE`, where FILE may end in `.metadata`.
pub(super) async fn file(
    inner: Arc<Inner>,
    kind: &str,
    id: &str,
    project: &str,
    file: &str,
    request: &Request<Incoming>,
) -> Response<Body> {
    let page = match find(&inner, id, project, kind == "j").await {
        Ok(page) => page,
        Err((status, why)) => return text(status, &why),
    };
    let Some(index) = inner.indexes.iter().find(|index| index.id == id) else {
        return text(StatusCode::NOT_FOUND, "unknown index");
    };
    let index_url = index.url.clone();
    let name = percent_decoded(file);
    let files = &page.page.head.files;
    let metadata = || {
        let entry = files.get(name.strip_suffix(".metadata")?)?;
        let digest = entry.metadata.clone()?;
        let mut url = Url::parse(&entry.url).ok()?;
        url.set_path(&format!("{}.metadata", url.path()));
        Some((url, digest))
    };
    let plain = files.get(&name);
    let plain = plain.and_then(|entry| Some((Url::parse(&entry.url).ok()?, entry.sha256.clone())));
    let Some((url, sha256)) = plain.or_else(metadata) else {
        return text(StatusCode::NOT_FOUND, "the index does not list this file");
    };
    let file_request = FileRequest {
        name,
        path: sha256
            .as_deref()
            .map(|sha256| inner.downloads.file(url.as_str(), sha256)),
        url,
        sha256,
    };
    let range = request.headers().get(header::RANGE);
    let head = *request.method() == Method::HEAD;
    if let Some(response) = transfer::serve_cached(&inner, &file_request, range, head).await {
        return response;
    }
    if inner.offline {
        let name = &file_request.name;
        inner.note(format!(
            "package index: {name} is not in the cache, and the build is offline"
        ));
        return text(
            StatusCode::NOT_FOUND,
            "not in the cache, and the build is offline",
        );
    }
    let has_digest = file_request.sha256.is_some();
    // No unverified part of a file with a known digest may be served, so the whole file is requested.
    let range_headers = match has_digest {
        true => HeaderMap::new(),
        false => forward::pick(request.headers(), &[header::RANGE, header::IF_RANGE]),
    };
    let method = if head { Method::HEAD } else { Method::GET };
    let (of, url) = (inner.clone(), file_request.url.clone());
    let get = async move {
        let (upstream, hosts) = (&of.upstream, &of.hosts);
        upstream
            .get(&method, url, &range_headers, Some(&index_url), hosts)
            .await
    };
    if let Some(range) = range.filter(|_| has_digest && !head) {
        let answer = transfer::range(inner.clone(), file_request, range.clone(), get).await;
        return answer.unwrap_or_else(|refusal| refused(&inner, refusal));
    }
    match get.await {
        Ok(response) if head || range.is_some() || !response.status().is_success() => {
            let status = response.status();
            if !status.is_success() && status != StatusCode::RANGE_NOT_SATISFIABLE {
                inner.note(format!(
                    "package index: {} returned {status}",
                    redacted(&file_request.url)
                ));
            }
            let mut response = forward::pass_response(response);
            let headers = response.headers_mut();
            // The host itself follows redirects.
            headers.remove(header::LOCATION);
            if has_digest && status.is_success() {
                // This proxy supports ranges even if the index does not.
                headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            }
            response
        }
        Ok(response) => transfer::serve_fetched(inner, file_request, response),
        Err(refusal) => refused(&inner, refusal),
    }
}

fn refused(inner: &Inner, refusal: Refusal) -> Response<Body> {
    let (status, why) = failed(inner, refusal);
    text(status, &why)
}
