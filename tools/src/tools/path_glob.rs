//! Path globs, as models write them.

use globset::{GlobBuilder, GlobMatcher};

use crate::tool::{Result, refusal};

/// Parses a glob for relative paths. `*` stays within a folder, `**` does not. Without a slash, it matches the file
/// name only.
///
/// # Errors
///
/// Fails if the pattern is not a valid glob.
pub(super) fn path_glob(pattern: &str) -> Result<GlobMatcher> {
    let whole = match pattern.trim_start_matches("./") {
        p if p.contains('/') => p.trim_start_matches('/').to_owned(),
        p => format!("**/{p}"),
    };
    GlobBuilder::new(&whole)
        .literal_separator(true)
        .build()
        .map(|g| g.compile_matcher())
        .map_err(|e| refusal!("`{pattern}` is not a glob: {}.", e.kind()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn star_stays_within_folder() {
        let matches = |pattern: &str, path: &str| path_glob(pattern).unwrap().is_match(path);
        assert!(matches("tests/*.py", "tests/test_a.py"));
        assert!(!matches("tests/*.py", "tests/unit/test_a.py"));
        assert!(matches("./tests/**/*.py", "tests/test_a.py"));
        assert!(matches("tests/**/*.py", "tests/unit/deep/test_a.py"));
        assert!(matches("test_*.py", "tests/unit/test_a.py"));
        assert!(!matches("test_*.py", "test_a/helper.py"));
        assert!(matches("/setup.py", "setup.py"));
        assert!(path_glob("[").is_err());
    }
}
