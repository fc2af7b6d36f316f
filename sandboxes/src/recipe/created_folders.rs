//! Folders that CI creates before it runs the tests: they are not committed, but hold databases, uploads or logs.

use std::collections::BTreeSet;

use super::detect::{runs_tests, text, workflows};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// A command `mkdir` in a script of YAML, with its arguments.
static MKDIR: Pattern =
    Pattern::new(r"(?m)(?:^[ \t]*(?:- )?(?:run:[ \t]*)?|[;&|][ \t]*)mkdir[ \t]+([^\n;&|]*)");

/// Names of folders that only builds need.
const OF_BUILDS: [&str; 3] = ["build", "dist", "wheelhouse"];

/// Returns the command that creates the folders, if there are any.
pub(super) fn command(tree: &Tree) -> Result<Option<String>> {
    let mut folders = BTreeSet::new();
    for path in workflows(tree).chain([".gitlab-ci.yml", ".travis.yml"]) {
        let text = text(tree, path)?.unwrap_or_default();
        if runs_tests(&text) {
            folders.extend(folders_in(&text));
        }
    }
    folders.retain(|folder| !tree.has_folder(folder) && !tree.contains(folder));
    let folders: Vec<String> = folders.into_iter().collect();
    Ok((!folders.is_empty()).then(|| format!("mkdir -p {}", folders.join(" "))))
}

/// Returns the folders of the repository that a text creates.
fn folders_in(text: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for call in MKDIR.captures_iter(text) {
        // The words of an expression say nothing.
        if call[1].contains("${{") {
            continue;
        }
        let words = call[1].split_whitespace();
        let words = words.map(|word| word.trim_matches(['"', '\'']).trim_start_matches("./"));
        folders.extend(words.filter(|word| is_inside(word)).map(str::to_owned));
    }
    folders
}

/// Returns whether a word is a path in the repository that tests may need, and neither an option nor an expression.
fn is_inside(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let first = word.split('/').next().unwrap_or_default();
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word.chars().all(is_plain)
        && !word.split('/').any(|part| part == "..")
        && !OF_BUILDS.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::folders_in;

    #[test]
    fn only_folders_inside_repository_count() {
        let text = "- run: |\n    mkdir data\n    cd x && mkdir -p ./var/log 'run' && cd y\n- run: mkdir -p ~/.ssh $HOME/y \
                    /tmp/z ../conf build/wheel\n- run: mkdir ${{ a }}\n# A mkdir of c\n";
        assert_eq!(folders_in(text), ["data", "var/log", "run"]);
    }
}
