//! How an environment is built: Python version, packages, install steps, test runner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One recipe, as written in `sandboxes/recipes/*.toml`, under `[environment]` in a repository's
/// `testwright.toml`, or found out by looking at the repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Recipe {
    /// CPython version, `X.Y`.
    pub python: Option<String>,
    /// A ready image instead of a bare Python (Docker only). Its interpreter is `interpreter`.
    pub image: Option<String>,
    /// Path of the interpreter inside `image`; default: `python` of its PATH.
    pub interpreter: Option<String>,
    /// Debian packages (Docker only; `local` uses what the host has, and says what is missing).
    pub system_packages: Vec<String>,
    /// PEP 508 requirements, installed before the package.
    pub requirements: Vec<String>,
    /// Requirements files of the repository.
    pub requirements_files: Vec<String>,
    /// Packages are resolved as of this date (RFC 3339, or `never`). Default: the base commit's date.
    pub exclude_newer: Option<String>,
    /// Pre-releases are allowed when packages are resolved.
    pub prereleases: bool,
    /// Shell commands run in the workspace before the package is installed.
    pub before_install: Vec<String>,
    /// Arguments for `uv pip install`, run in the workspace. Default: `["-e", "."]`; empty: not installed.
    pub install: Option<Vec<String>>,
    /// Shell commands run in the workspace after it.
    pub after_install: Vec<String>,
    /// Environment of every process: while building and while tools run.
    pub env: BTreeMap<String, String>,
    /// Put a one-commit git repository into the workspace (for packages that ask git for their version).
    pub git: bool,
    pub runner: Runner,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Runner {
    /// `pytest`.
    pub kind: String,
    /// Options put before the node ids.
    pub options: Vec<String>,
}

impl Default for Runner {
    fn default() -> Self {
        Runner {
            kind: "pytest".to_owned(),
            options: Vec::new(),
        }
    }
}
