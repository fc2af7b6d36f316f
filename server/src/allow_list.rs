//! The repositories that clients may name. The operator decides what the server clones, builds and runs.

use std::io;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use testwright_config::error::{Error, Result};

/// Prefix of a folder's path in a URL.
const FILE_SCHEME: &str = "file://";

/// The pattern that applies by default.
pub const DEFAULT: &str = "https://github.com/*/*";

/// Returns the pattern that allows exactly this folder; `None` if its path is not UTF-8.
pub fn folder_pattern(folder: &Path) -> Option<String> {
    folder.to_str().map(globset::escape)
}

/// The repositories that clients may name, and whether models may be recordings.
#[derive(Debug, Clone)]
pub struct AllowList {
    patterns: Vec<String>,
    set: GlobSet,
    recordings: bool,
}

impl AllowList {
    /// Compiles globs over URLs and absolute paths; `*` does not match a slash. A folder must match both as it is given
    /// and after its links are resolved.
    ///
    /// # Errors
    ///
    /// Fails if a pattern is not a valid glob.
    pub fn new(patterns: &[String], recordings: bool) -> Result<Self> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(glob(pattern)?);
        }
        let set = set
            .build()
            .map_err(|error| Error::usage("read the allowed repositories").cause(error))?;
        Ok(AllowList {
            patterns: patterns.to_vec(),
            set,
            recordings,
        })
    }

    /// Returns whether models may be recordings, which are files on the server.
    pub fn allows_recordings(&self) -> bool {
        self.recordings
    }

    /// Returns the patterns, as they were given.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Checks that clients may use a repository.
    ///
    /// # Errors
    ///
    /// Fails with a usage error that lists the allowed repositories if the repository, or the folder it resolves to, is
    /// not allowed.
    pub fn check(&self, repository: &str) -> Result<()> {
        let hint = format!("choose one of {}", self.patterns.join(", "));
        let error = |cause: &str| Error::usage("use that repository").cause(cause);
        let refused = |cause: &str| Err(error(cause).hint(&hint));
        let not_allowed = |cause: &str| {
            let option = "to allow others, start it with `--allow-repository GLOB`";
            Err(error(cause).hint(format!("{hint}; {option}")))
        };
        let parts = repository.split('/');
        let leads_out = parts.clone().any(|part| part == ".." || part == ".");
        let is_odd = |c: char| c.is_control() || c.is_whitespace() || "%?#\\".contains(c);
        if repository.contains(is_odd) || leads_out {
            return refused("it contains blanks, special characters or `..`");
        }
        if repository
            .split_once("://")
            .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@'))
        {
            return refused("it contains a user name or password");
        }
        if !self.set.is_match(without_git_suffix(repository)) {
            return not_allowed("this server does not allow it");
        }
        match target(repository) {
            None => Ok(()),
            Some(Ok(target)) if self.is_target_allowed(&target) => Ok(()),
            Some(_) => not_allowed("it resolves to a folder that this server does not allow"),
        }
    }

    /// Checks the target of a link. Links in the literal part of a pattern were chosen by the operator, so they are
    /// resolved too.
    fn is_target_allowed(&self, target: &str) -> bool {
        let target = without_git_suffix(target);
        let followed = self
            .patterns
            .iter()
            .filter_map(|pattern| resolve_pattern(pattern));
        let mut globs = followed.filter_map(|pattern| glob(&pattern).ok());
        self.set.is_match(target) || globs.any(|glob| glob.compile_matcher().is_match(target))
    }
}

fn without_git_suffix(repository: &str) -> &str {
    repository.trim_end_matches('/').trim_end_matches(".git")
}

/// Splits an address into the prefix and an absolute path; `None` for other addresses.
fn path_in(address: &str) -> Option<(&'static str, &str)> {
    let parts = match address.strip_prefix(FILE_SCHEME) {
        Some(path) => (FILE_SCHEME, path),
        None => ("", address),
    };
    parts.1.starts_with('/').then_some(parts)
}

/// Resolves the folder of an address and keeps the form of the address; `None` if the address is not a path.
fn target(address: &str) -> Option<io::Result<String>> {
    let (before, path) = path_in(address)?;
    let target = resolve_links(Path::new(path));
    Some(target.map(|target| format!("{before}{}", target.display())))
}

/// Resolves links. A missing folder may exist on workers' machines, so only its existing parents are resolved.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) => Ok(resolve_links(folder)?.join(name)),
                _ => Err(error),
            }
        }
        canonical => canonical,
    }
}

/// Resolves links in the folder before the first wildcard of a pattern.
fn resolve_pattern(pattern: &str) -> Option<String> {
    let (before, path) = path_in(pattern)?;
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', '{', '\\']);
    let literal: Vec<&str> = path.split('/').take_while(is_literal).collect();
    let literal = literal.join("/");
    let folder = resolve_links(Path::new(&format!("{literal}/"))).ok()?;
    let folder = globset::escape(folder.to_str()?.trim_end_matches('/'));
    Some(format!("{before}{folder}{}", &path[literal.len()..]))
}

fn glob(pattern: &str) -> Result<Glob> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| {
            Error::usage(format!("read the allowed repository {pattern}")).cause(error)
        })
}

#[cfg(test)]
mod tests;
