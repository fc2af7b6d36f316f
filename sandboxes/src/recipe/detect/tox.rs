//! The dependencies that tox installs for tests: `tox.ini`, `setup.cfg`, `tox.toml` and pyproject.toml.

use std::collections::BTreeSet;

use toml::Value;

use super::{ci, entries, local_lines, strings, text, value};
use crate::pattern::Pattern;
use crate::recipe::ini::Ini;
use crate::repository::Tree;
use crate::sandbox::Result;

/// The packages that tox installs for tests.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ToxDependencies {
    pub requirements: Vec<String>,
    pub files: Vec<String>,
    /// Extras of the project itself.
    pub extras: Vec<String>,
}

/// Maximum number of environments that one list may expand to.
const MAX_ENVIRONMENTS: usize = 500;
/// Maximum length of a list of environments.
const MAX_LIST_LEN: usize = 20_000;
/// Maximum number of lists that refer to each other.
const MAX_LISTS: usize = 30;

/// Words in factors of environments that are not the usual one: other versions than an installer would choose, checks of
/// the code, and tests that need servers.
static UNUSUAL: Pattern = Pattern::new(concat!(
    "main|master|dev|nightly|min|low|old|pre|cov|check|flake|integration|smoke|e2e",
    "|mysql|mariadb|mssql|oracle|postg|psycopg"
));

/// A factor that selects a Python version: `py310`, `3.10`, `pypy3`.
static PYTHON_FACTOR: Pattern = Pattern::new(r"^(?:(?:py|python|pypy|jython)[\d.]*|[23]\.\d+)$");

/// The factors before a line that applies only to some environments: `py38,py39: mock`.
static CONDITION: Pattern = Pattern::new(r"^([\w.!{}, -]+?)\s*:\s*([^/\s].*)$");

/// Returns the configuration in the form of tox.ini, and the file that has it.
pub(super) fn read(
    tree: &Tree,
    setup_cfg: &Ini,
    pyproject: &toml::Table,
) -> Result<(Ini, &'static str)> {
    if let Some(text) = text(tree, "tox.ini")? {
        return Ok((Ini::parse(&text), "tox.ini"));
    }
    if setup_cfg.has("tox:tox") {
        return Ok((setup_cfg.clone(), "setup.cfg"));
    }
    if let Some(Value::String(text)) = value(pyproject, "tool.tox.legacy_tox_ini") {
        return Ok((Ini::parse(text), "pyproject.toml"));
    }
    if let Some(Value::Table(table)) = value(pyproject, "tool.tox") {
        return Ok((from_toml(table), "pyproject.toml"));
    }
    let file = text(tree, "tox.toml")?.unwrap_or_default();
    let table: toml::Table = file.parse().unwrap_or_default();
    Ok((from_toml(&table), "tox.toml"))
}

/// Converts the tables of tox.toml to the sections of tox.ini.
fn from_toml(table: &toml::Table) -> Ini {
    let mut text = String::new();
    add_section(&mut text, "tox", Some(table));
    let base = table.get("env_run_base").and_then(Value::as_table);
    add_section(&mut text, "testenv", base);
    for (name, environment) in entries(table.get("env")) {
        let section = format!("testenv:{name}");
        add_section(&mut text, &section, environment.as_table());
    }
    Ini::parse(&text)
}

fn add_section(text: &mut String, section: &str, table: Option<&toml::Table>) {
    text.push_str(&format!("[{section}]\n"));
    for (key, value) in table.into_iter().flatten() {
        let lines = lines_of(value);
        if !lines.is_empty() {
            let lines = lines.iter().map(|line| line.replace('\n', " "));
            let lines: Vec<String> = lines.collect();
            text.push_str(&format!("{key} =\n    {}\n", lines.join("\n    ")));
        }
    }
}

/// Returns the items of a list, with one text for each list inside.
fn lines_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            let line = |item: &Value| match item {
                Value::Array(_) => lines_of(item).join(" "),
                _ => lines_of(item).concat(),
            };
            items.iter().map(line).collect()
        }
        Value::Table(table) => list_reference(table).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Converts `{ replace = "ref", of = ["env_run_base", "deps"] }` to the form of tox.ini.
fn list_reference(table: &toml::Table) -> Option<String> {
    let path = strings(table.get("of"));
    match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [.., "env_run_base", key] => Some(format!("{{[testenv]{key}}}")),
        [.., "env", name, key] => Some(format!("{{[testenv:{name}]{key}}}")),
        _ => None,
    }
}

/// Returns what tox installs for tests with this version of Python, such as `3.12`.
pub(super) fn dependencies(tree: &Tree, tox: &Ini, python: &str) -> ToxDependencies {
    let mut all = ToxDependencies::default();
    let environment = test_environment(tox, python);
    for line in first_list(tox, environment.as_deref(), "deps") {
        let line = ["{toxinidir}", "{tox_root}"]
            .iter()
            .fold(line.replace("{/}", "/"), |line, folder| {
                line.replace(folder, ".")
            });
        all.add(tree, &line);
    }
    all.extras.extend(names(tox, python, "extras"));
    all
}

