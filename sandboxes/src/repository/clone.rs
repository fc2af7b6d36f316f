//! Remote repositories: a bare clone without blobs in the cache, fetched again when needed.

use std::fs::File;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::OpenOptions;
use super::git::{Git, Said};
use super::locate::resolve;
use crate::error::{ErrorKind, SandboxError};
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
    let (url, credential) = split_credentials(location, options.token.as_deref());
    let folder = cache.join("repositories");
    std::fs::create_dir_all(&folder)?;
    let key = hex(&Sha256::digest(url.as_bytes()))[..24].to_owned();
    let directory = folder.join(format!("{key}.git"));
    let lock = File::create(folder.join(format!("{key}.lock")))?;
    lock.lock()?;

    let git = Git {
        directory: Some(directory.clone()),
        credential: credential.clone(),
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
        Git::nowhere().run([
            "init".as_ref(),
            "--quiet".as_ref(),
            "--bare".as_ref(),
            "--template=".as_ref(),
            directory.as_os_str(),
        ])?;
        for (key, value) in [
            ("remote.origin.url", url.as_str()),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
        ] {
            git.run(["config", key, value])?;
        }
        fetch(&git, &url, &REFSPECS)?;
        if let Some(revision) = revision {
            fetch_missing(&git, revision)?;
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
        Some(revision) => fetch_missing(git, revision),
        None => Ok(()),
    }
}

/// Commits that no branch holds (pull requests) can still be fetched by their hash or full name.
fn fetch_missing(git: &Git, revision: &str) -> Result<()> {
    if resolve(git, revision)?.is_some() || !(is_hash(revision) || revision.starts_with("refs/")) {
        return Ok(());
    }
    let name = if is_hash(revision) {
        format!("+{revision}:refs/testwright/{revision}")
    } else {
        format!("+{revision}:{revision}")
    };
    // If the remote does not have it, the caller says so, with the nearest names.
    git.try_run(
        [
            "fetch",
            "--quiet",
            "--no-tags",
            "--filter=blob:none",
            "origin",
            &name,
        ],
        b"",
    )?;
    Ok(())
}

fn fetch(git: &Git, url: &str, refspecs: &[&str]) -> Result<()> {
    let mut arguments = vec![
        "fetch",
        "--quiet",
        "--no-tags",
        "--prune",
        "--filter=blob:none",
        "origin",
    ];
    arguments.extend(refspecs);
    let said = git.try_run(arguments, b"")?;
    if said.ok {
        Ok(())
    } else {
        Err(refused(url, &said))
    }
}

/// Why a remote did not answer, in words.
fn refused(url: &str, said: &Said) -> SandboxError {
    let text = said.stderr.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|w| text.contains(w));
    let last = said
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
        .hint("set GITHUB_TOKEN, or use an ssh URL with an agent");
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
    let said = git.try_run(
        [
            "-c",
            "fetch.negotiationAlgorithm=noop",
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--recurse-submodules=no",
            "--filter=blob:none",
            "--stdin",
            "origin",
        ],
        list.as_bytes(),
    )?;
    if said.ok {
        Ok(())
    } else {
        Err(refused(&url, &said))
    }
}

fn is_hash(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64) && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The URL without user and password, and the header that stands for them (or for the token).
fn split_credentials(url: &str, token: Option<&str>) -> (String, Option<(String, String)>) {
    let Some((scheme, rest)) = url.split_once("://") else {
        return (url.to_owned(), None);
    };
    if scheme != "https" && scheme != "http" {
        return (url.to_owned(), None);
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (Some(login.to_owned()), host),
        None => (None, authority),
    };
    // A token never goes over a line that anybody can read.
    let login = login.or_else(|| {
        token
            .filter(|_| scheme == "https")
            .map(|t| format!("x-access-token:{t}"))
    });
    let clean = format!("{scheme}://{host}/{path}");
    let header = login.map(|login| {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(login);
        (
            format!("{scheme}://{host}/"),
            format!("Authorization: Basic {encoded}"),
        )
    });
    (clean, header)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::split_credentials;

    #[test]
    fn credentials_leave_the_url() {
        let (url, credential) = split_credentials("https://me:secret@example.org/a/b.git", None);
        assert_eq!(url, "https://example.org/a/b.git");
        let header = "Authorization: Basic bWU6c2VjcmV0".to_owned();
        assert_eq!(
            credential,
            Some(("https://example.org/".to_owned(), header))
        );
    }

    #[test]
    fn a_token_is_for_https_alone() {
        assert!(
            split_credentials("https://example.org/a/b", Some("t"))
                .1
                .is_some()
        );
        assert!(
            split_credentials("http://example.org/a/b", Some("t"))
                .1
                .is_none()
        );
        assert!(
            split_credentials("git@example.org:a/b", Some("t"))
                .1
                .is_none()
        );
        assert!(split_credentials("file:///a/b", Some("t")).1.is_none());
    }
}
