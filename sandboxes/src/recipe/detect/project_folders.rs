//! The folders below the root that have build files.

use std::collections::BTreeSet;

use crate::pattern::Pattern;
use crate::repository::Tree;

/// Maximum number of folders whose metadata is read.
const MAX_READ: usize = 300;

/// Folders with code that is not part of the product.
static EXCLUDED: Pattern = Pattern::new(concat!(
    "(?i)^(?:bench(?:marks)?|cookiecutter|demo|docs?|examples?|fixtures|node_modules|samples?|templates?",
    "|test(?:s|data|ing)?|third_party|_?vendor|vendored)$"
));

/// Returns the folders below the root that have build files, in the order of their paths.
pub(super) fn project_folders(tree: &Tree) -> Vec<String> {
    let folder = |path: &str| {
        let (folder, name) = path.rsplit_once('/')?;
        let is_file = matches!(name, "pyproject.toml" | "setup.py" | "setup.cfg");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+ ".contains(c);
        (is_file && folder.chars().all(is_plain)).then(|| folder.to_owned())
    };
    let folders: BTreeSet<String> = tree.paths().filter_map(folder).collect();
    folders.into_iter().take(MAX_READ).collect()
}

/// Returns whether a folder has code that is not part of the product.
pub(super) fn is_excluded(folder: &str) -> bool {
    let mut parts = folder.split('/');
    parts.any(|part| part.starts_with('.') || EXCLUDED.is_match(part))
}
