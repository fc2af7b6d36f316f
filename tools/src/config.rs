//! Settings of a toolbox: where the code under test is, and how to run it.
//!
//! The host passes them as one JSON argument. All paths are paths inside the sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Settings of a toolbox: the checkout that it serves, its interpreter and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The checkout of the old code; every file access of a tool stays inside it.
    pub workspace: PathBuf,
    /// A tar archive of the tracked files at the base commit, with paths relative to the workspace.
    /// `revert`, `show_patch` and `submit` compare with it.
    pub base_archive: PathBuf,
    /// A folder outside the workspace for files of the programs that tools start: their home, caches.
    pub scratch: PathBuf,
    /// A folder for the toolbox's own files, which the programs it starts may not write to. It should be
    /// outside every folder that they need to write to. The default is a folder in `scratch`, which protects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<PathBuf>,
    /// The interpreter of the prepared environment.
    pub python: PathBuf,
    /// Variables added to the environment of every process that a tool starts.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Test runner of the repository, and its options. Default: pytest.
    #[serde(default)]
    pub runner: Runner,
    /// Maximum seconds for one test run; callers cannot ask for more.
    #[serde(default = "default_test_seconds")]
    pub test_seconds: u64,
    /// Maximum concurrent test runs. By default, the number of processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<usize>,
    /// Lines that tests are requested for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<WantedLines>,
}

/// Lines that the tests should run, and the package that measures them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedLines {
    /// A folder that holds coverage.py for the interpreter.
    pub package: PathBuf,
    /// Line numbers by path, relative to the workspace.
    pub lines: BTreeMap<String, BTreeSet<u32>>,
}

impl Config {
    /// Returns the folder of the toolbox's own files.
    pub fn private(&self) -> PathBuf {
        let own = self.private.clone();
        own.unwrap_or_else(|| self.scratch.join("private"))
    }

    /// Returns the command prefix that starts a program in confinement; append the program and its arguments. The
    /// program cannot reach a running toolbox, or write to the parent of the private folder. Without a private folder,
    /// the folder of the toolbox is protected instead.
    ///
    /// # Errors
    ///
    /// Fails if the configuration cannot be encoded as JSON.
    pub fn confine(&self, toolbox: &Path) -> serde_json::Result<Vec<String>> {
        let config = Config {
            private: self
                .private
                .as_deref()
                .unwrap_or(toolbox)
                .parent()
                .map(Path::to_owned),
            ..self.clone()
        };
        let (toolbox, config) = (toolbox.to_string_lossy(), serde_json::to_string(&config)?);
        let words = [&*toolbox, "confine", "--config", &config, "--"];
        Ok(words.map(str::to_owned).to_vec())
    }
}

fn default_test_seconds() -> u64 {
    300
}

/// The test runner and its options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// Program that runs the tests. Default: pytest.
    #[serde(default)]
    pub kind: RunnerKind,
    /// Options before the tests to run, e.g. `-W ignore` for pytest, `-p 'check_*.py'` for unittest,
    /// `--settings=test_sqlite` for Django.
    #[serde(default)]
    pub options: Vec<String>,
    /// Folders of projects below the workspace. pytest runs the tests of each from its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
}

/// A supported test runner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunnerKind {
    /// `python -m pytest`.
    #[default]
    Pytest,
    /// `python -m unittest`.
    Unittest,
    /// Django's own `tests/runtests.py`.
    Django,
    /// SymPy's own `bin/test`.
    Sympy,
}

impl RunnerKind {
    /// Returns the kind with this name, as used in recipes.
    pub fn named(name: &str) -> Option<RunnerKind> {
        serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
    }
}
