//! Globs of paths, as models write them.

use globset::{Glob, GlobMatcher};

use crate::tool::ToolError;

/// A glob for relative paths; without a slash it is about the name alone.
pub fn path_glob(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let whole = match pattern.trim_start_matches("./") {
        p if p.contains('/') => p.trim_start_matches('/').to_owned(),
        p => format!("**/{p}"),
    };
    Glob::new(&whole)
        .map(|g| g.compile_matcher())
        .map_err(|e| ToolError::Refused(format!("`{pattern}` is not a glob: {}.", e.kind())))
}
