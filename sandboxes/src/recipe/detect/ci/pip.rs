//! The arguments of `pip install` and of `session.install` in noxfile.py.

use super::{CiInstalls, is_for_other_purpose, push};
use crate::pattern::Pattern;
use crate::recipe::setup_py;

/// Maximum calls of `session.install` in a file, and maximum arguments of each, because each may be searched for in the
/// whole file.
const MAX_CALLS: usize = 40;
const MAX_ARGUMENTS: usize = 30;

/// Options of pip and of uv whose value is the next word.
const WITH_VALUE: &str = "--build-constraint -C -c --cache-dir --config-setting --config-settings --constraint --constraints \
    -e --editable --extra --extra-index-url -f --find-links --group -i --index --index-strategy \
    --index-url --link-mode --log --no-binary --only-binary --override --overrides -P -p --platform \
    --prefix --prerelease --progress-bar --python --python-version -r --requirement --requirements \
    --resolution --root-user-action -t --target --torch-backend --trusted-host --upgrade-package \
    --upgrade-strategy --use-deprecated --use-feature";

/// Packages that run tests, check code or publish it, and that tests do not import. Names that begin with one count too.
const TOOLS: &str = "auditwheel bandit black build bump cibuildwheel codecov coveralls delocate flake8 flit hatch isort \
    mkdocs mypy nox pdm pip poetry pre-commit pylint pyright pytype pyupgrade readthedocs ruff safety \
    setuptools sphinx tox twine ty types- uv virtualenv wheel yamllint zest";

static REQUIREMENT: Pattern = Pattern::new(
    r"^([A-Za-z][A-Za-z0-9._-]*)(?:\[[\w,.-]+\])?(?:(?:[<>!~=]=|[<>])[\w.*+!-]+(?:,(?:[<>!~=]=|[<>])[\w.*+!-]+)*)?$",
);

static SESSION: Pattern = Pattern::new(r"\b(?:session|s)\.install\(((?:[^()]|\([^()]*\))*)\)");
static CALL: Pattern = Pattern::new(r"\*?([\w.]+)\(([^()]*)\)");
static ARGUMENT: Pattern = Pattern::new(r#"f?"([^"\n]*)"|f?'([^'\n]*)'|\*?([A-Za-z_]\w*)(\s*=)?"#);

impl CiInstalls {
    /// Adds the arguments of one command. Those of a command in prose, such as a comment, name no packages.
    pub(super) fn add_pip(&mut self, words: &[String], is_prose: bool) {
        let mut is_value = false;
        let mut extras = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if word.starts_with('#') {
                break;
            }
            let follows_option = std::mem::replace(&mut is_value, has_value(word));
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
            // uv also reads the metadata of projects, which is not a list of lines.
            let is_metadata = |file: &String| {
                let ends = [".toml", ".py", ".cfg"];
                ends.iter().any(|end| file.ends_with(end))
            };
            if let Some(file) = file.filter(|file| !is_metadata(file)) {
                push(&mut self.files, file.trim_start_matches("./"));
            }
            if let ("--group" | "--extra", Some(name)) = (word.as_str(), words.get(at + 1)) {
                let into = match word.as_str() {
                    "--group" => &mut self.groups,
                    _ => &mut extras,
                };
                push(into, name);
            }
            if let Some((target, names)) = word.split_once('[')
                && (target == "." || target.ends_with('/'))
            {
                for extra in names.trim_end_matches(']').split(',') {
                    push(&mut extras, extra);
                }
            }
            let is_new = !is_prose && !follows_option && !self.packages.contains(word);
            if is_new && is_package(word) {
                self.packages.push(word.clone());
            }
        }
        self.add_extras(extras);
    }
}

fn has_value(option: &str) -> bool {
    WITH_VALUE.split(' ').any(|other| other == option)
}

/// Returns whether a word requires a package that tests may import.
fn is_package(word: &str) -> bool {
    let name = REQUIREMENT
        .captures(word)
        .map(|parts| parts[1].to_lowercase());
    let Some(name) = name.map(|name| name.replace('_', "-")) else {
        return false;
    };
    let begins = |tool: &str| {
        let rest = name.strip_prefix(tool);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || tool.ends_with('-'))
    };
    let is_file = [".txt", ".in", ".whl", ".gz", ".toml", ".sh"]
        .iter()
        .any(|end| word.ends_with(end));
    !is_file && !TOOLS.split(' ').any(begins)
}

/// Returns the arguments of each `session.install` in the text of a noxfile, except in sessions for other purposes than
/// tests. Names of constant lists are replaced by their items.
pub(super) fn nox_arguments(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for function in text.split("\ndef ") {
        let name = function.split('(').next().unwrap_or_default();
        if is_for_other_purpose(name) {
            continue;
        }
        for call in SESSION.captures_iter(function) {
            if all.len() == MAX_CALLS {
                return all;
            }
            let mut words = groups(&call[1]);
            // The texts in other calls are paths and names, not packages. `$$` stands for a dollar sign.
            let arguments = CALL.replace_all(&call[1], "\"$$\"");
            for argument in ARGUMENT.captures_iter(&arguments).take(MAX_ARGUMENTS) {
                let quoted = argument.get(1).or(argument.get(2));
                match (quoted, argument.get(3), argument.get(4)) {
                    (Some(word), ..) => words.push(word.as_str().to_owned()),
                    // Named arguments are settings, and follow the packages.
                    (None, Some(_), Some(_)) => break,
                    (None, Some(name), None) => {
                        let items = setup_py::literal(text, name.as_str());
                        words.extend(items.iter().flat_map(setup_py::Literal::texts));
                    }
                    _ => {}
                }
            }
            all.push(words);
        }
    }
    all
}

/// Returns the options for the groups in `*nox.project.dependency_groups(PYPROJECT, "test")`.
fn groups(arguments: &str) -> Vec<String> {
    let calls = CALL.captures_iter(arguments).take(MAX_ARGUMENTS);
    let calls = calls.filter(|call| call[1].ends_with("dependency_groups"));
    let mut options = Vec::new();
    for call in calls {
        for argument in ARGUMENT.captures_iter(&call[2]).take(MAX_ARGUMENTS) {
            if let Some(name) = argument.get(1).or(argument.get(2)) {
                options.extend(["--group".to_owned(), name.as_str().to_owned()]);
            }
        }
    }
    options
}

#[cfg(test)]
mod tests;
