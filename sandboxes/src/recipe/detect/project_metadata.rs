//! The metadata that the files of a project declare. No build tool runs for that.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toml::Value;

use super::{Files, entries, package_name, poetry, strings, text};
use crate::recipe::setup_py::{self, Literal};
use crate::repository::Tree;
use crate::sandbox::Result;

/// Entry points: targets by name, by group.
pub(crate) type EntryPoints = BTreeMap<String, BTreeMap<String, String>>;

/// Declared metadata of one project.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct ProjectMetadata {
    pub name: Option<String>,
    pub version: Option<String>,
    pub dependencies: Vec<String>,
    pub extras: BTreeMap<String, Vec<String>>,
    pub entry_points: EntryPoints,
    /// Folders that contain its packages, relative to the project.
    pub import_roots: Vec<String>,
    /// Files in which the build records the version, relative to the project.
    pub version_files: Vec<String>,
    /// Requirements of the build itself.
    #[serde(skip)]
    pub build_requires: Vec<String>,
    /// The build backend. setup.py without pyproject.toml counts as `setuptools`.
    #[serde(skip)]
    pub build_backend: String,
    /// Whether `[project]` states the name, so that installers know it before they build.
    #[serde(skip)]
    pub has_static_name: bool,
    /// Whether setup.py compiles modules with Cython.
    #[serde(skip)]
    pub uses_cython: bool,
}

impl ProjectMetadata {
    /// Reads the files in the root of a tree.
    pub(crate) fn read(tree: &Tree) -> Result<ProjectMetadata> {
        let files = Files::read(tree)?;
        let mut metadata = ProjectMetadata {
            name: name(&files),
            version: version(&files),
            import_roots: import_roots(tree, &files),
            version_files: version_files(&files),
            build_requires: strings(files.get("build-system.requires")),
            build_backend: files
                .get_text("build-system.build-backend")
                .unwrap_or("setuptools")
                .to_owned(),
            has_static_name: files.get("project.name").is_some(),
            uses_cython: files.setup_py.contains("cythonize("),
            ..ProjectMetadata::default()
        };
        metadata.read_dependencies(tree, &files)?;
        metadata.read_entry_points(&files);
        Ok(metadata)
    }

    /// Returns the requirements of these extras.
    pub(crate) fn extra_requirements(&self, extras: &[String]) -> Vec<String> {
        let is_wanted = |name: &String| {
            let name = package_name(name);
            extras.iter().any(|extra| package_name(extra) == name)
        };
        let chosen = self.extras.iter().filter(|(name, _)| is_wanted(name));
        chosen.flat_map(|(_, lines)| lines.clone()).collect()
    }

    /// Returns whether only a compiler can turn the code into something importable.
    pub(crate) fn is_compiled(&self) -> bool {
        let compiles = |tool: &str| {
            let tool = package_name(tool);
            [
                "maturin",
                "setuptools-rust",
                "meson-python",
                "scikit-build-core",
                "scikit-build",
            ]
            .contains(&tool.as_str())
        };
        self.uses_cython || self.build_requires.iter().any(|tool| compiles(tool))
    }

    /// Returns whether meson-python builds the project. Its editable installs rebuild at import.
    pub(crate) fn is_built_by_meson(&self) -> bool {
        self.build_backend.starts_with("mesonpy")
    }

    fn read_dependencies(&mut self, tree: &Tree, files: &Files) -> Result<()> {
        self.dependencies = strings(files.get("project.dependencies"));
        for (name, lines) in entries(files.get("project.optional-dependencies")) {
            self.extras.insert(name.clone(), strings(Some(lines)));
        }
        let (poetry, poetry_extras) = poetry::dependencies(files);
        self.dependencies.extend(poetry);
        for (name, lines) in poetry_extras {
            self.extras.entry(name).or_insert(lines);
        }
        let lines = files.setup_cfg.requirements("options", "install_requires");
        self.dependencies.extend(with_files(tree, lines)?);
        for name in files.setup_cfg.keys("options.extras_require") {
            let lines = files.setup_cfg.requirements("options.extras_require", name);
            let lines = with_files(tree, lines)?;
            self.extras.entry(name.to_owned()).or_insert(lines);
        }
        self.read_dynamic_dependencies(tree, files)?;
        if self.dependencies.is_empty() {
            self.dependencies = setup_py_requirements(tree, files)?;
        }
        for (name, lines) in setup_py::dict(&files.setup_py, "extras_require") {
            self.extras.entry(name).or_insert_with(|| lines.texts());
        }
        Ok(())
    }

