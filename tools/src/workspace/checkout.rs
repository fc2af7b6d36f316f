//! The code as it is there and how it is run: all that a run of tests needs.

use std::fs;
use std::path::{Path, PathBuf};

use super::Layout;
use crate::config::Config;
use crate::error::ToolError;

/// A checkout, without what the base commit held.
pub struct Checkout {
    config: Config,
    /// Links resolved.
    root: PathBuf,
    layout: Layout,
}

impl Checkout {
    /// Takes moments however big the repository is: of it, its test configuration is all that is read.
    pub fn open(config: Config) -> Result<Checkout, ToolError> {
        let root = fs::canonicalize(&config.workspace).map_err(|e| {
            ToolError::Broken(format!(
                "the workspace {} cannot be opened: {e}",
                config.workspace.display()
            ))
        })?;
        let layout = Layout::read(&root);
        Ok(Checkout {
            config,
            root,
            layout,
        })
    }

    /// With this layout instead of what the files now say.
    pub fn with_layout(self, layout: Layout) -> Checkout {
        Checkout { layout, ..self }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where tests are, by the repository's own pytest configuration at the time of opening.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
