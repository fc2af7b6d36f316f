//! The files of a repository that a text names.

use std::collections::BTreeSet;

use crate::pattern::Pattern;
use crate::repository::Tree;

/// Maximum number of names in a text that are looked up.
const MAX_NAMES: usize = 200;

static PATH: Pattern = Pattern::new(r"[\w./+-]*/[\w.+-]+\.\w+");

/// Returns the files that a text names by their path, or by a unique end of it, as relative to a project. The path may
/// also be the end of an address, or of a path on another machine.
pub(super) fn named_paths(tree: &Tree, text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in PATH.find_iter(text).take(MAX_NAMES) {
        let name = name.as_str().trim_start_matches(['.', '/']);
        if !name.contains('/') {
            continue;
        }
        let ends = std::iter::successors(Some(name), |end| Some(end.split_once('/')?.1));
        let mut ends = ends.take_while(|end| end.contains('/'));
        let path = ends.find(|end| tree.contains(end)).or_else(|| {
            let is_end = |path: &&str| {
                let start = path.strip_suffix(name);
                start.is_some_and(|start| start.ends_with('/'))
            };
            let mut paths = tree.paths().filter(is_end);
            paths.next().filter(|_| paths.next().is_none())
        });
        found.extend(path.map(str::to_owned));
    }
    found
}
