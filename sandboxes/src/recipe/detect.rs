//! Detection of a recipe from a repository's files: pyproject.toml, setup.cfg, setup.py, tox.ini, requirements files
//! and CI files.

mod ci;
mod conda;
mod django;
mod local_lines;
mod named_paths;
mod pixi;
mod plugins;
mod poetry;
mod project_folders;
pub(crate) mod project_metadata;
mod project_recipe;
mod projects;
mod requirements_files;
mod templates;
mod test_dependencies;
mod test_files;
mod tox;

use std::collections::BTreeSet;

pub(super) use ci::{command_files, is_workflow, runs_tests, workflows};
pub(crate) use local_lines::join;
pub(crate) use test_dependencies::test_extras;
pub(crate) use test_files::{innermost, test_files};

use regex::Regex;
use toml::Value;

use super::Overrides;
use super::ini::Ini;
use super::python_version::{Hints, choose, is_possible, timestamp};
use super::{MAX_FILE_LEN, Recipe, python_version, setup_py};
use crate::pattern::Pattern;
use crate::repository::{Source, Tree};
use crate::sandbox::Result;
use local_lines::LocalLine;
use project_recipe::{ProjectRecipe, combine};
use projects::Choice;

/// Returns the text of a file. A file larger than any that people write counts as missing.
pub(super) fn text(tree: &Tree, path: &str) -> Result<Option<String>> {
    match tree.is_larger(path, MAX_FILE_LEN) {
        true => Ok(None),
        false => tree.text(path),
    }
}

/// The files that detection reads, each read once.
#[derive(Debug)]
pub(super) struct Files {
    pub pyproject: toml::Table,
    /// Whether the project is an application that Poetry cannot build.
    pub is_application: bool,
    pub setup_cfg: Ini,
    pub setup_py: String,
    pub tox: Ini,
    /// The file with the configuration of tox.
    pub tox_file: &'static str,
    pub pytest_ini: Ini,
    pub pytest_toml: toml::Table,
}

impl Files {
    pub(super) fn read(tree: &Tree) -> Result<Files> {
        let text = |path: &str| -> Result<String> { Ok(text(tree, path)?.unwrap_or_default()) };
        let first = |paths: [&str; 2]| match paths.into_iter().find(|path| tree.contains(path)) {
            Some(path) => text(path),
            None => Ok(String::new()),
        };
        // The build itself reports a broken file, with the message of the program that needs it.
        let mut pyproject: toml::Table = text("pyproject.toml")?.parse().unwrap_or_default();
        if let Some(project) = flit_project(&pyproject) {
            pyproject.insert("project".to_owned(), Value::Table(project));
        }
        let setup_cfg = Ini::parse(&text("setup.cfg")?);
        let (tox, tox_file) = tox::read(tree, &setup_cfg, &pyproject)?;
        Ok(Files {
            is_application: poetry::is_application(&pyproject, tree),
            pyproject,
            setup_cfg,
            setup_py: text("setup.py")?,
            tox,
            tox_file,
            pytest_ini: Ini::parse(&first(["pytest.ini", ".pytest.ini"])?),
            pytest_toml: first(["pytest.toml", ".pytest.toml"])?
                .parse()
                .unwrap_or_default(),
        })
    }

    /// Returns a value of pyproject.toml, given its keys, with dots between them.
    fn get(&self, keys: &str) -> Option<&Value> {
        value(&self.pyproject, keys)
    }

    /// Returns a text of pyproject.toml, given its keys.
    fn get_text(&self, keys: &str) -> Option<&str> {
        self.get(keys)?.as_str()
    }

