//! What the `.gitignore` files of a workspace leave out.
//!
//! The walker would read them itself, and wait for ever where one is a pipe, or fill the memory where one has no end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::regular;

/// A larger file counts as none: those of large projects have some ten thousand bytes.
const MAX_RULES_LEN: u64 = 256 << 10;

/// The rules below a folder; ignore files above it do not count.
pub struct IgnoreRules {
    start: PathBuf,
    /// By folder.
    known: RwLock<HashMap<PathBuf, Option<Arc<Rules>>>>,
}

/// Of one folder, and of those around it.
struct Rules {
    own: Gitignore,
    around: Option<Arc<Rules>>,
}

impl IgnoreRules {
    pub fn new(start: &Path) -> Self {
        IgnoreRules {
            start: start.to_path_buf(),
            known: RwLock::default(),
        }
    }

    /// Is it left out? Asked for an entry only where none of the folders around it is.
    pub fn contains(&self, path: &Path, is_folder: bool) -> bool {
        let mut rules = path.parent().and_then(|folder| self.rules(folder));
        // The nearest file that says something counts.
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
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = known.get(folder) {
            return rules.clone();
        }
        drop(known);
        // A walk has asked for the folders around it before.
        let around = match folder == self.start {
            true => None,
            false => folder.parent().and_then(|parent| self.rules(parent)),
        };
        let rules = match read(folder) {
            Some(own) => Some(Arc::new(Rules { own, around })),
            None => around,
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(folder.to_path_buf(), rules.clone());
        rules
    }
}

/// As git reads it: not through a link. A line that cannot be understood is as none.
fn read(folder: &Path) -> Option<Gitignore> {
    let bytes = regular::read_itself(&folder.join(".gitignore"), MAX_RULES_LEN)
        .ok()?
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
