//! What the toolbox is given when it starts: where the code under test is and how to run it.
//!
//! The host writes it as one JSON argument. Paths are paths inside the sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The checkout of the old code; every file access of a tool stays inside it.
    pub workspace: PathBuf,
    /// A tar archive of the tracked files at the base commit (paths relative to the workspace):
    /// what `revert`, `show_patch` and `submit` compare with.
    pub base_archive: PathBuf,
    /// A folder outside the workspace for what the programs write that tools start: their home, caches.
    pub scratch: PathBuf,
    /// A folder for the toolbox's own files, to which the programs that it starts get no right to write. It should be
    /// outside of every folder that they need to write to. Default: a folder in `scratch`, which protects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<PathBuf>,
    /// The interpreter of the prepared environment.
    pub python: PathBuf,
    /// Added to the environment of every process that a tool starts.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub runner: Runner,
    /// Seconds that one run of tests may take (also the most that a caller can ask for).
    #[serde(default = "default_test_seconds")]
    pub test_seconds: u64,
    /// Runs of tests that are made at one time; default: as many as there are processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<usize>,
    /// Lines that tests are wanted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<WantedLines>,
}

/// Lines that are to run, and what tells whether they do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedLines {
    /// A folder that holds coverage.py for the interpreter.
    pub package: PathBuf,
    /// By path relative to the workspace.
    pub lines: BTreeMap<String, BTreeSet<u32>>,
}

impl Config {
    /// The toolbox's own folder.
    pub fn private(&self) -> PathBuf {
        match &self.private {
            Some(folder) => folder.clone(),
            None => self.scratch.join("private"),
        }
    }

    /// The words with which a toolbox starts a program that can neither write to the folder in which its own folder is (where
    /// it has none: in which it is itself), nor reach a toolbox that runs. More words follow: the program's.
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

/// How tests are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    #[serde(default)]
    pub kind: RunnerKind,
    /// Options put before what is to be run, e.g. `-W ignore` for pytest, `-p 'check_*.py'` for unittest,
    /// `--settings=test_sqlite` for Django.
    #[serde(default)]
    pub options: Vec<String>,
}

impl Default for Runner {
    fn default() -> Self {
        Runner {
            kind: RunnerKind::Pytest,
            options: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunnerKind {
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
    /// By the name that recipes use.
    pub fn named(name: &str) -> Option<RunnerKind> {
        serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
    }
}
