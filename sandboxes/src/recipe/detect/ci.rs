//! Detection of what CI installs for the tests: requirements files, extras, dependency groups and packages in the
//! commands of workflows, Makefiles, tox and nox, and of scripts that these call.

mod matrix;
mod pip;

use std::collections::{BTreeMap, BTreeSet};

use super::text;
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Requirements files, extras, groups and packages, in the order of the commands.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CiInstalls {
    pub files: Vec<String>,
    pub extras: Vec<String>,
    /// The extras of each command that installs several.
    pub extra_sets: Vec<Vec<String>>,
    pub groups: Vec<String>,
    pub has_all_extras: bool,
    pub has_all_groups: bool,
    /// Requirements of single packages.
    pub packages: Vec<String>,
    /// Files with the commands that install the packages.
    pub package_sources: Vec<String>,
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

/// Maximum number of scripts that are read because a file with commands names them.
const MAX_SCRIPTS: usize = 20;
/// Maximum length of such a script, because many files may call it.
const MAX_SCRIPT_LEN: usize = 64 << 10;

/// Maximum length of the part of a line that is searched for signs of prose.
const MAX_LINE_LEN: usize = 300;

/// A word that may be the path of a script.
static SCRIPT: Pattern = Pattern::new(r"(?:\./)?([\w.-]+(?:/[\w.-]+)+|[\w-]+\.sh)\b");

/// The title of a step in YAML, which describes a command in words.
static TITLE: Pattern = Pattern::new(r"^\s*(?:-\s+)?(?:name|displayName|description|title):");

static PIP: Pattern =
    Pattern::new(r"(?:(?:pip3?|uv pip)[ .]install\b|pip-sync )((?:\\\n|[^\n;&|])*)");
static PROJECT_TOOL: Pattern =
    Pattern::new(r"(?:uv (?:sync|run)|poetry install|pdm (?:install|sync))\b((?:\\\n|[^\n;&|])*)");

/// Returns what the repository's own commands install for its tests.
pub(super) fn read(tree: &Tree) -> Result<CiInstalls> {
    let mut installs = CiInstalls::default();
    for (path, text) in test_commands(tree)? {
        let before = installs.packages.len();
        installs.add(&matrix::with_values(&text));
        if installs.packages.len() > before {
            installs.package_sources.push(path);
        }
    }
    installs.files.retain(|path| tree.contains(path));
    Ok(installs)
}

/// Returns the requirements files that the job of CI with this one installs, in the order of its commands. Returns this one
/// alone if there is no such job.
pub(super) fn files_of_job(tree: &Tree, path: String) -> Result<Vec<String>> {
    for (_, text) in test_commands(tree)? {
        for steps in matrix::with_values(&text).split("steps:") {
            let mut job = CiInstalls::default();
            job.add(steps);
            if job.files.contains(&path) {
                job.files.retain(|path| tree.contains(path));
                return Ok(job.files);
            }
        }
    }
    Ok(vec![path])
}

/// Returns those of the folders that the commands name, as in `pip install ./core[test]`. A variable can hold the
/// arguments, so any place counts.
pub(super) fn named_folders(tree: &Tree, folders: &[String]) -> Result<Vec<String>> {
    let mut named = BTreeSet::new();
    for (_, text) in test_commands(tree)? {
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
    workflows(tree).chain(FILES)
}

/// Returns the paths of GitHub's workflows.
pub(in crate::recipe) fn workflows(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.paths().filter(|path| is_workflow(path))
}

/// Returns whether a path is that of a workflow of GitHub.
pub(in crate::recipe) fn is_workflow(path: &str) -> bool {
    path.starts_with(".github/workflows/") && (path.ends_with(".yml") || path.ends_with(".yaml"))
}

/// Returns the files with commands that run tests: their paths, and their texts with those of the scripts that they call.
pub(super) fn test_commands(tree: &Tree) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    let mut scripts: BTreeMap<String, String> = BTreeMap::new();
    for path in command_files(tree) {
        let mut text = text(tree, path)?.unwrap_or_default();
        for script in called_scripts(tree, &text) {
            if !scripts.contains_key(&script) && scripts.len() < MAX_SCRIPTS {
                let content = super::text(tree, &script)?;
                let content = content.filter(|content| content.len() <= MAX_SCRIPT_LEN);
                scripts.insert(script.clone(), content.unwrap_or_default());
            }
            if let Some(content) = scripts.get(&script) {
                text.push('\n');
                text.push_str(content);
            }
        }
        if runs_tests(&text) {
            all.push((path.to_owned(), text));
        }
    }
    Ok(all)
}

/// Returns the shell scripts of the repository that a text names, each once.
fn called_scripts(tree: &Tree, text: &str) -> Vec<String> {
    let paths = SCRIPT.captures_iter(text).map(|word| word[1].to_owned());
    let is_script = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        tree.contains(path) && (name.ends_with(".sh") || !name.contains('.'))
    };
    let mut seen = BTreeSet::new();
    let scripts = paths.filter(is_script);
    scripts.filter(|path| seen.insert(path.clone())).collect()
}

