//! The environment that cases run in: a repository at a commit, on a backend.

use std::path::PathBuf;
use std::sync::Arc;

use testwright_sandboxes::environment::{BuildSettings, Environment};
use testwright_sandboxes::repository::Source;
use testwright_sandboxes::sandbox::Result;
use testwright_sandboxes::{Backend, Limits, Sandbox};

use crate::harness::{Harness, Step, offline};
use crate::result::Infrastructure;

/// A repository at a commit, with the environment to run cases in.
#[derive(Clone)]
pub struct CaseEnvironment {
    /// Backend that runs the sandboxes.
    pub backend: Arc<dyn Backend>,
    /// The repository at the commit.
    pub source: Source,
    /// The built environment.
    pub environment: Environment,
    /// Settings for the installation of coverage.py.
    pub build: BuildSettings,
    /// Resource limits of each sandbox.
    pub limits: Limits,
    /// Path of the toolbox executable on this machine.
    pub toolbox: PathBuf,
    /// Text for the labels of sandboxes.
    pub purpose: String,
}

impl CaseEnvironment {
    /// Opens a repository (a folder or a URL) at a revision, and builds its environment if necessary.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be opened or its environment cannot be built.
    pub async fn open(
        harness: &Harness,
        location: &str,
        revision: Option<&str>,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> std::result::Result<CaseEnvironment, Box<Infrastructure>> {
        let code = harness.changed_code_at(location, revision, Ok, progress);
        let (source, environment) = code.await?;
        Ok(CaseEnvironment {
            backend: harness.backend.clone(),
            source,
            environment,
            build: harness.build.clone(),
            limits: harness.limits.clone(),
            toolbox: harness.toolbox.clone(),
            purpose: harness.purpose.clone(),
        })
    }

    /// Returns the repository's Python files, relative to its root.
    ///
    /// # Errors
    ///
    /// Fails if the tree of the source cannot be read.
    pub fn python_files(&self) -> Result<Vec<String>> {
        let tree = self.source.tree()?;
        let paths = tree.paths().filter(|path| path.ends_with(".py"));
        Ok(paths.map(str::to_owned).collect())
    }

    pub(super) async fn start(&self) -> Result<Box<dyn Sandbox>> {
        let spec = offline(&self.environment.saved, &self.limits, &self.purpose);
        self.backend.start(&spec).await
    }
}