    /// Reads the requirements files to which setuptools' and Hatch's `dynamic` dependencies refer.
    fn read_dynamic_dependencies(&mut self, tree: &Tree, files: &Files) -> Result<()> {
        let listed = |value: Option<&Value>| -> Result<Vec<String>> {
            let mut lines = Vec::new();
            for path in one_or_more(value.and_then(|v| v.get("file"))) {
                lines.extend(plain_lines(tree, &path)?);
            }
            Ok(lines)
        };
        let dependencies = files.get("tool.setuptools.dynamic.dependencies");
        self.dependencies.extend(listed(dependencies)?);
        let extras = files.get("tool.setuptools.dynamic.optional-dependencies");
        for (name, value) in entries(extras) {
            let lines = listed(Some(value))?;
            self.extras.entry(name.clone()).or_insert(lines);
        }
        for path in strings(files.get("tool.hatch.metadata.hooks.requirements_txt.files")) {
            self.dependencies.extend(plain_lines(tree, &path)?);
        }
        Ok(())
    }

    fn read_entry_points(&mut self, files: &Files) {
        let mut add = |group: &str, table: Option<&Value>| {
            for (name, target) in entries(table) {
                if let Some(target) = target.get("callable").unwrap_or(target).as_str() {
                    let group = self.entry_points.entry(group.to_owned()).or_default();
                    group.insert(name.clone(), target.to_owned());
                }
            }
        };
        add("console_scripts", files.get("project.scripts"));
        add("gui_scripts", files.get("project.gui-scripts"));
        add("console_scripts", files.get("tool.poetry.scripts"));
        for tables in ["project.entry-points", "tool.poetry.plugins"] {
            for (group, table) in entries(files.get(tables)) {
                add(group, Some(table));
            }
        }
        let section = "options.entry_points";
        for group in files.setup_cfg.keys(section) {
            let lines = files.setup_cfg.list(section, group);
            add_entry_point_lines(&mut self.entry_points, group, &lines);
        }
        for (group, lines) in setup_py::dict(&files.setup_py, "entry_points") {
            add_entry_point_lines(&mut self.entry_points, &group, &lines.texts());
        }
    }
}

/// Adds lines such as `name = module:function`.
fn add_entry_point_lines(all: &mut EntryPoints, group: &str, lines: &[String]) {
    for (name, target) in lines.iter().filter_map(|line| line.split_once('=')) {
        let group = all.entry(group.to_owned()).or_default();
        group.insert(name.trim().to_owned(), target.trim().to_owned());
    }
}

/// Returns the text of a key in the first file that states it.
fn declared(files: &Files, key: &str) -> Option<String> {
    files
        .get_text(&format!("project.{key}"))
        .or(files.get_text(&format!("tool.poetry.{key}")))
        .or(files.setup_cfg.get("metadata", key))
        .map(str::to_owned)
        .or_else(|| setup_py::text(&files.setup_py, key))
}

fn name(files: &Files) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    declared(files, "name").filter(|name| !name.is_empty() && name.chars().all(is_plain))
}

fn version(files: &Files) -> Option<String> {
    // Poetry's dynamic versions have the placeholder 0.0.0, and setup.cfg can refer to `attr: …`.
    declared(files, "version").filter(|version| is_version(version) && version != "0.0.0")
}

/// Returns whether a text is a version that every installer accepts.
pub(crate) fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".+!-".contains(c))
}

/// Returns the requirements in setup.py, or in the requirements file that it reads.
fn setup_py_requirements(tree: &Tree, files: &Files) -> Result<Vec<String>> {
    for name in ["install_requires", "requires"] {
        let lines = setup_py::literal(&files.setup_py, name).map(|literal| literal.texts());
        if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
            return Ok(lines);
        }
    }
    for path in [
        "requirements.txt",
        "requirements/base.txt",
        "requirements.in",
    ] {
        if files.setup_py.contains(path) {
            return plain_lines(tree, path);
        }
    }
    Ok(Vec::new())
}

/// Returns the requirements that the root and the projects below it declare, including those of extras.
pub(crate) fn declared_requirements(tree: &Tree, folders: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for folder in [""].into_iter().chain(folders.iter().map(String::as_str)) {
        let metadata = ProjectMetadata::read(&tree.subtree(folder))?;
        all.extend(metadata.dependencies);
        all.extend(metadata.extras.into_values().flatten());
    }
    Ok(all)
}