/// Returns the dependency groups that tox installs for tests with this version of Python.
pub(super) fn groups(tox: &Ini, python: &str) -> Vec<String> {
    names(tox, python, "dependency_groups")
}

/// Returns the names in a list for tests with this version of Python, with commas between them.
fn names(tox: &Ini, python: &str, key: &str) -> Vec<String> {
    let environment = test_environment(tox, python);
    let lines = first_list(tox, environment.as_deref(), key);
    let names = lines.iter().flat_map(|line| line.split(','));
    names.map(|name| name.trim().to_owned()).collect()
}

impl ToxDependencies {
    fn add(&mut self, tree: &Tree, line: &str) {
        if line.is_empty() || line.contains(['{', '$']) || line.contains("://") {
            return;
        }
        let file = ["--requirement", "-r"]
            .iter()
            .find_map(|option| line.strip_prefix(option));
        if let Some(path) = file {
            let path = local_lines::join("", path.trim_start_matches(['=', ' ']).trim());
            let path = path.filter(|path| tree.contains(path) && !self.files.contains(path));
            self.files.extend(path);
            return;
        }
        if let Some((folder, extras)) = local_lines::target(line) {
            if local_lines::join("", &folder).as_deref() == Some("") {
                self.extras.extend(extras);
            }
            return;
        }
        let is_requirement = line.starts_with(|c: char| c.is_alphanumeric());
        let line = line.to_owned();
        if is_requirement && !line.contains(" @ ") && !self.requirements.contains(&line) {
            self.requirements.push(line);
        }
    }
}

/// Returns the first list of this key among the sections for tests, the most specific section first.
fn first_list(tox: &Ini, environment: Option<&str>, key: &str) -> Vec<String> {
    let factors: BTreeSet<&str> = environment.iter().flat_map(|e| e.split('-')).collect();
    let is_own = |section: &&str| {
        environment.is_some_and(|name| environment_names(section).iter().any(|own| own == name))
    };
    let own = tox.sections().take(MAX_ENVIRONMENTS).find(is_own);
    let runs_tests = |section: &&str| {
        let name = section.strip_prefix("testenv:");
        let commands = tox.get(section, "commands").unwrap_or_default();
        name.is_some_and(|name| !ci::is_for_other_purpose(name)) && ci::runs_tests(commands)
    };
    let general = ["testenv".to_owned()];
    let others = tox.sections().filter(runs_tests).map(str::to_owned);
    let own = own.map(str::to_owned).into_iter();
    let mut sections = own.chain(general).chain(others);
    // Another section does not replace a list whose lines are all for other environments.
    let section = sections.find(|section| !tox.list(section, key).is_empty());
    let lines = section.map(|section| list(tox, &section, key, &factors, &mut Vec::new()));
    lines.unwrap_or_default()
}

/// Returns the names of the environments that a section configures: `testenv:py{38,39}-x` is for two of them.
fn environment_names(section: &str) -> Vec<String> {
    expand(section.strip_prefix("testenv:").unwrap_or_default())
}

/// Returns the lines of a list that apply to an environment with these factors, including the lists that it refers to,
/// such as `{[base]deps}`. Each list counts once.
fn list(
    tox: &Ini,
    section: &str,
    key: &str,
    factors: &BTreeSet<&str>,
    seen: &mut Vec<(String, String)>,
) -> Vec<String> {
    let mut all = Vec::new();
    let place = (section.to_owned(), key.to_owned());
    if seen.contains(&place) || seen.len() > MAX_LISTS {
        return all;
    }
    seen.push(place);
    for line in tox.list(section, key) {
        let parts = CONDITION.captures(&line);
        let condition = parts.as_ref().map(|parts| &parts[1]);
        if condition.is_some_and(|condition| !applies(condition, factors)) {
            continue;
        }
        let line = parts.map_or(line.as_str(), |parts| {
            parts.get(2).map_or("", |rest| rest.as_str())
        });
        let reference = line
            .strip_prefix("{[")
            .and_then(|rest| rest.strip_suffix('}'));
        match reference.and_then(|inner| inner.split_once(']')) {
            Some((section, key)) => all.extend(list(tox, section, key, factors, seen)),
            None => all.push(line.to_owned()),
        }
    }
    all
}

/// Returns whether one of the alternatives before a line fits the factors of an environment.
fn applies(condition: &str, factors: &BTreeSet<&str>) -> bool {
    let fits = |factor: &str| match factor.strip_prefix('!') {
        Some(other) => !factors.contains(other),
        None => factors.contains(factor),
    };
    let alternatives = expand(condition);
    let mut alternatives = alternatives.iter();
    !factors.is_empty() && alternatives.any(|all| all.split('-').all(fits))
}

