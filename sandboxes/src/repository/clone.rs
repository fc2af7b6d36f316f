//! Remote repositories: a bare clone without blobs in the cache, fetched again when needed.

use std::fs::File;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::OpenOptions;
use super::address::{protocols, split_credentials};
use super::clone_cache;
use super::discover::{discover, is_hash};
use super::git::{Git, Remote};
use super::isolated_repository::{self, IsolatedRepository, isolate};
use super::process::GitOutput;
use super::revision::resolve;
use crate::error::{ErrorKind, SandboxError};
use crate::hex::hex;
use crate::sandbox::Result;

/// Where a clone keeps the head of the remote.
pub(super) const HEAD: &str = "refs/testwright/HEAD";

const REFSPECS: [&str; 3] = [
    "+HEAD:refs/testwright/HEAD",
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
];

pub(super) struct Clone {
    pub git: Git,
    /// Without credentials.
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
        remote: Some(Remote {
            protocols: protocols.to_owned(),
            credential,
            ..Remote::default()
        }),
    };
    let mut notes = Vec::new();
    if directory.join("complete").exists() {
        refresh(&git, &url, revision, options, &mut notes)?;
    } else {
        if options.offline {
            return Err(SandboxError::new(
                ErrorKind::Unavailable,
                format!("{url} is not in the cache"),
            )
            .hint("run once without --offline"));
        }
        // What an interrupted clone left.
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
            git.run(["config", key, value])?;
        }
        fetch(&git, &url, &REFSPECS)?;
        if let Some(revision) = revision {
            fetch_missing(&git, &url, revision)?;
        }
        std::fs::write(directory.join("complete"), "")?;
    }
    Ok(Clone { git, url, notes })
}

/// A full hash that is here needs no network; branches move, so they are asked for.
fn refresh(
    git: &Git,
    url: &str,
    revision: Option<&str>,
    options: &OpenOptions,
    notes: &mut Vec<String>,
) -> Result<()> {
    let known = resolve(git, revision.unwrap_or(HEAD))?;
    let fixed = revision.is_some_and(is_hash);
    if options.offline || (fixed && known.is_some()) {
        return Ok(());
    }
    match fetch(git, url, &REFSPECS) {
        Ok(()) => {}
        Err(error) if known.is_some() => {
            notes.push(format!("the copy in the cache was used as it was: {error}"));
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    match revision {
        Some(revision) => fetch_missing(git, url, revision),
        None => Ok(()),
    }
}

/// Commits that no branch holds (pull requests) can still be fetched by their hash or full name.
fn fetch_missing(git: &Git, url: &str, revision: &str) -> Result<()> {
    if resolve(git, revision)?.is_some() || !(is_hash(revision) || revision.starts_with("refs/")) {
        return Ok(());
    }
    let name = if is_hash(revision) {
        format!("+{revision}:refs/testwright/{revision}")
    } else {
        format!("+{revision}:{revision}")
    };
    // If the remote does not have it, the caller says so, with the nearest names.
    ask(git, url, &["origin", &name], b"")?;
    Ok(())
}

fn fetch(git: &Git, url: &str, refspecs: &[&str]) -> Result<()> {
    let mut arguments = vec!["--prune", "origin"];
    arguments.extend(refspecs);
    let output = ask(git, url, &arguments, b"")?;
    if output.ok {
        Ok(())
    } else {
        Err(refused(git, url, &output))
    }
}

/// `git fetch`. What a `file:` address leads to is a stranger's repository, and git would read its configuration: a git
/// folder of ours stands for it.
fn ask(git: &Git, url: &str, arguments: &[&str], input: &[u8]) -> Result<GitOutput> {
    let Some(isolated) = stand_in(git, url)? else {
        return git.fetch(arguments, input);
    };
    let mut remote = git.remote.clone().unwrap_or_default();
    remote.stands_for = Some((isolated.folder.path().to_owned(), url.to_owned()));
    let git = Git {
        remote: Some(remote),
        ..git.clone()
    };
    git.fetch(arguments, input)
}

fn stand_in(git: &Git, url: &str) -> Result<Option<IsolatedRepository>> {
    let (Some(path), Some(directory)) = (url.strip_prefix("file://"), &git.directory) else {
        return Ok(None);
    };
    let absent = |why: &str| {
        SandboxError::new(
            ErrorKind::Input,
            format!("{url} is not a repository ({why})"),
        )
    };
    let path = Path::new(path).canonicalize();
    let path = path.map_err(|e| absent(&e.to_string()))?;
    let found = if path.is_dir() {
        discover(&path)?
    } else {
        None
    };
    let folder = found
        .filter(|f| f.prefix.is_empty())
        .ok_or_else(|| absent("there is no git folder"))?;
    let cache = directory.parent().unwrap_or(directory);
    isolate(&folder, cache, false).map(Some)
}

/// Why a remote did not answer, in words.
fn refused(git: &Git, url: &str, output: &GitOutput) -> SandboxError {
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
        return SandboxError::new(
            ErrorKind::Input,
            format!("{url} does not exist, or needs a login"),
        )
        .hint(match git.remote.as_ref().map(|r| r.credential.is_some()) {
            Some(true) => "the login that was sent is not accepted: renew it, or use an ssh URL with an agent",
            _ => "set GITHUB_TOKEN (it is sent to github.com, or to the server in github.base-url, and to no other), or use an ssh URL with an agent",
        });
    }
    if any(&[
        "not found",
        "does not exist",
        "does not appear to be a git repository",
        "no such file",
    ]) {
        return SandboxError::new(
            ErrorKind::Input,
            format!("{url} is not a repository ({last})"),
        );
    }
    if any(&["couldn't find remote ref head"]) {
        return SandboxError::new(ErrorKind::Input, format!("{url} has no commit yet"));
    }
    SandboxError::new(
        ErrorKind::Unavailable,
        format!("{url} cannot be reached ({last})"),
    )
    .hint("check the network and the proxy settings (https_proxy, http.proxy)")
}

/// Puts blobs that the clone left out into it, all at once; git alone would fetch them one by one.
pub(super) fn fetch_blobs(git: &Git, tree: &str) -> Result<()> {
    let Some(directory) = &git.directory else {
        return Ok(());
    };
    if !directory.join("complete").exists() {
        return Ok(());
    }
    let listed = git.run([
        "rev-list",
        "--objects",
        "--no-object-names",
        "--missing=print",
        tree,
    ])?;
    let text = String::from_utf8_lossy(&listed);
    let missing: Vec<_> = text.lines().filter_map(|l| l.strip_prefix('?')).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join("\n") + "\n";
    let url = git
        .line(["config", "--get", "remote.origin.url"])?
        .unwrap_or_default();
    let output = ask(git, &url, &["--stdin", "origin"], list.as_bytes())?;
    if output.ok {
        Ok(())
    } else {
        Err(refused(git, &url, &output))
    }
}
