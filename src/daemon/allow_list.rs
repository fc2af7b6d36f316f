//! Which repositories clients may name: what the server clones, builds and runs is decided by who started it.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Error, Result};

/// Allowed unless told otherwise.
pub const DEFAULT: &str = "https://github.com/*/*";

#[derive(Debug, Clone)]
pub struct AllowList {
    patterns: Vec<String>,
    set: GlobSet,
    recordings: bool,
}

impl AllowList {
    /// Globs over URLs and absolute paths; `*` stops at a slash.
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

    /// May models be recordings, which are files of the server?
    pub fn allows_recordings(&self) -> bool {
        self.recordings
    }

    /// As they were given.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    pub fn check(&self, repository: &str) -> Result<()> {
        let refused = |cause: &str| {
            let hint = format!("the server allows: {}", self.patterns.join(", "));
            Err(Error::usage("use that repository").cause(cause).hint(hint))
        };
        let parts = repository.split('/');
        let leads_out = parts.clone().any(|part| part == ".." || part == ".");
        let is_odd = |c: char| c.is_control() || c.is_whitespace() || "%?#\\".contains(c);
        if repository.contains(is_odd) || leads_out {
            return refused("it is not a plain address");
        }
        if repository
            .split_once("://")
            .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@'))
        {
            return refused("it carries a name or a password");
        }
        let plain = repository.trim_end_matches('/').trim_end_matches(".git");
        match self.set.is_match(plain) {
            true => Ok(()),
            false => refused("it is not allowed here"),
        }
    }
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_no_pattern_names_is_refused_however_it_is_written() {
        let patterns = [DEFAULT.to_owned(), "/srv/git/*".to_owned()];
        let list = AllowList::new(&patterns, false).unwrap();
        for allowed in [
            "https://github.com/psf/requests",
            "https://github.com/psf/requests.git",
            "https://github.com/psf/requests/",
            "/srv/git/one",
        ] {
            list.check(allowed).unwrap();
        }
        for refused in [
            "http://github.com/psf/requests",
            "https://github.com.example.org/psf/requests",
            "https://github.com@127.0.0.1/psf/requests",
            "https://user:word@github.com/psf/requests",
            "https://github.com/../../etc",
            "https://github.com/psf/requests/../../..",
            "https://github.com/psf/%2e%2e",
            "https://127.0.0.1/psf/requests",
            "http://169.254.169.254/latest/meta-data",
            "file:///etc",
            "ext::sh -c id",
            "/etc",
            "/srv/git/../../etc",
            "/srv/git/one/two",
            "srv/git/one",
            ".",
            "",
            "https://github.com/psf/requests\n",
        ] {
            assert!(list.check(refused).is_err(), "{refused}");
        }
    }
}