/// Returns the minor versions of Python 3 in the list of environments.
pub(super) fn python_minors(tox: &Ini) -> Vec<u32> {
    let minor = |factor: &str| -> Option<u32> {
        let is_python = PYTHON_FACTOR.is_match(factor) && !factor.starts_with("pypy");
        let digits = factor.trim_start_matches(|c: char| c.is_alphabetic());
        let digits = digits.strip_prefix('3').filter(|_| is_python)?;
        digits.trim_start_matches('.').parse().ok()
    };
    let environments = environments(tox);
    let factors = environments.iter().flat_map(|name| name.split('-'));
    let minors: BTreeSet<u32> = factors.filter_map(minor).collect();
    minors.into_iter().collect()
}

/// Returns the listed environments. If none is listed, returns those for a version of Python that have a section.
fn environments(tox: &Ini) -> Vec<String> {
    let keys = [
        ("tox", "envlist"),
        ("tox", "env_list"),
        ("tox:tox", "envlist"),
    ];
    let listed = keys.iter().find_map(|(section, key)| tox.get(section, key));
    let lines = listed.unwrap_or_default().lines();
    let lines: Vec<&str> = lines
        .map(|line| line.split('#').next().unwrap_or(line).trim())
        .collect();
    let listed = expand(&lines.join(","));
    if !listed.is_empty() {
        return listed;
    }
    configured_environments(tox).collect()
}

/// Returns the environments for a version of Python that have a section.
fn configured_environments(tox: &Ini) -> impl Iterator<Item = String> {
    let all = tox.sections().flat_map(environment_names);
    all.take(MAX_ENVIRONMENTS).filter(|name| names_python(name))
}

fn names_python(environment: &str) -> bool {
    let mut factors = environment.split('-');
    factors.any(|factor| PYTHON_FACTOR.is_match(factor))
}

/// Returns the last listed environment that runs tests with this version of Python. It usually has the newest versions
/// of other packages. If environments name versions of Python, the others do not count, because most are not for tests.
/// If none is listed for this version, returns the one with the fewest factors that has a section.
fn test_environment(tox: &Ini, python: &str) -> Option<String> {
    let short = python.replace('.', "");
    let has_python = |factor: &str| {
        let prefixes = ["python", "py"];
        let version = prefixes.iter().find_map(|name| factor.strip_prefix(name));
        let version = version.unwrap_or(factor);
        version.is_empty() || version == "3" || version == python || version == short
    };
    let is_possible = |name: &&String| {
        !ci::is_for_other_purpose(name)
            && name
                .split('-')
                .all(|factor| !PYTHON_FACTOR.is_match(factor) || has_python(factor))
    };
    let is_usual = |name: &&String| !UNUSUAL.is_match(name);
    let all = environments(tox);
    let is_by_python = all.iter().any(|name| names_python(name));
    // The last one has the highest rank if several are equal.
    let possible = all.iter().filter(is_possible);
    let possible = possible.filter(|name| names_python(name) || !is_by_python);
    let listed = possible.max_by_key(is_usual).cloned();
    listed.or_else(|| {
        let configured: Vec<String> = configured_environments(tox).collect();
        let possible = configured.iter().filter(is_possible).filter(is_usual);
        possible.min_by_key(|name| name.split('-').count()).cloned()
    })
}

/// Splits a list at its commas, and expands braces: `py{38,39}-x` and `py3{8-9}-x` become `py38-x` and `py39-x`.
fn expand(list: &str) -> Vec<String> {
    let mut waiting = vec![list.to_owned()];
    waiting.retain(|list| list.len() <= MAX_LIST_LEN);
    let mut done = Vec::new();
    while let Some(text) = waiting.pop() {
        if done.len() + waiting.len() > MAX_ENVIRONMENTS {
            break;
        }
        if let Some(at) = comma_outside(&text) {
            waiting.push(text[at + 1..].to_owned());
            waiting.push(text[..at].to_owned());
            continue;
        }
        let braces = text.find('{').zip(text.find('}'));
        match braces.filter(|(start, end)| start < end) {
            Some((start, end)) => {
                let choices = text[start + 1..end]
                    .split(',')
                    .map(str::trim)
                    .flat_map(expand_range);
                let choices: Vec<String> = choices.take(MAX_ENVIRONMENTS).collect();
                let (before, after) = (&text[..start], &text[end + 1..]);
                let texts = choices
                    .iter()
                    .map(|choice| format!("{before}{choice}{after}"));
                waiting.extend(texts.rev());
            }
            None => done.push(text.trim().to_owned()),
        }
    }
    done.retain(|name| !name.is_empty());
    done
}

/// Returns the numbers in a range, such as `8-10`, or the word itself.
fn expand_range(word: &str) -> Vec<String> {
    let number = |text: &str| text.parse::<u16>().ok();
    let ends = word.split_once('-');
    let ends = ends.and_then(|(first, last)| number(first).zip(number(last)));
    match ends {
        Some((first, last)) => (first..=last)
            .take(MAX_ENVIRONMENTS)
            .map(|n| n.to_string())
            .collect(),
        None => vec![word.to_owned()],
    }
}

/// Returns the position of the first comma that is not inside braces.
fn comma_outside(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests;
