//! Submodules that the user's clone has checked out. Their files belong to the old code at the pinned commit.
//!
//! The isolated git folder also borrows the objects of these submodules, so one git reads all files. Nothing is fetched:
//! a submodule whose commit is missing stays empty.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::discover::discover;
use super::git::Git;
use super::isolated_repository::quoted;
use super::listing::{list, parse};
use super::object_hash::check_tree;
use super::objects;
use crate::sandbox::Result;

/// Maximum nesting of submodules.
const MAX_DEPTH: usize = 4;
/// Maximum submodules of one commit, nested ones included.
const MAX_SUBMODULES: usize = 200;

/// Mode of a submodule's pointer in a tree.
pub(super) const MODE: &str = "160000";

/// Makes the objects of the checked-out submodules of a tree available to `git`, and returns their commits. `folder` is
/// where the tree is checked out.
pub(super) fn borrow_objects(git: &Git, tree: &str, folder: &Path) -> Result<BTreeSet<String>> {
    let mut remaining = MAX_SUBMODULES;
    let mut commits = BTreeSet::new();
    borrow_below(git, tree, folder, MAX_DEPTH, &mut remaining, &mut commits)?;
    Ok(commits)
}

fn borrow_below(
    git: &Git,
    tree: &str,
    folder: &Path,
    depth: usize,
    remaining: &mut usize,
    commits: &mut BTreeSet<String>,
) -> Result<()> {
    for (path, commit) in pointers(&list(git, tree)?) {
        if *remaining == 0 || depth == 0 {
            return Ok(());
        }
        *remaining -= 1;
        let checked_out = folder.join(&path);
        let Some(objects) = objects_of(&checked_out) else {
            continue;
        };
        let Some(alternates) = git.alternates() else {
            return Ok(());
        };
        let mut alternates = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(alternates)?;
        for objects in objects {
            alternates.write_all(&quoted(&objects))?;
        }
        if tree_of(git, &commit)?.is_some() {
            borrow_below(git, &commit, &checked_out, depth - 1, remaining, commits)?;
            commits.insert(commit);
        }
    }
    Ok(())
}

/// Returns the paths and commits of the submodules in the output of `git ls-tree`.
fn pointers(listing: &[u8]) -> Vec<(PathBuf, String)> {
    let entries = listing.split(|byte| *byte == 0).filter_map(parse);
    let pointers = entries.filter(|entry| entry.mode == MODE);
    pointers
        .map(|entry| (PathBuf::from(entry.name()), entry.object.to_owned()))
        .collect()
}

/// Returns the object folders of a submodule, or `None` if it is not checked out there.
fn objects_of(folder: &Path) -> Option<Vec<PathBuf>> {
    // A link could lead to any other repository of the user.
    let canonical = folder.canonicalize().ok().filter(|path| path == folder)?;
    let git_folder = discover(&canonical).ok().flatten()?;
    let is_own = git_folder.work_tree.as_deref() == Some(folder) && git_folder.prefix.is_empty();
    let objects = git_folder.common.join("objects");
    is_own.then(|| objects::check(&objects).ok()).flatten()
}

/// Replaces the submodules in the output of `git ls-tree` by their files, if their commits are among `borrowed`.
///
/// # Errors
///
/// Fails if an object does not match its hash, or git fails.
pub(super) fn expand(git: &Git, listing: Vec<u8>, borrowed: &BTreeSet<String>) -> Result<Vec<u8>> {
    let mut remaining = MAX_SUBMODULES;
    expand_below(git, listing, borrowed, MAX_DEPTH, &mut remaining)
}

fn expand_below(
    git: &Git,
    listing: Vec<u8>,
    borrowed: &BTreeSet<String>,
    depth: usize,
    remaining: &mut usize,
) -> Result<Vec<u8>> {
    if pointers(&listing).is_empty() || depth == 0 {
        return Ok(listing);
    }
    let mut expanded = Vec::with_capacity(listing.len());
    for line in listing
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let pointer = parse(line).filter(|entry| entry.mode == MODE && *remaining > 0);
        *remaining -= usize::from(pointer.is_some());
        let Some(pointer) = pointer.filter(|entry| borrowed.contains(entry.object)) else {
            expanded.extend([line, b"\0"].concat());
            continue;
        };
        let commit = pointer.object;
        let tree = tree_of(git, commit)?;
        check_tree(git, Some(commit), tree.as_deref().unwrap_or(commit))?;
        let listing = list(git, commit)?;
        let files = expand_below(git, listing, borrowed, depth - 1, remaining)?;
        for file in files.split(|byte| *byte == 0) {
            // The last one is empty.
            let Some(tab) = file.iter().position(|byte| *byte == b'\t') else {
                continue;
            };
            let (head, path) = file.split_at(tab + 1);
            expanded.extend([head, pointer.path, b"/", path, b"\0"].concat());
        }
    }
    Ok(expanded)
}

fn tree_of(git: &Git, commit: &str) -> Result<Option<String>> {
    git.object(&format!("{commit}^{{tree}}"))
}