/// Replaces `file: a.txt, b.txt`, as setup.cfg has it, by the lines of these files.
fn with_files(tree: &Tree, lines: Vec<String>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for line in lines {
        match line.strip_prefix("file:") {
            Some(paths) => {
                for path in paths.split(',') {
                    all.extend(plain_lines(tree, path.trim())?);
                }
            }
            None => all.push(line),
        }
    }
    Ok(all)
}

/// Returns the requirements in a file, without options, comments and paths.
fn plain_lines(tree: &Tree, path: &str) -> Result<Vec<String>> {
    let text = text(tree, path.trim_start_matches("./"))?.unwrap_or_default();
    let lines = text.lines();
    let lines = lines.map(|line| line.split(" #").next().unwrap_or(line).trim());
    let is_requirement = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphanumeric());
    Ok(lines.filter(is_requirement).map(str::to_owned).collect())
}

/// Returns the folders to import from: those that the build tool is told, `src`, `lib`, and the project's folder.
fn import_roots(tree: &Tree, files: &Files) -> Vec<String> {
    let mut roots: Vec<String> = Vec::new();
    let folder = setup_py::dict(&files.setup_py, "package_dir").remove("");
    if let Some(Literal::Text(folder)) = folder {
        roots.push(folder);
    }
    let lines = files.setup_cfg.list("options", "package_dir");
    let folders = lines.iter().filter_map(|line| line.strip_prefix('='));
    roots.extend(folders.map(|folder| folder.trim().to_owned()));
    let package_dir = files.get("tool.setuptools.package-dir");
    let folders = [
        files.setup_cfg.get("options.packages.find", "where"),
        package_dir.and_then(|folders| folders.get("")?.as_str()),
        files.get_text("tool.pdm.build.package-dir"),
        files.get_text("tool.uv.build-backend.module-root"),
    ];
    roots.extend(folders.into_iter().flatten().map(str::to_owned));
    roots.extend(strings(files.get("tool.setuptools.packages.find.where")));
    let packages = files.get("tool.poetry.packages").and_then(Value::as_array);
    let packages = packages.into_iter().flatten();
    let folders = packages.filter_map(|package| package.get("from")?.as_str());
    roots.extend(folders.map(str::to_owned));
    for keys in ["tool.hatch.build", "tool.hatch.build.targets.wheel"] {
        let packages = strings(files.get(&format!("{keys}.packages")));
        let parents = packages.iter().map(|path| path.rsplit_once('/'));
        roots.extend(parents.map(|parent| parent.map_or("", |(folder, _)| folder).to_owned()));
        roots.extend(strings(files.get(&format!("{keys}.sources"))));
    }
    let has_code = |folder: &str| {
        let prefix = format!("{folder}/");
        tree.paths()
            .any(|path| path.starts_with(&prefix) && path.ends_with(".py"))
    };
    roots.extend(["src", "lib"].map(str::to_owned));
    let mut seen = BTreeSet::new();
    let normal = |root: String| {
        root.trim_start_matches("./")
            .trim_matches(['/', '.'])
            .to_owned()
    };
    let mut roots: Vec<String> = roots.into_iter().map(normal).collect();
    roots.retain(|root| !root.is_empty() && has_code(root) && seen.insert(root.clone()));
    roots.push(String::new());
    roots
}

/// Returns the modules that setuptools_scm, hatch-vcs or PDM write while they build.
fn version_files(files: &Files) -> Vec<String> {
    let declared = [
        "tool.setuptools_scm.version_file",
        "tool.setuptools_scm.write_to",
        "tool.hatch.build.hooks.vcs.version-file",
        "tool.hatch.build.hooks.version.path",
    ];
    let declared = declared.into_iter().filter_map(|keys| files.get_text(keys));
    let mut paths: Vec<String> = declared.map(str::to_owned).collect();
    let options = setup_py::dict(&files.setup_py, "use_scm_version");
    if let Some(Literal::Text(path)) = options.get("write_to").or(options.get("version_file")) {
        paths.push(path.clone());
    }
    paths.retain(|path| path.ends_with(".py") && !path.starts_with('/') && !path.contains(".."));
    paths
}

fn one_or_more(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        other => strings(other),
    }
}
