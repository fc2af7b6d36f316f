//! The current code and its configuration: all that a test run needs.

use std::fs;
use std::path::{Path, PathBuf};

use super::Layout;
use crate::config::Config;
use crate::error::{Result, ToolError};

/// A checkout, without the content of the base commit.
pub struct Checkout {
    config: Config,
    /// The workspace folder, with links resolved.
    root: PathBuf,
    layout: Layout,
}

impl Checkout {
    /// Opens a checkout. This is fast for repositories of any size, since it reads only their test configuration.
    ///
    /// # Errors
    ///
    /// Fails if the workspace folder cannot be opened.
    pub fn open(config: Config) -> Result<Checkout> {
        let root = fs::canonicalize(&config.workspace).map_err(|e| {
            ToolError::Broken(format!(
                "the workspace {} cannot be opened: {e}",
                config.workspace.display()
            ))
        })?;
        let layout = Layout::read(&root).with_runner(&config.runner);
        Ok(Checkout {
            config,
            root,
            layout,
        })
    }

    /// Replaces the layout that was read from the files. The options of the runner still apply.
    pub fn with_layout(self, layout: Layout) -> Checkout {
        let layout = layout.with_runner(&self.config.runner);
        Checkout { layout, ..self }
    }

    /// Returns the settings that the checkout was opened with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the root folder: absolute, with links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the layout of the tests, from the repository's own pytest configuration when the checkout was opened.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
