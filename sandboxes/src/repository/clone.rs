//! Remote repositories: bare clones without blobs in the cache, which are fetched again when needed.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::OpenOptions;
use super::address::{protocols, split_credentials};
use super::discover::{discover, is_hash};
use super::git::{Git, Remote};
use super::isolated_repository::{self, IsolatedRepository, isolate};
use super::process::{self, GitOutput};
use super::revision::resolve;
use super::{clone_cache, limits};
use crate::error::SandboxError;
use crate::hex::hex;
use crate::plain_file::{self, Links};
use crate::sandbox::Result;

/// Ref of a clone that holds the remote's head.
pub(super) const HEAD: &str = "refs/testwright/HEAD";

/// Filter for commits and folders without files, except files requested by name.
const NO_BLOBS_FILTER: &str = "--filter=blob:none";

/// File of a clone that lists the blobs larger than the limit.
const TOO_LARGE: &str = "too-large";

const REFSPECS: [&str; 3] = [
    "+HEAD:refs/testwright/HEAD",
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
];

pub(super) struct Clone {
    pub git: Git,
    /// URL without credentials.
    pub url: String,
    pub notes: Vec<String>,
}

pub(super) fn clone(
    location: &str,
    revision: Option<&str>,
    cache: &Path,
    options: &OpenOptions,
) -> Result<Clone> {
    let protocols = protocols(location)?;
    let (url, credential) = split_credentials(location, options.token.as_ref());
    let folder = cache.join("repositories");
    crate::private::create_closed(&folder)?;
    let key = hex(&Sha256::digest(url.as_bytes()))[..24].to_owned();
    let directory = folder.join(format!("{key}.git"));
    let lock = File::create(folder.join(format!("{key}.lock")))?;
    lock.lock()?;
    clone_cache::touch(&lock);

    let git = Git {
        directory: Some(std::path::absolute(&directory)?),
        remote: Remote {
            protocols: protocols.to_owned(),
            credential,
            ..Remote::default()
        },
    };
    let mut notes = Vec::new();
    if directory.join("complete").exists() {
        refresh(&git, &url, revision, options, &mut notes)?;
    } else {
        if options.offline {
            return Err(
                SandboxError::unavailable(format!("{url} is not in the cache"))
                    .hint("run once without build.offline (TESTWRIGHT_BUILD_OFFLINE)"),
            );
        }
        // An interrupted clone left this folder.
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        isolated_repository::write_empty(&directory, false, false)?;
        for (key, value) in [
            ("remote.origin.url", url.as_str()),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("extensions.partialClone", "origin"),
        ] {
            git.run(&["config", key, value])?;
        }
        fetch(&git, &url)?;
        if let Some(revision) = revision {
            fetch_missing(&git, &url, revision)?;
        }
        std::fs::write(directory.join("complete"), "")?;
    }
    Ok(Clone { git, url, notes })
}