    /// Returns the repository's configuration of pytest. A list becomes one text, separated by spaces.
    fn pytest_settings(&self) -> Vec<(String, String)> {
        let inis = [
            (&self.pytest_ini, "pytest"),
            (&self.setup_cfg, "tool:pytest"),
            (&self.setup_cfg, "pytest"),
            (&self.tox, "pytest"),
        ];
        let mut settings = Vec::new();
        add_table(&mut settings, self.pytest_toml.get("pytest"));
        for (ini, section) in inis {
            let value = |key| ini.get(section, key).unwrap_or_default().to_owned();
            settings.extend(ini.keys(section).map(|key| (key.to_owned(), value(key))));
        }
        // Since pytest 9, the options can be in the table of the tool itself.
        let options = self.get("tool.pytest.ini_options");
        add_table(&mut settings, options.or(self.get("tool.pytest")));
        settings
    }
}

/// Returns a value in a table, given its keys, with dots between them.
fn value<'a>(table: &'a toml::Table, keys: &str) -> Option<&'a Value> {
    let mut keys = keys.split('.');
    let first = table.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}

/// Returns the entries of a table.
fn entries(table: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    table.and_then(Value::as_table).into_iter().flatten()
}

/// Returns the texts in a list.
fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the table `project` that the older tables of Flit stand for.
fn flit_project(pyproject: &toml::Table) -> Option<toml::Table> {
    let metadata = value(pyproject, "tool.flit.metadata")?;
    let mut project = toml::Table::new();
    for (key, standard) in [
        ("module", "name"),
        ("dist-name", "name"),
        ("requires", "dependencies"),
        ("requires-extra", "optional-dependencies"),
        ("requires-python", "requires-python"),
    ] {
        if let Some(value) = metadata.get(key) {
            project.insert(standard.to_owned(), value.clone());
        }
    }
    (!pyproject.contains_key("project")).then_some(project)
}

