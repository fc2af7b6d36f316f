//! What settings are read from. Tests give their own; a command takes the process's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::Value;

use super::layer::Layer;
use super::{FILE, Origin};
use crate::error::Result;

#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `$XDG_CONFIG_HOME/testwright/testwright.toml`.
    pub user_file: Option<PathBuf>,
    /// The current folder: its `testwright.toml` is the user's own.
    pub folder: Option<PathBuf>,
    /// The repository under test, where it is a folder. Its `testwright.toml` goes under that of the current
    /// folder, and cannot say where keys are sent or that isolation is left out.
    pub repository: Option<PathBuf>,
    pub variables: BTreeMap<String, String>,
    pub flags: Flags,
}

impl Sources {
    /// Those of this process.
    pub fn of_process(flags: Flags) -> Sources {
        // Variables that are not UTF-8 cannot be ours.
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect();
        let mut sources = Sources {
            folder: std::env::current_dir().ok(),
            variables,
            flags,
            ..Sources::default()
        };
        sources.user_file = sources
            .home_folder("XDG_CONFIG_HOME", ".config")
            .map(|folder| folder.join("testwright").join(FILE));
        sources
    }

    pub fn repository(mut self, folder: impl Into<PathBuf>) -> Self {
        self.repository = Some(folder.into());
        self
    }

    pub(super) fn cache_folder(&self) -> PathBuf {
        self.home_folder("XDG_CACHE_HOME", ".cache")
            .unwrap_or_else(std::env::temp_dir)
            .join("testwright")
    }

    fn home_folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = |name: &str| {
            self.variables
                .get(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        // Relative paths in XDG variables are to be ignored, says their specification.
        set(variable)
            .filter(|path| path.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(below_home)))
    }
}

/// Flags that were given, by the key that each sets.
#[derive(Debug, Clone, Default)]
pub struct Flags(Vec<(String, Value, String)>);

impl Flags {
    /// `None` means that the flag was not given. `key` is as in `run.max-steps`; the flag is called after its
    /// last part.
    pub fn set<T: Serialize>(&mut self, key: &str, value: Option<T>) {
        let Some(Ok(value)) = value.map(Value::try_from) else {
            return;
        };
        let flag = format!("--{}", key.rsplit('.').next().unwrap_or(key));
        self.0.push((key.to_owned(), value, flag));
    }

    pub(super) fn layer(&self) -> Result<Layer> {
        let mut layer = Layer::default();
        for (key, value, flag) in &self.0 {
            let keys = key.split('.').map(str::to_owned).collect();
            layer.push(flag, keys, value.clone(), Origin::Flag(flag.clone()))?;
        }
        Ok(layer)
    }
}

/// Do both name the same folder?
pub(super) fn same(a: &Path, b: Option<&Path>) -> bool {
    let Some(b) = b else { return false };
    let resolved = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    resolved(a) == resolved(b)
}
