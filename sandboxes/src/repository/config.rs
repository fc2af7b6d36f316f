//! The part of a repository's own configuration that is used: a few values, none of which is executed.

use std::collections::BTreeMap;
use std::path::Path;

use super::git::{Git, failed};
use super::{git_files, limits};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

#[derive(Debug, Default)]
pub(super) struct Config {
    values: BTreeMap<String, String>,
}

impl Config {
    /// Reads the configuration of a git folder. git gets it as text on standard input, so it cannot include other
    /// files.
    pub(super) fn read(git_folder: &Path) -> Result<Config> {
        let path = git_folder.join("config");
        let Some(text) = git_files::read(&path, limits::MAX_MEDIUM_FILE_BYTES)? else {
            return Ok(Config::default());
        };
        if text.is_empty() {
            return Ok(Config::default());
        }
        let arguments = ["config", "--file", "-", "--no-includes", "--null", "--list"];
        let output = Git::nowhere().try_run(&arguments, &text)?;
        if !output.ok {
            let mut error = failed("config", &output.stderr);
            error.kind = ErrorKind::Input;
            return Err(SandboxError {
                message: format!("read {}: {}", path.display(), error.message),
                ..error
            });
        }
        let list = String::from_utf8_lossy(&output.stdout);
        let pairs = list.split('\0').filter_map(|pair| {
            // A key without a value means true.
            let (key, value) = pair.split_once('\n').unwrap_or((pair, "true"));
            (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
        });
        Ok(Config {
            values: pairs.collect(),
        })
    }

    /// Returns the last value of a key. The section and the key must be in lower case.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Returns the value of a boolean key, or `None` if it is missing or not a boolean.
    pub(super) fn get_bool(&self, key: &str) -> Option<bool> {
        match self.get(key)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" | "" => Some(false),
            _ => None,
        }
    }
}
