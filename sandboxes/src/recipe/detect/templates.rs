//! Files that tests need and that developers copy from a template in the repository, such as `secrets.py` from
//! `secrets.py-dist`.

use crate::pattern::Pattern;
use crate::repository::Tree;

static ENDING: Pattern = Pattern::new("[.-](?:dist|example|sample|template)$");

/// Returns commands that copy the templates beside tests, unless the target exists.
pub(super) fn copies(tree: &Tree) -> Vec<String> {
    let copy = |path: &str| {
        let target = &path[..ENDING.find(path)?.start()];
        let beside_tests = path
            .split('/')
            .rev()
            .skip(1)
            .any(|f| f == "test" || f == "tests");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let kind = [".py", ".cfg", ".ini", ".json", ".toml", ".yml", ".yaml"];
        (beside_tests
            && kind.iter().any(|kind| target.ends_with(kind))
            && path.chars().all(plain)
            && !path.starts_with('-')
            && !tree.contains(target))
        .then(|| format!("cp {path} {target}"))
    };
    tree.paths().filter_map(copy).collect()
}
