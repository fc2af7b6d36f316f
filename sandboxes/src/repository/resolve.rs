//! Resolution of a location and a revision to one commit. Paths are opened in place, URLs are cloned into the cache.

use std::collections::BTreeSet;
use std::path::Path;

use super::discover::discover;
use super::git::Git;
use super::isolated_repository::isolate;
use super::repository_name::{folder_name, name_of};
use super::revision::{resolve, unknown_revision};
use super::{OpenOptions, Repository, clone, snapshot, status, submodules};
use crate::error::SandboxError;
use crate::sandbox::Result;

/// Opens a repository at a revision, or at its head. The location is a path (a work tree, a bare repository, a
/// subfolder of a work tree, a plain folder), or a URL to clone into the cache.
///
/// # Errors
///
/// Kind `Input` if the path is missing or not a repository, or the revision is unknown (with the nearest names). Kind
/// `Unavailable` if a remote cannot be reached.
pub fn open(
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
        return Err(SandboxError::input(format!(
            "`{}` is not a valid revision",
            revision.escape_debug()
        ))
        .hint("use a full commit hash, a branch or a tag"));
    }
    let path = Path::new(location);
    // Text that looks like a git URL may be a folder of the user. A URL with a scheme never is, because a repository in
    // the current folder may contain a folder called `https:`.
    if is_url(location) && (location.contains("://") || !path.exists()) {
        let clone = clone::clone(location, revision, cache, options)?;
        let name = name_of(&clone.url, "");
        let mut repository = at_commit(clone.git, cache, name, "", revision, Some(clone::HEAD))?;
        repository.notes.extend(clone.notes);
        return Ok(repository);
    }
    let path = path.canonicalize().map_err(|e| {
        SandboxError::input(format!("there is no repository at {location} ({e})"))
            .hint("use a folder, a bare repository, or a URL such as https://github.com/OWNER/NAME")
    })?;
    if !path.is_dir() {
        return Err(SandboxError::input(format!(
            "{location} is a file, not a repository"
        )));
    }
    let Some(folder) = discover(&path)? else {
        let name = folder_name(&path);
        let note = format!("{name} is not a git repository; its files are used as they are");
        return snapshot::take_snapshot(&path, cache, revision, vec![note]);
    };
    let reflogs = revision.is_some_and(|r| r.contains("@{"));
    let isolated = isolate(&folder, cache, reflogs)?;
    let (git, prefix) = (&isolated.git, &folder.prefix);
    if revision.is_none() {
        if git.object("HEAD^{commit}")?.is_none() {
            return snapshot::take_snapshot(
                &path,
                cache,
                None,
                vec!["the repository has no commits: its files were used as they are".into()],
            );
        }
        if !prefix.is_empty() && git.object(&format!("HEAD:{prefix}"))?.is_none() {
            let note = format!(
                "{location} is not tracked by the repository around it: its files were used as they are"
            );
            return snapshot::take_snapshot(&path, cache, None, vec![note]);
        }
    }
    let own = folder_name(&path);
    let name = match isolated.config.get("remote.origin.url") {
        Some(url) if prefix.is_empty() => name_of(url, &own),
        _ => own,
    };
    let mut repository = at_commit(git.clone(), cache, name, prefix, revision, None)?;
    if let Some(work_tree) = &folder.work_tree {
        repository.submodules =
            submodules::borrow_objects(git, &repository.tree, &work_tree.join(prefix))?;
    }
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

/// Returns a commit of a local repository.
fn at_commit(
    git: Git,
    cache: &Path,
    name: String,
    prefix: &str,
    revision: Option<&str>,
    head: Option<&str>,
) -> Result<Repository> {
    let target_revision = revision.or(head).unwrap_or("HEAD");
    let Some(commit) = resolve(&git, target_revision)? else {
        return Err(unknown_revision(&git, target_revision));
    };
    let tree = git.object(&format!("{commit}:{prefix}"))?.ok_or_else(|| {
        SandboxError::input(format!(
            "the folder {prefix} does not exist at {target_revision}"
        ))
    })?;
    let date = git.line(&[
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
        submodules: BTreeSet::new(),
        partial: false,
        _store: None,
    })
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
