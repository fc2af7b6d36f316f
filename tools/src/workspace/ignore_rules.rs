//! Applies the `.gitignore` files of a workspace.
//!
//! The walker could read them itself, but it would block forever on a pipe, or fill the memory with an endless file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::regular;

/// Maximum size of an ignore file; larger ones are not read. Those of large projects have about ten thousand bytes.
const MAX_RULES_LEN: u64 = 256 << 10;

/// The rules below a folder. Ignore files above it are not used.
pub(super) struct IgnoreRules {
    start: PathBuf,
    /// Rules by folder.
    rules_by_folder: RwLock<HashMap<PathBuf, Option<Arc<Rules>>>>,
}

/// Rules of one folder, and of its parent folders.
struct Rules {
    own: Gitignore,
    around: Option<Arc<Rules>>,
}

impl IgnoreRules {
    pub(super) fn new(start: &Path) -> Self {
        IgnoreRules {
            start: start.to_path_buf(),
            rules_by_folder: RwLock::default(),
        }
    }

    /// Returns whether a path is ignored. Its parent folders must not be ignored.
    pub(super) fn contains(&self, path: &Path, is_folder: bool) -> bool {
        let mut rules = path.parent().and_then(|folder| self.rules(folder));
        // The nearest ignore file with a matching rule decides.
        while let Some(here) = rules {
            match here.own.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = here.around.clone(),
            }
        }
        false
    }

    fn rules(&self, folder: &Path) -> Option<Arc<Rules>> {
        let cached_rules = self.rules_by_folder.read();
        let cached_rules = cached_rules.unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = cached_rules.get(folder) {
            return rules.clone();
        }
        drop(cached_rules);
        // The recursion is short: a walk has already asked for the parent folders.
        let around = match folder == self.start {
            true => None,
            false => folder.parent().and_then(|parent| self.rules(parent)),
        };
        let rules = match read(folder) {
            Some(own) => Some(Arc::new(Rules { own, around })),
            None => around,
        };
        let cached_rules = self.rules_by_folder.write();
        let mut cached_rules = cached_rules.unwrap_or_else(PoisonError::into_inner);
        cached_rules.insert(folder.to_path_buf(), rules.clone());
        rules
    }
}

/// Reads an ignore file as git does: links are not followed, and invalid lines are skipped.
fn read(folder: &Path) -> Option<Gitignore> {
    let read = regular::read_itself(&folder.join(".gitignore"), MAX_RULES_LEN);
    let bytes = read.ok()?.ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