/// Adds the settings in a table of TOML.
fn add_table(settings: &mut Vec<(String, String)>, table: Option<&Value>) {
    for (key, value) in entries(table) {
        let value = match value {
            Value::Array(_) => strings(Some(value)).join(" "),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        settings.push((key.clone(), value));
    }
}

/// Returns the recipe and its origin, `detected from FILES`. Without `python_given`, fails if no available Python can run
/// the code.
pub(super) fn detect(
    source: &Source,
    tree: &Tree,
    overrides: &Overrides,
    python_given: bool,
) -> Result<(Recipe, String)> {
    let files = Files::read(tree)?;
    let mut from = Vec::new();
    let mut hints = python_hints(source, tree, &files, &mut from)?;
    if !python_given {
        python_version::require_available(&hints, &overrides.pythons)?;
    }
    let subject = overrides.subject.as_deref().unwrap_or_default();
    let mut paths = named_paths::named_paths(tree, subject);
    paths.extend(overrides.paths.iter().cloned());
    let choice = Choice {
        project: overrides.project.as_deref(),
        paths,
        subject,
    };
    let lines = root_lines(tree, &files)?;
    let projects = projects::find(tree, &files, &lines, &choice)?;
    let mut availability = Vec::new();
    for project in projects.iter().filter(|project| !project.folder.is_empty()) {
        let mut read = Vec::new();
        let more = python_hints(source, &project.tree, &project.files, &mut read)?;
        availability.push(python_version::require_available(&more, &overrides.pythons));
        hints.add(more);
        from.extend(read.iter().map(|path| project.path(path)));
    }
    // Some of several projects may be left out, but not all.
    let is_lost = !availability.is_empty() && availability.iter().all(Result::is_err);
    if is_lost && !python_given && !installable(&files) {
        availability.swap_remove(0)?;
    }
    let mut python = choose(&hints, &overrides.pythons);
    if let Some(preferred) = &overrides.preferred_python
        && is_possible(preferred, &python, &hints, &overrides.pythons)
    {
        python.clone_from(&preferred.version);
        from.push("the issue's Python".to_owned());
    }
    let mut recipe = Recipe {
        python: Some(python),
        install: Some(Vec::new()),
        ..Recipe::default()
    };
    let mut parts = Vec::new();
    for project in &projects {
        let python = recipe.python.as_deref().unwrap_or_default();
        parts.push(ProjectRecipe::detect(project, python, &mut from)?);
    }
    combine(&mut recipe, parts, &choice);
    if let Some(runner) = django::own_runner(tree) {
        recipe.runner = runner;
    }
    add(&mut recipe.requirements, "pytest");
    let mut seen = BTreeSet::new();
    from.retain(|path| seen.insert(path.clone()));
    let origin = if from.is_empty() {
        "detected without build files".to_owned()
    } else {
        format!("detected from {}", from.join(", "))
    };
    Ok((recipe, origin))
}

/// Returns the folders that the root's requirements files for tests and for the application name.
fn root_lines(tree: &Tree, files: &Files) -> Result<Vec<LocalLine>> {
    let installable = installable(files);
    let dependencies = test_dependencies::test_requirements(tree, files, installable, "")?;
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for path in &dependencies.files {
        lines.extend(local_lines::local_lines(tree, path, 8, &mut seen)?);
    }
    lines.retain(|line| !line.folder.is_empty());
    Ok(lines)
}

/// Returns whether a line of a requirements file names a folder or an archive in the repository.
pub(crate) fn names_folder(line: &str) -> bool {
    line.starts_with('.') || local_lines::target(line).is_some()
}

/// Adds a requirement unless its package is already required.
fn add(requirements: &mut Vec<String>, package: &str) {
    if !requirements.iter().any(|r| package_name(r) == package) {
        requirements.push(package.to_owned());
    }
}

/// Returns the normalized package name: `PyTest[x]>=3 ; …` becomes `pytest`.
pub(crate) fn package_name(requirement: &str) -> String {
    let name: String = requirement
        .trim()
        .chars()
        .take_while(|c| c.is_alphanumeric() || "-_.".contains(*c))
        .collect();
    name.to_lowercase().replace(['_', '.'], "-")
}

/// Returns the name under which the code is installed, if its files state it.
pub(crate) fn distribution_name(tree: &Tree) -> Result<Option<String>> {
    Ok(project_metadata::ProjectMetadata::read(tree)?.name)
}

static WITHOUT_EXTENSIONS: Pattern = Pattern::new(
    r#"(?:environ(?:\.get)?|getenv)\s*[\[(]\s*["']([A-Z0-9_]*(?:NO_C?EXT|DISABLE_[A-Z_]*C?EXT|SKIP_[A-Z_]*EXT|WITHOUT_[A-Z_]*EXT|PURE_?PYTHON)[A-Z0-9_]*)["']"#,
);

/// Returns the variable that makes setup.py omit extension modules, if it reads one.
pub(crate) fn build_without_extensions(tree: &Tree) -> Result<Option<String>> {
    let setup_py = text(tree, "setup.py")?.unwrap_or_default();
    let captures = WITHOUT_EXTENSIONS.captures(&setup_py);
    Ok(captures.map(|captures| captures[1].to_owned()))
}

/// Returns whether pip can install the code.
fn installable(files: &Files) -> bool {
    if !files.setup_py.trim().is_empty() {
        return true;
    }
    let is_off = |keys: &str| files.get(keys).and_then(Value::as_bool) == Some(false);
    if files.is_application || is_off("tool.poetry.package-mode") || is_off("tool.uv.package") {
        return false;
    }
    has_metadata(files) || (files.get("build-system").is_some() && files.setup_cfg.has("metadata"))
}

/// Returns whether pyproject.toml has the metadata of a package.
fn has_metadata(files: &Files) -> bool {
    files.get("project").is_some() || files.get("tool.poetry").is_some()
}

/// Returns the file whose metadata pip installs.
fn build_file(files: &Files) -> &'static str {
    match has_metadata(files) || files.setup_py.trim().is_empty() {
        true => "pyproject.toml",
        false => "setup.py",
    }
}

