//! Detection of what CI installs for the tests: requirements files, extras and dependency groups in the commands of
//! workflows, Makefiles, tox and nox.

use std::collections::BTreeSet;

use super::text;
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Requirements files, extras and groups, in the order of the commands.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CiInstalls {
    pub files: Vec<String>,
    pub extras: Vec<String>,
    pub groups: Vec<String>,
}

/// Files with commands, besides workflows.
const FILES: [&str; 12] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "tox.ini",
    "noxfile.py",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".circleci/config.yml",
    "azure-pipelines.yml",
    "appveyor.yml",
    "scripts/test.sh",
];

/// Words in the names of files, extras and groups that are for other purposes than tests.
const OTHER_PURPOSES: [&str; 12] = [
    "doc", "lint", "format", "style", "typ", "mypy", "release", "publish", "deploy", "build",
    "bench", "prod",
];

static PIP: Pattern =
    Pattern::new(r"(?:(?:pip3?|session|uv pip)[ .]install\b|pip-sync )((?:\\\n|[^\n;&|])*)");
static PROJECT_TOOL: Pattern =
    Pattern::new(r"(?:uv (?:sync|run)|poetry install|pdm (?:install|sync))\b((?:\\\n|[^\n;&|])*)");

/// Returns what the repository's own commands install for its tests.
pub(super) fn read(tree: &Tree) -> Result<CiInstalls> {
    let mut installs = CiInstalls::default();
    for text in test_commands(tree)? {
        installs.add(&text);
    }
    installs.files.retain(|path| tree.contains(path));
    Ok(installs)
}

/// Returns those of the folders that the commands name, as in `pip install ./core[test]`. A variable can hold the
/// arguments, so any place counts.
pub(super) fn named_folders(tree: &Tree, folders: &[String]) -> Result<Vec<String>> {
    let mut named = BTreeSet::new();
    for text in test_commands(tree)? {
        for word in words(&text) {
            let path = word.split('[').next().unwrap_or(&word);
            let folder = path.strip_prefix("./").unwrap_or_default();
            named.extend(folders.iter().filter(|other| *other == folder).cloned());
        }
    }
    Ok(named.into_iter().collect())
}

/// Returns the paths of files with commands: workflows, and the other usual ones, which may not exist.
pub(in crate::recipe) fn command_files(tree: &Tree) -> impl Iterator<Item = &str> {
    let is_workflow = |path: &&str| {
        path.starts_with(".github/workflows/")
            && (path.ends_with(".yml") || path.ends_with(".yaml"))
    };
    tree.paths().filter(is_workflow).chain(FILES)
}

/// Returns the texts of the files with commands that run tests.
fn test_commands(tree: &Tree) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for path in command_files(tree) {
        let text = text(tree, path)?.unwrap_or_default();
        if runs_tests(&text) {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// Returns whether a workflow or another file with commands runs tests.
pub(in crate::recipe) fn runs_tests(text: &str) -> bool {
    [
        "pytest",
        "py.test",
        "unittest",
        "nosetests",
        "nose2",
        "make test",
        "make check",
        "tox",
        "nox",
        "hatch",
        "manage.py test",
        "runtests",
        "run_tests",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

/// Returns whether the name of a file, extra, group or environment is for another purpose than tests.
pub(super) fn is_for_other_purpose(name: &str) -> bool {
    let lower = name.to_lowercase();
    OTHER_PURPOSES.iter().any(|word| lower.contains(word)) && !lower.contains("test")
}

impl CiInstalls {
    fn add(&mut self, text: &str) {
        let arguments = |pattern: &Pattern| -> Vec<Vec<String>> {
            let calls = pattern.captures_iter(text);
            calls.map(|call| words(&call[1])).collect()
        };
        for words in arguments(&PIP) {
            self.add_pip(&words);
        }
        for words in arguments(&PROJECT_TOOL) {
            self.add_project_tool(&words);
        }
    }

    fn add_pip(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let file = match word.as_str() {
                "-r" | "--requirement" | "--requirements" => words.get(at + 1).cloned(),
                _ => ["--requirement=", "-r"]
                    .iter()
                    .find_map(|option| word.strip_prefix(option))
                    .filter(|_| {
                        word.starts_with("-r") && !word.starts_with("--") || word.contains('=')
                    })
                    .map(str::to_owned),
            };
            if let Some(file) = file {
                push(&mut self.files, file.trim_start_matches("./"));
            }
            if word == "--group"
                && let Some(group) = words.get(at + 1)
            {
                push(&mut self.groups, group);
            }
            if let Some((target, extras)) = word.split_once('[')
                && (target == "." || target.ends_with('/'))
            {
                for extra in extras.trim_end_matches(']').split(',') {
                    push(&mut self.extras, extra);
                }
            }
        }
    }

    fn add_project_tool(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let (option, joined) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let Some(value) = joined.or_else(|| words.get(at + 1).cloned()) else {
                continue;
            };
            let into = match option {
                "--group" | "--only-group" | "--with" | "-G" => &mut self.groups,
                "--extra" | "--extras" | "-E" => &mut self.extras,
                _ => continue,
            };
            for name in value.split([',', ' ']) {
                push(into, name);
            }
        }
    }
}

/// Splits a command's arguments, also as Python strings: `"-r", "x.txt"`.
fn words(arguments: &str) -> Vec<String> {
    let words = arguments.split(|c: char| c.is_whitespace() || "()\"'\\".contains(c));
    let words = words.map(|word| word.trim_end_matches(','));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn push(all: &mut Vec<String>, name: &str) {
    let name = name.trim();
    let is_plain = !name.is_empty() && !name.contains(['$', '{', '*']) && !name.starts_with('-');
    if is_plain && !is_for_other_purpose(name) && !all.iter().any(|other| other == name) {
        all.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_files_extras_and_groups() {
        let mut installs = CiInstalls::default();
        installs.add(
            "  - run: pip install -r development.txt -rmore.txt -r docs/requirements.txt\n  - run: uv pip install \
             --requirement=a.txt -e '.[socks,doc]'\n  - run: uv sync --group ci --extra=fast\n  - run: poetry install \
             --with qa,docs -E redis\nsession.install(\"-r\", \"nox.txt\", \".[all]\")\npip install $X --no-deps -r ${F}\npip install --group unit\n@nox.session\ndef tests(session): pass\n",
        );
        assert_eq!(
            installs.files,
            ["development.txt", "more.txt", "a.txt", "nox.txt"]
        );
        assert_eq!(installs.extras, ["socks", "all", "fast", "redis"]);
        assert_eq!(installs.groups, ["unit", "ci", "qa"]);
    }
}
