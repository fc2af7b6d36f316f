//! The name of a repository: `owner/name` if its location contains both.

use std::path::{Path, PathBuf};

/// Returns the name according to the folder.
pub(super) fn folder_name(path: &Path) -> String {
    let path: PathBuf = if path.ends_with(".git") {
        path.parent().unwrap_or(path).to_owned()
    } else {
        path.to_owned()
    };
    let text = path.to_string_lossy().into_owned();
    let last = text.rsplit('/').next().unwrap_or(&text);
    let last = last.strip_suffix(".git").unwrap_or(last).to_owned();
    mirrored(&text).unwrap_or(last)
}

/// Returns `owner/name` from the URL or path of a remote.
pub(super) fn name_of(url: &str, folder: &str) -> String {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest,
        None => url.rsplit(':').next().unwrap_or(url),
    };
    // The repository chooses the URL, so it may contain anything.
    let path: String = path
        .chars()
        .take(1000)
        .map(|c| if c.is_control() { '_' } else { c })
        .collect();
    let path = path.trim_end_matches('/');
    let path = path
        .strip_suffix(".git")
        .unwrap_or(path)
        .trim_end_matches('/');
    if let Some(name) = mirrored(path) {
        return name;
    }
    let mut parts = path.rsplit('/').filter(|p| !p.is_empty());
    match (parts.next(), parts.next()) {
        (Some(name), Some(owner)) => format!("{owner}/{name}"),
        (Some(name), None) => name.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Returns the name in the path of a mirror, `owner+name/repo`.
fn mirrored(path: &str) -> Option<String> {
    let mut parts = path.trim_end_matches('/').rsplit('/');
    let last = parts.next()?;
    let holder = if last == "repo" { parts.next()? } else { last };
    let (owner, name) = holder.split_once('+')?;
    (!owner.is_empty() && !name.is_empty()).then(|| format!("{owner}/{name}"))
}
