//! Patterns for names, as in pytest's configuration.

use globset::{GlobBuilder, GlobMatcher};

/// Minimum number of letters that make a pattern for file names specific.
const MIN_LETTERS: usize = 3;

/// A glob, or a plain text.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    glob: Option<GlobMatcher>,
}

impl Pattern {
    pub(super) fn new(text: String) -> Pattern {
        let whole = match text.contains('/') {
            true => format!("**/{text}"),
            false => text.clone(),
        };
        let build = || {
            let mut builder = GlobBuilder::new(&whole);
            builder.literal_separator(false).build().ok()
        };
        let is_glob = text.contains(['*', '?', '[']);
        let glob = is_glob.then(build).flatten();
        Pattern {
            text,
            glob: glob.map(|glob| glob.compile_matcher()),
        }
    }

    /// Returns whether a file has this name. As in pytest, a pattern with a slash matches the end of the path.
    pub(super) fn matches_path(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        match &self.glob {
            Some(glob) if self.text.contains('/') => {
                glob.is_match(path) || glob.is_match(format!("/{path}"))
            }
            Some(glob) => glob.is_match(name),
            None => name == self.text,
        }
    }

    /// Returns whether a name begins with the text, or matches the glob.
    pub(super) fn begins(&self, name: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.is_match(name),
            None => name.starts_with(self.text.as_str()),
        }
    }

    /// Returns whether the pattern says more of a file name than that it ends in `.py`.
    pub(super) fn is_specific(&self) -> bool {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(".py").unwrap_or(name);
        let mut letters = 0;
        let mut in_set = false;
        for c in stem.chars() {
            match c {
                '[' => in_set = true,
                ']' => in_set = false,
                c if !in_set && c.is_alphanumeric() => letters += 1,
                _ => {}
            }
        }
        letters >= MIN_LETTERS
    }
}