/// Programs that run tests, and commands that start them.
static RUNS_TESTS: Pattern = Pattern::new(concat!(
    r"pytest|py\.test|unittest|nosetests|nose2|make (?:test|check)|tox|nox|hatch|manage\.py test",
    r"|runtests|run_tests",
));

/// Returns whether a workflow or another file with commands runs tests.
pub(in crate::recipe) fn runs_tests(text: &str) -> bool {
    RUNS_TESTS.is_match(text)
}

/// Returns whether the name of a file, extra, group or environment is for another purpose than tests.
pub(super) fn is_for_other_purpose(name: &str) -> bool {
    let lower = name.to_lowercase();
    OTHER_PURPOSES.iter().any(|word| lower.contains(word)) && !lower.contains("test")
}

impl CiInstalls {
    fn add(&mut self, text: &str) {
        for call in PIP.captures_iter(text) {
            let start = call.get(0).map_or(0, |all| all.start());
            let before = line_before(text, start);
            let is_prose = before.contains(['#', '"', '\'', '`']) || before.contains("echo");
            self.add_pip(&words(&call[1]), is_prose || TITLE.is_match(before));
        }
        for arguments in pip::nox_arguments(text) {
            self.add_pip(&arguments, false);
        }
        for call in PROJECT_TOOL.captures_iter(text) {
            self.add_project_tool(&words(&call[1]));
        }
    }

    fn add_project_tool(&mut self, words: &[String]) {
        let mut extras = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let (option, joined) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            match option {
                "--all-extras" => self.has_all_extras = true,
                "--all-groups" | "-G:all" => self.has_all_groups = true,
                _ => {}
            }
            // Poetry takes a quoted list, whose quotes are gone.
            let values = match (joined, option) {
                (Some(value), _) => vec![value],
                (None, "--extras" | "-E") => words[at + 1..]
                    .iter()
                    .take_while(|word| !word.starts_with('-'))
                    .cloned()
                    .collect(),
                (None, _) => words.get(at + 1).cloned().into_iter().collect(),
            };
            let into = match option {
                "--group" | "--only-group" | "--with" | "-G" => &mut self.groups,
                "--extra" | "--extras" | "-E" => &mut extras,
                _ => continue,
            };
            for name in values.iter().flat_map(|value| value.split([',', ' '])) {
                push(into, name);
            }
        }
        self.add_extras(extras);
    }

    /// Adds the extras that one command installs.
    fn add_extras(&mut self, extras: Vec<String>) {
        for extra in &extras {
            push(&mut self.extras, extra);
        }
        if extras.len() > 1 && !self.extra_sets.contains(&extras) {
            self.extra_sets.push(extras);
        }
    }
}

/// Returns the part of a line before a position, up to a limit, because a file can consist of one line.
fn line_before(text: &str, position: usize) -> &str {
    let mut from = position.saturating_sub(MAX_LINE_LEN);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = &text[from..position];
    before.rsplit('\n').next().unwrap_or(before)
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
             --with qa,docs -E redis\npip install $X --no-deps -r ${F}\npip install --group unit\n@nox.session\ndef tests(session):\n    \
             session.install(\"-r\", \"nox.txt\", \".[all]\")\n",
        );
        assert_eq!(
            installs.files,
            ["development.txt", "more.txt", "a.txt", "nox.txt"]
        );
        assert_eq!(installs.extras, ["socks", "all", "fast", "redis"]);
        assert!(installs.extra_sets.is_empty());
        assert_eq!(installs.groups, ["unit", "ci", "qa"]);
        assert!(!installs.has_all_groups && !installs.has_all_extras);
        assert!(installs.packages.is_empty());
        installs.add("  - name: pip install requirements\n    run: pip install trio\n");
        assert_eq!(installs.packages, ["trio"]);
        installs.add("uv sync --frozen --all-groups --all-extras\n");
        assert!(installs.has_all_groups && installs.has_all_extras);
    }

    #[test]
    fn extras_of_a_command_are_kept_together() {
        let mut installs = CiInstalls::default();
        installs.add(
            "pip install -e '.[testing,links]'
pip install .[testing]
uv sync --extra a --extra b
poetry install \
             --extras \"c d\"\n",
        );
        let sets = [["testing", "links"], ["a", "b"], ["c", "d"]];
        assert_eq!(installs.extra_sets, sets);
        assert_eq!(installs.extras, sets.concat());
    }
}
