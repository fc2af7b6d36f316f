//! Lookup of revisions.

use super::git::Git;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// Returns the commit that a revision names. Branches of the remote are searched too.
pub(super) fn resolve(git: &Git, revision: &str) -> Result<Option<String>> {
    for name in [revision.to_owned(), format!("origin/{revision}")] {
        let spec = format!("{name}^{{commit}}");
        if let Some(commit) = git.object(&spec)? {
            return Ok(Some(commit));
        }
    }
    Ok(None)
}

/// Returns the error for an unknown revision, with the nearest names.
pub(super) fn unknown_revision(git: &Git, revision: &str) -> SandboxError {
    let error = SandboxError::input(format!("the repository has no revision `{revision}`"));
    let Ok(refs) = git.run(&[
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads",
        "refs/tags",
        "refs/remotes",
    ]) else {
        return error;
    };
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
        error.hint("use a full commit hash, a branch or a tag")
    } else {
        error.hint(format!(
            "check the name; the nearest are {}",
            near.join(", ")
        ))
    }
}
