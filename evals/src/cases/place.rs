//! Where cases run: the environment of a repository at a commit, on a backend.

use std::path::PathBuf;
use std::sync::Arc;

use testwright_sandboxes::environment::{BuildSettings, Environment};
use testwright_sandboxes::repository::Source;
use testwright_sandboxes::sandbox::Result;
use testwright_sandboxes::{Backend, Limits, Sandbox};

use crate::harness::{Harness, Step, offline};
use crate::result::Infrastructure;

/// A repository at a commit, ready to run cases in.
#[derive(Clone)]
pub struct Place {
    pub backend: Arc<dyn Backend>,
    pub source: Source,
    pub environment: Environment,
    /// Where coverage.py comes from.
    pub build: BuildSettings,
    pub limits: Limits,
    /// A program that is the toolbox by that name.
    pub toolbox: PathBuf,
    /// For labels of sandboxes.
    pub purpose: String,
}

impl Place {
    /// Opens a repository (a folder or a URL) at a revision, and builds its environment where that is not there yet.
    pub async fn open(
        harness: &Harness,
        location: &str,
        revision: Option<&str>,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> std::result::Result<Place, Box<Infrastructure>> {
        let (source, environment) = harness.code_at(location, revision, progress).await?;
        Ok(Place::of(harness, source, environment))
    }

    /// Of code whose environment is there.
    pub fn of(harness: &Harness, source: Source, environment: Environment) -> Place {
        Place {
            backend: harness.backend.clone(),
            source,
            environment,
            build: harness.build.clone(),
            limits: harness.limits.clone(),
            toolbox: harness.toolbox.clone(),
            purpose: harness.purpose.clone(),
        }
    }

    /// The repository's Python files, relative to its root.
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