/// Fetches the clone again. A full hash that is present needs no network, but branches move.
fn refresh(
    git: &Git,
    url: &str,
    revision: Option<&str>,
    options: &OpenOptions,
    notes: &mut Vec<String>,
) -> Result<()> {
    let known_commit = resolve(git, revision.unwrap_or(HEAD))?;
    let fixed = revision.is_some_and(is_hash);
    if options.offline || (fixed && known_commit.is_some()) {
        return Ok(());
    }
    match fetch(git, url) {
        Ok(()) => {}
        Err(error) if known_commit.is_some() => {
            notes.push(format!(
                "the cached clone was used without an update: {error}"
            ));
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    match revision {
        Some(revision) => fetch_missing(git, url, revision),
        None => Ok(()),
    }
}

/// Fetches a commit that no branch contains (such as a pull request) by its hash or full name.
fn fetch_missing(git: &Git, url: &str, revision: &str) -> Result<()> {
    if resolve(git, revision)?.is_some() || !(is_hash(revision) || revision.starts_with("refs/")) {
        return Ok(());
    }
    let name = if is_hash(revision) {
        format!("+{revision}:refs/testwright/{revision}")
    } else {
        format!("+{revision}:{revision}")
    };
    // If the remote lacks it, the caller reports that with the nearest names.
    fetch_isolated(
        git,
        url,
        &[NO_BLOBS_FILTER, "origin", &name],
        b"",
        limits::CLONE,
    )?;
    Ok(())
}

fn fetch(git: &Git, url: &str) -> Result<()> {
    let mut arguments = vec![NO_BLOBS_FILTER, "--prune", "origin"];
    arguments.extend(REFSPECS);
    let output = fetch_isolated(git, url, &arguments, b"", limits::CLONE)?;
    if output.ok {
        Ok(())
    } else {
        Err(remote_error(git, url, &output))
    }
}

/// Runs `git fetch`.
///
/// A `file:` URL leads to an untrusted repository whose configuration git would read, so an isolated copy of its git
/// folder takes its place.
fn fetch_isolated(
    git: &Git,
    url: &str,
    arguments: &[&str],
    input: &[u8],
    max: u64,
) -> Result<GitOutput> {
    let Some(isolated) = isolate_file_url(git, url)? else {
        return git.fetch(arguments, input, max);
    };
    let mut git = git.clone();
    git.remote.stands_for = Some((isolated.folder.path().to_owned(), url.to_owned()));
    git.fetch(arguments, input, max)
}

fn isolate_file_url(git: &Git, url: &str) -> Result<Option<IsolatedRepository>> {
    let (Some(path), Some(directory)) = (url.strip_prefix("file://"), &git.directory) else {
        return Ok(None);
    };
    let absent = |why: &str| SandboxError::input(format!("{url} is not a repository ({why})"));
    let path = Path::new(path).canonicalize();
    let path = path.map_err(|e| absent(&e.to_string()))?;
    let git_folder = if path.is_dir() {
        discover(&path)?
    } else {
        None
    };
    let folder = git_folder
        .filter(|f| f.prefix.is_empty())
        .ok_or_else(|| absent("it has no git folder"))?;
    let cache = directory.parent().unwrap_or(directory);
    isolate(&folder, cache, false).map(Some)
}

/// Returns the error for a remote that did not respond as expected.
fn remote_error(git: &Git, url: &str, output: &GitOutput) -> SandboxError {
    let text = output.stderr.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|w| text.contains(w));
    let last = output
        .stderr
        .lines()
        .next()
        .unwrap_or("no message")
        .trim_start_matches("fatal: ");
    if any(&[
        "could not read username",
        "authentication failed",
        "terminal prompts disabled",
        "permission denied",
        "403",
    ]) {
        return SandboxError::input(format!("{url} does not exist, or needs a login"))
        .hint(match git.remote.credential {
            Some(_) => "renew the login, which was rejected, or use an ssh URL with an agent",
            None => "set GITHUB_TOKEN (it is sent only to github.com, or to the server in github.base-url), or use an ssh URL with an agent",
        });
    }
    if any(&[
        "not found",
        "does not exist",
        "does not appear to be a git repository",
        "no such file",
    ]) {
        return SandboxError::input(format!("{url} is not a repository ({last})"));
    }
    if any(&["couldn't find remote ref head"]) {
        return SandboxError::input(format!("{url} has no commits"));
    }
    SandboxError::unavailable(format!("{url} cannot be reached ({last})"))
        .hint("check the network and the proxy settings (https_proxy, http.proxy)")
}

/// Fetches the files of a tree that the clone lacks, except files that exceed the size limit. Returns the names of
/// those blobs.
pub(super) fn fetch_blobs(git: &Git, tree: &str) -> Result<BTreeSet<String>> {
    let Some(directory) = &git.directory else {
        return Ok(BTreeSet::new());
    };
    if !directory.join("complete").exists() {
        return Ok(BTreeSet::new());
    }
    let list = directory.join(TOO_LARGE);
    let list_text = plain_file::read_text(&list, Links::Refuse, limits::LISTING);
    let mut too_large: BTreeSet<String> = list_text
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect();
    let (all, mut missing) = objects(git, tree)?;
    missing.retain(|blob| !too_large.contains(blob));
    if missing.is_empty() {
        return Ok(too_large);
    }
    let url = git
        .line(&["config", "--get", "remote.origin.url"])?
        .unwrap_or_default();
    let max = process::size(directory, limits::CLONE).saturating_add(limits::ARCHIVE);
    // A few blobs are requested by name, and only git's own limits reject one that is too large. For a whole tree, the
    // server omits large ones, but may send blobs that are already present.
    if missing.len() * 2 < all {
        let names = missing.join("\n") + "\n";
        let arguments = [NO_BLOBS_FILTER, "--stdin", "origin"];
        if let Ok(GitOutput { ok: true, .. }) =
            fetch_isolated(git, &url, &arguments, names.as_bytes(), max)
        {
            return Ok(too_large);
        }
    }
    let hash = git.object(tree)?.unwrap_or_default();
    let filter = format!("--filter=blob:limit={}", limits::FILE + 1);
    let output = fetch_isolated(
        git,
        &url,
        &["--refetch", &filter, "origin", &hash],
        b"",
        max,
    )?;
    if !output.ok {
        return Err(remote_error(git, &url, &output));
    }
    too_large.extend(objects(git, tree)?.1);
    let text: String = too_large.iter().map(|blob| format!("{blob}\n")).collect();
    crate::private::write(&list, text.as_bytes())?;
    Ok(too_large)
}

/// Returns the number of objects in a tree, and the missing ones.
fn objects(git: &Git, tree: &str) -> Result<(usize, Vec<String>)> {
    let words = ["rev-list", "--objects", "--no-object-names"];
    let text = git.run(&[&words[..], &["--missing=print", tree]].concat())?;
    let missing = text.lines().filter_map(|line| line.strip_prefix('?'));
    Ok((text.lines().count(), missing.map(str::to_owned).collect()))
}
