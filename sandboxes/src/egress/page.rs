//! A project's page in a package index (HTML of PEP 503, JSON of PEP 691), with all URLs pointing to the host's end of
//! the relay.
//!
//! Pages are untrusted, so only known parts of HTML are kept.

use std::collections::BTreeMap;

use regex::Regex;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http_client::percent_decoded;

pub(super) const JSON: &str = "application/vnd.pypi.simple.v1+json";
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// A file that a page lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct IndexFile {
    pub url: String,
    pub sha256: Option<String>,
    /// Digest of the separate metadata file (PEP 658), if the page gives it. `None` if the file does not exist.
    pub metadata: Option<Option<String>>,
}

pub(super) type Files = BTreeMap<String, IndexFile>;

/// Maximum files of a page, and maximum JSON values (or characters that start one). The longest page of PyPI has a
/// tenth of them.
const MAX_FILES: usize = if cfg!(test) { 2_000 } else { 200_000 };
const MAX_VALUES: usize = 3_000_000;

/// The reason why a page of a package index cannot be passed on.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("it lists more than {} files", MAX_FILES)]
    TooManyFiles,
    #[error("it contains more than {} values", MAX_VALUES)]
    TooManyValues,
    #[error("it has no list of files")]
    NoFiles,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

fn count(files: usize) -> Result<(), PageError> {
    match files {
        0..=MAX_FILES => Ok(()),
        _ => Err(PageError::TooManyFiles),
    }
}

/// Returns the page for the sandbox and the files that it lists.
///
/// `place` is the relative URL from the page to its files, such as `../../files/`.
pub(super) fn rewrite(
    body: &[u8],
    json: bool,
    url: &Url,
    place: &str,
) -> Result<(Vec<u8>, Files), PageError> {
    if json {
        rewrite_json(body, url, place)
    } else {
        rewrite_html(&String::from_utf8_lossy(body), url, place)
    }
}

fn rewrite_json(body: &[u8], url: &Url, place: &str) -> Result<(Vec<u8>, Files), PageError> {
    // A value takes much more memory than its text.
    let values = body.iter().filter(|byte| b",[{".contains(byte)).count();
    if values > MAX_VALUES {
        return Err(PageError::TooManyValues);
    }
    let mut page: Value = serde_json::from_slice(body)?;
    let mut files = Files::new();
    let Some(list) = page.get_mut("files").and_then(Value::as_array_mut) else {
        return Err(PageError::NoFiles);
    };
    count(list.len())?;
    list.retain_mut(|entry| {
        let Some(entry) = entry.as_object_mut() else {
            return false;
        };
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let Some(name) = text("filename")
            .filter(|name| is_name(name))
            .map(str::to_owned)
        else {
            return false;
        };
        let Some(file) = text("url").and_then(|address| url.join(address).ok()) else {
            return false;
        };
        let sha256 = entry
            .get("hashes")
            .and_then(|hashes| digest(hashes.get("sha256")?.as_str()?));
        let metadata = [
            "core-metadata",
            "dist-info-metadata",
            "data-dist-info-metadata",
        ]
        .iter()
        .find_map(|key| match entry.get(*key)? {
            Value::Bool(true) => Some(None),
            Value::Object(hashes) => Some(digest(
                hashes
                    .get("sha256")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            )),
            _ => None,
        });
        entry.insert(
            "url".to_owned(),
            format!("{place}{}", encoded(&name)).into(),
        );
        let file = IndexFile {
            url: file.into(),
            sha256,
            metadata,
        };
        files.insert(name, file);
        true
    });
    let body = serde_json::to_vec(&page)?;
    Ok((body, files))
}

fn rewrite_html(text: &str, url: &Url, place: &str) -> Result<(Vec<u8>, Files), PageError> {
    let mut page = "<!DOCTYPE html>\n<html><body>\n".to_owned();
    let mut files = Files::new();
    let (Ok(tags), Ok(attributes)) = (
        Regex::new(r#"(?is)<(a|base)\s((?:[^>"']|"[^"]*"|'[^']*')*)>"#),
        Regex::new(r#"(?is)([a-z0-9-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?"#),
    ) else {
        return Ok((page.into_bytes(), files));
    };
    let mut links = 0;
    let mut base = url.clone();
    for tag in tags.captures_iter(text) {
        let values: BTreeMap<String, String> = attributes
            .captures_iter(&tag[2])
            .map(|one| {
                let value = (2..5).find_map(|group| one.get(group));
                let value = value.map(|value| unescaped(value.as_str()));
                (one[1].to_lowercase(), value.unwrap_or_default())
            })
            .collect();
        let Some(target) = values
            .get("href")
            .and_then(|href| base.join(href.trim()).ok())
        else {
            continue;
        };
        if tag[1].eq_ignore_ascii_case("base") {
            base = target;
            continue;
        }
        let last = target.path().rsplit('/').next().unwrap_or_default();
        let name = percent_decoded(last);
        if !is_name(&name) || !is_distribution(&name) {
            continue;
        }
        links += 1;
        count(links)?;
        let fragment = target.fragment().unwrap_or_default();
        let sha256 = fragment.strip_prefix("sha256=").and_then(digest);
        let metadata = ["data-core-metadata", "data-dist-info-metadata"]
            .iter()
            .find_map(|key| {
                let value = values.get(*key)?;
                Some(value.strip_prefix("sha256=").and_then(digest))
            });
        page.push_str(&format!("<a href=\"{place}{}", encoded(&name)));
        if let Some(sha256) = &sha256 {
            page.push_str(&format!("#sha256={sha256}"));
        }
        page.push('"');
        // These state the required Python, the upload date, and whether the file was withdrawn.
        for (key, value) in &values {
            if key.starts_with("data-") {
                page.push_str(&format!(" {key}=\"{}\"", escaped(value)));
            }
        }
        page.push_str(&format!(">{}</a><br>\n", escaped(&name)));
        let mut target = target;
        target.set_fragment(None);
        let file = IndexFile {
            url: target.into(),
            sha256,
            metadata,
        };
        files.insert(name, file);
    }
    page.push_str("</body></html>\n");
    Ok((page.into_bytes(), files))
}

/// Returns whether a name is a plain file name.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && !name.chars().any(|c| c.is_control() || "/\\?#".contains(c))
}

fn is_distribution(name: &str) -> bool {
    [".whl", ".gz", ".zip", ".bz2", ".xz", ".tgz", ".egg", ".zst"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn digest(text: &str) -> Option<String> {
    let fits = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| text.to_lowercase())
}

/// Percent-encodes a name for the path of a URL.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~!+".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&#x27;", "'")
        .replace("&#62;", ">")
        .replace("&#60;", "<")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests;
