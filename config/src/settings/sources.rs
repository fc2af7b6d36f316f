//! The sources of settings. Tests pass their own; a command uses those of its process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::Value;

use super::layer::{Layer, Trust};
use super::{FILE, Origin, READING};
use crate::error::{Error, Kind, Result};

/// Variable that names a settings file, in addition to `~/.config/testwright/testwright.toml`.
pub(super) const CONFIG_VARIABLE: &str = "TESTWRIGHT_CONFIG";

/// The sources of settings.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The user's own file, `$XDG_CONFIG_HOME/testwright/testwright.toml`.
    pub user_file: Option<PathBuf>,
    /// A file named by the user (`--config`); otherwise the variable `TESTWRIGHT_CONFIG` may name one.
    pub config: Option<PathBuf>,
    /// The current folder. Its `testwright.toml` is untrusted: the folder may hold any code.
    pub folder: Option<PathBuf>,
    /// The repository under test, if it is a folder. Its `testwright.toml` belongs to the repository.
    pub repository: Option<PathBuf>,
    /// Environment variables, by name.
    pub variables: BTreeMap<String, String>,
    /// Values from flags of the command line.
    pub flags: Flags,
}

impl Sources {
    /// Returns the sources of this process.
    pub fn of_process(flags: Flags) -> Sources {
        // No variable of testwright can be other than UTF-8.
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

    /// Adds a settings file that the user named.
    pub fn config(mut self, file: Option<PathBuf>) -> Self {
        self.config = file;
        self
    }

    /// Sets the folder of the repository under test.
    pub fn repository(mut self, folder: impl Into<PathBuf>) -> Self {
        self.repository = Some(folder.into());
        self
    }

    /// Returns the file that the user named, which must exist.
    pub(super) fn named_file(&self) -> Result<Option<PathBuf>> {
        let variable = self
            .variables
            .get(CONFIG_VARIABLE)
            .filter(|v| !v.is_empty());
        let path = match (&self.config, variable) {
            (Some(path), _) => path.clone(),
            // The variable applies in any folder, where a relative path would name different files.
            (None, Some(path)) if Path::new(path).is_relative() => {
                return Err(Error::usage(READING)
                    .cause(format!(
                        "{CONFIG_VARIABLE} is `{path}`, which is a relative path"
                    ))
                    .hint("use an absolute path, or --config"));
            }
            (None, Some(path)) => PathBuf::from(path),
            (None, None) => return Ok(None),
        };
        if !path.exists() {
            return Err(Error::usage(READING)
                .cause(format!("{} does not exist", path.display()))
                .hint("pass the path of an existing file"));
        }
        Ok(Some(path))
    }

    /// Returns the folders in which to look for a settings file.
    pub(super) fn searched(&self) -> Vec<(&Path, Trust)> {
        let repository = self.repository.as_deref();
        let folder = self.folder.as_deref();
        let folder = folder.filter(|folder| !same(folder, repository));
        // The repository's file comes last because it is closer to the code.
        let folder = folder.map(|path| (path, Trust::Folder));
        folder
            .into_iter()
            .chain(repository.map(|path| (path, Trust::Repository)))
            .collect()
    }

    /// Returns the lowest layer.
    pub(super) fn defaults(&self) -> Layer {
        let folder = self.home_folder("XDG_CACHE_HOME", ".cache");
        let cache = folder.unwrap_or_else(std::env::temp_dir).join("testwright");
        let cache = Value::String(cache.to_string_lossy().into_owned());
        Layer {
            values: vec![(vec!["cache".to_owned()], cache, Origin::Default)],
            notes: Vec::new(),
        }
    }

    fn home_folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = |name: &str| {
            self.variables
                .get(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        // The XDG specification says to ignore relative paths in these variables.
        set(variable)
            .filter(|path| path.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(below_home)))
    }
}

/// Flags that were given, by the key that each sets.
#[derive(Debug, Clone, Default)]
pub struct Flags(Vec<(String, std::result::Result<Value, toml::ser::Error>, String)>);

impl Flags {
    /// Records a flag, which replaces an earlier value of its key; `None` means that it was not given. `key` looks
    /// like `run.max-steps`; the flag is named after its last part.
    pub fn set<T: Serialize>(&mut self, key: &str, value: Option<T>) {
        let Some(value) = value.map(Value::try_from) else {
            return;
        };
        let flag = format!("--{}", key.rsplit('.').next().unwrap_or(key));
        self.remove(key);
        self.0.push((key.to_owned(), value, flag));
    }

    /// Removes the value of a key.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(other, ..)| other != key);
    }

    pub(super) fn layer(&self) -> Result<Layer> {
        let mut layer = Layer::default();
        for (key, value, flag) in &self.0 {
            let keys = key.split('.').map(str::to_owned).collect();
            // Settings can hold neither paths that are not UTF-8 nor integers of more than 63 bits.
            let value = value
                .clone()
                .map_err(|error| Error::clause(Kind::Usage, format!("invalid {flag}: {error}")))?;
            layer.push(flag, keys, value, Origin::Flag(flag.clone()))?;
        }
        Ok(layer)
    }
}

/// Returns whether both paths name the same folder or file.
pub(super) fn same(a: &Path, b: Option<&Path>) -> bool {
    let Some(b) = b else { return false };
    let resolved = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    resolved(a) == resolved(b)
}