/// Returns the Python versions older than this one that the code allows, newest first.
pub(crate) fn older_pythons(source: &Source, tree: &Tree, current: &str) -> Result<Vec<String>> {
    let files = Files::read(tree)?;
    let hints = python_hints(source, tree, &files, &mut Vec::new())?;
    Ok(python_version::older_than(&hints, current))
}

fn python_hints(
    source: &Source,
    tree: &Tree,
    files: &Files,
    from: &mut Vec<String>,
) -> Result<Hints> {
    let mut hints = Hints {
        date: source.date.as_deref().and_then(timestamp),
        ..Hints::default()
    };
    let key = "python_requires";
    let setup_py = setup_py::text(&files.setup_py, key);
    for (file, specifier) in [
        ("pyproject.toml", files.get_text("project.requires-python")),
        (
            "pyproject.toml",
            files.get_text("tool.poetry.dependencies.python"),
        ),
        ("setup.cfg", files.setup_cfg.get("options", key)),
        ("setup.py", setup_py.as_deref()),
    ] {
        if let Some(specifier) = specifier {
            hints.requires.push(specifier.to_owned());
            from.push(file.to_owned());
        }
    }

    let by_tox = tox::python_minors(&files.tox);
    hints.listed_minors.extend(&by_tox);

    let classifier = r"Programming Language :: Python :: 3\.(\d{1,2})\b";
    // Matches a version alone in a list, or after the word "python".
    let ci = r#"(?m)(?:^\s*-\s*|[Pp]ython[^\n]*?)["']?3\.(\d{1,2})\b"#;
    let more = r#"[,\[]\s*["']3\.(\d{1,2})\b"#;
    let tox = r"py3(\d{1,2})\b";
    let pinned = r"(?m)^\s*(?:python[- \t]+)?3\.(\d{1,2})\b";
    let pipfile = r#"python(?:_full)?_version\s*=\s*["']3\.(\d{1,2})\b"#;
    let conda_python = r"(?m)^\s*-\s*python\s*==?\s*3\.(\d{1,2})\b";
    let pixi = r#"(?m)^python\s*=\s*["']={0,2}3\.(\d{1,2})\b"#;
    let image = r"(?m)^FROM\s(?:.*[\s/])?python:3\.(\d{1,2})\b";
    // Returns whether any file so far lists versions.
    let mut look = |path: &str, patterns: &[&str]| -> Result<bool> {
        let Some(text) = text(tree, path)? else {
            return Ok(!hints.listed_minors.is_empty());
        };
        let before = hints.listed_minors.len();
        for pattern in patterns {
            if let Ok(pattern) = Regex::new(pattern) {
                hints.listed_minors.extend(
                    pattern
                        .captures_iter(&text)
                        .filter_map(|c| c[1].parse::<u32>().ok()),
                );
            }
        }
        // 3.14 and later may be listed long before their release, but a number such as 3.50 means something else.
        hints.listed_minors.retain(|minor| *minor < 30);
        if hints.listed_minors.len() > before {
            from.push(path.to_owned());
        }
        Ok(!hints.listed_minors.is_empty())
    };
    look("setup.py", &[classifier])?;
    look("setup.cfg", &[classifier])?;
    look("pyproject.toml", &[classifier])?;
    look("tox.ini", &[tox])?;
    look(".travis.yml", &[ci, more])?;
    for path in workflows(tree) {
        look(path, &[ci, more])?;
    }
    for path in [".python-version", "runtime.txt", ".tool-versions"] {
        look(path, &[pinned])?;
    }
    let is_conda_file =
        |path: &&str| conda::is_environment_file(path) && !conda::is_for_documentation(path);
    for path in tree.paths().filter(is_conda_file) {
        look(path, &[conda_python])?;
    }
    look("pixi.toml", &[pixi])?;
    if !look("Pipfile", &[pipfile])? {
        look("Dockerfile", &[image])?;
    }
    if !by_tox.is_empty() {
        from.push(files.tox_file.to_owned());
    }
    Ok(hints)
}
