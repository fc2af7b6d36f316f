//! From a location and a revision to one commit: paths here, URLs by way of the cache.

use std::path::{Path, PathBuf};

use super::discover::discover;
use super::git::Git;
use super::isolated::isolate;
use super::{OpenOptions, Repository, clone, snapshot, status};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

pub(super) fn open(
    location: &str,
    revision: Option<&str>,
    cache: &Path,
    options: &OpenOptions,
) -> Result<Repository> {
    if let Some(revision) = revision
        && (revision.starts_with('-')
            || revision.trim().is_empty()
            || revision.contains(char::is_control))
    {
        return Err(SandboxError::new(
            ErrorKind::Input,
            format!("`{}` is not a revision", revision.escape_debug()),
        )
        .hint("give a full commit hash, a branch or a tag"));
    }
    let path = Path::new(location);
    // What looks like an address of git may be a folder of the user's. An address with a scheme never is: a repository
    // in the current folder may hold a folder called `https:`.
    if is_url(location) && (location.contains("://") || !path.exists()) {
        let clone = clone::clone(location, revision, cache, options)?;
        let name = name_of(&clone.url, "");
        let mut repository = at_commit(clone.git, cache, name, "", revision, Some(clone::HEAD))?;
        repository.notes.extend(clone.notes);
        return Ok(repository);
    }
    let path = path.canonicalize().map_err(|e| {
        SandboxError::new(
            ErrorKind::Input,
            format!("there is no repository at {location} ({e})"),
        )
        .hint("give a folder, a bare repository, or a URL such as https://github.com/OWNER/NAME")
    })?;
    if !path.is_dir() {
        return Err(SandboxError::new(
            ErrorKind::Input,
            format!("{location} is a file, not a repository"),
        ));
    }
    let Some(folder) = discover(&path)? else {
        return snapshot::take(&path, cache, revision, Vec::new());
    };
    let reflogs = revision.is_some_and(|r| r.contains("@{"));
    let isolated = isolate(&folder, cache, reflogs)?;
    let (git, prefix) = (&isolated.git, &folder.prefix);
    if revision.is_none() {
        if git
            .line(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?
            .is_none()
        {
            return snapshot::take(
                &path,
                cache,
                None,
                vec!["the repository has no commit yet: its files were taken as they are".into()],
            );
        }
        if !prefix.is_empty()
            && git
                .line([
                    "rev-parse",
                    "--verify",
                    "--quiet",
                    &format!("HEAD:{prefix}"),
                ])?
                .is_none()
        {
            let note = format!(
                "{location} is not tracked by the repository around it: its files were taken as they are"
            );
            return snapshot::take(&path, cache, None, vec![note]);
        }
    }
    let own = folder_name(&path);
    let name = match isolated.config.get("remote.origin.url") {
        Some(url) if prefix.is_empty() => name_of(url, &own),
        _ => own,
    };
    let mut repository = at_commit(git.clone(), cache, name, prefix, revision, None)?;
    if revision.is_none()
        && let Some(note) = status::uncommitted(&folder, &isolated)
    {
        repository.notes.push(note);
    }
    if isolated.config.get("extensions.partialclone").is_some() {
        repository.partial = true;
    }
    repository._store = Some(isolated.folder);
    Ok(repository)
}

/// A commit in a repository that is here.
fn at_commit(
    git: Git,
    cache: &Path,
    name: String,
    prefix: &str,
    revision: Option<&str>,
    head: Option<&str>,
) -> Result<Repository> {
    let wanted = revision.or(head).unwrap_or("HEAD");
    let Some(commit) = resolve(&git, wanted)? else {
        return Err(unknown_revision(&git, wanted));
    };
    let tree = git
        .line([
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{commit}:{prefix}"),
        ])?
        .ok_or_else(|| {
            SandboxError::new(
                ErrorKind::Input,
                format!("there is no folder {prefix} at {wanted}"),
            )
        })?;
    let date = git.line([
        "rev-list",
        "--max-count=1",
        "--no-commit-header",
        "--format=%ct",
        &commit,
    ])?;
    Ok(Repository {
        git,
        cache: cache.to_owned(),
        name,
        commit: Some(commit),
        date: date.and_then(|d| d.parse().ok()),
        tree,
        notes: Vec::new(),
        partial: false,
        _store: None,
    })
}

/// The commit that a revision names; branches of the remote count too.
pub(super) fn resolve(git: &Git, revision: &str) -> Result<Option<String>> {
    for name in [revision.to_owned(), format!("origin/{revision}")] {
        let spec = format!("{name}^{{commit}}");
        if let Some(commit) = git.line(["rev-parse", "--verify", "--quiet", &spec])? {
            return Ok(Some(commit));
        }
    }
    Ok(None)
}

fn unknown_revision(git: &Git, revision: &str) -> SandboxError {
    let error = SandboxError::new(
        ErrorKind::Input,
        format!("there is no revision `{revision}` in the repository"),
    );
    let Ok(refs) = git.run([
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads",
        "refs/tags",
        "refs/remotes",
    ]) else {
        return error;
    };
    let refs = String::from_utf8_lossy(&refs);
    let mut near: Vec<_> = refs
        .lines()
        .map(|name| {
            (
                strsim::jaro_winkler(name.trim_start_matches("origin/"), revision),
                name,
            )
        })
        .filter(|(likeness, _)| *likeness > 0.7)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let near: Vec<_> = near
        .into_iter()
        .take(3)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    if near.is_empty() {
        error.hint("give a full commit hash, a branch or a tag")
    } else {
        error.hint(format!("the nearest names are {}", near.join(", ")))
    }
}

pub(super) fn is_url(location: &str) -> bool {
    if location.contains("://") {
        return true;
    }
    // git@host:owner/name
    match location.split_once(':') {
        Some((host, path)) => !path.is_empty() && host.contains('@') && !host.contains('/'),
        None => false,
    }
}

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

/// `owner/name` from a URL or path of a remote.
pub(super) fn name_of(url: &str, folder: &str) -> String {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest,
        None => url.rsplit(':').next().unwrap_or(url),
    };
    // A remote's address is whatever the repository says.
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

/// Mirrors lie under `owner+name/repo`.
fn mirrored(path: &str) -> Option<String> {
    let mut parts = path.trim_end_matches('/').rsplit('/');
    let last = parts.next()?;
    let holder = if last == "repo" { parts.next()? } else { last };
    let (owner, name) = holder.split_once('+')?;
    (!owner.is_empty() && !name.is_empty()).then(|| format!("{owner}/{name}"))
}
