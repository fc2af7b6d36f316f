//! Environments: a recipe applied to the old code, built once, cached by content.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::recipe::Recipe;

/// A prepared environment: a saved state of a backend, and what one needs to know to run tests in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Name of the saved state, for [`crate::Start::Saved`].
    pub saved: String,
    pub recipe: Recipe,
    /// `built-in NAME`, `testwright.toml`, or `detected from …`.
    pub origin: String,
    /// Path of the interpreter inside.
    pub python: PathBuf,
    /// Path of the base archive inside (the tracked files at the base commit, a tar).
    pub base_archive: PathBuf,
    /// Environment variables for every process.
    pub env: BTreeMap<String, String>,
    /// The log of the build on the host.
    pub log: PathBuf,
    /// It was there already.
    pub cached: bool,
    /// Seconds that the build took (when it was built).
    pub seconds: f64,
    /// What is installed, `name==version`, sorted.
    pub packages: Vec<String>,
    /// What the user should know, e.g. a system package that is missing.
    pub notes: Vec<String>,
}
