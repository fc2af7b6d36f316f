//! Detection of test dependencies.
//!
//! The first kind of place that lists some counts: extras and dependency groups named for tests; `tests_require` and
//! Poetry's groups; requirements files; tox.

use std::collections::BTreeSet;

use toml::Value;

use super::project_metadata::ProjectMetadata;
use super::tox::{self, ToxDependencies};
use super::{Files, ci, conda, local_lines, package_name, pixi, poetry, text};
use crate::recipe::setup_py;
use crate::repository::Tree;
use crate::sandbox::Result;

#[derive(Debug, Default)]
pub(super) struct TestDependencies {
    pub requirements: Vec<String>,
    pub files: Vec<String>,
    pub extras: Vec<String>,
    /// Whether the extras are not for tests.
    lacks_pytest: bool,
}

/// Names of extras and groups for tests. If none exists, those for development are used.
const FOR_TESTS: [&str; 8] = [
    "test",
    "tests",
    "testing",
    "unittest",
    "unittests",
    "unit-test",
    "unit-tests",
    "pytest",
];
const FOR_DEVELOPMENT: [&str; 3] = ["dev", "develop", "development"];

/// Environments of Hatch for tests or development.
const HATCH_ENVIRONMENTS: [&str; 6] = ["hatch-test", "test", "tests", "testing", "default", "dev"];

pub(super) fn test_requirements(
    tree: &Tree,
    files: &Files,
    installable: bool,
    python: &str,
    from: &mut Vec<String>,
) -> Result<TestDependencies> {
    let mut dependencies = TestDependencies::default();
    let mut ci = ci::read(tree)?;
    let tox_groups = tox::groups(&files.tox, python);
    ci.groups.extend(tox_groups.iter().cloned());
    ci.groups.extend(hatch_names(files, "dependency-groups"));
    ci.extras.extend(hatch_names(files, "features"));
    let tox = tox::dependencies(tree, &files.tox, python);
    if installable {
        let declared = extras(files);
        let by_tox = declared
            .iter()
            .find_map(|(file, extras)| Some((*file, installed_by_tox(extras, &tox.extras)?)));
        let by_name = || {
            declared
                .iter()
                .find_map(|(file, extras)| Some((*file, choose(extras)?)))
        };
        let by_ci = || {
            declared.iter().find_map(|(file, extras)| {
                Some((
                    *file,
                    installed_by_ci(extras, &ci.extras, ci.has_all_extras)?,
                ))
            })
        };
        let longer = || {
            declared
                .iter()
                .find_map(|(file, extras)| Some((*file, choose_longer(extras)?)))
        };
        let chosen = by_tox.or_else(by_name).or_else(by_ci).or_else(longer);
        if let Some((file, extras)) = chosen {
            dependencies.extras = extras;
            from.push(file.to_owned());
        }
    }
    // Extras for other purposes, which CI installs, do not replace what their metadata shows that they lack.
    let lists = ProjectMetadata::read(tree)?.extra_requirements(&dependencies.extras);
    let is_named = |extras: &[String]| choose(extras).or_else(|| choose_longer(extras)).is_some();
    dependencies.lacks_pytest = dependencies.extras.is_empty()
        || !lists.is_empty() && !has_pytest(&lists) && !is_named(&dependencies.extras);
    let groups = files.pyproject.get("dependency-groups");
    if let Some(groups) = groups.and_then(Value::as_table) {
        let names = groups.keys().cloned().collect::<Vec<_>>();
        let mut chosen = installed_by_tox(&names, &tox_groups).unwrap_or_default();
        chosen.extend(choose(&names).unwrap_or_default());
        if chosen.is_empty() {
            let by_ci = installed_by_ci(&names, &ci.groups, ci.has_all_groups);
            chosen.extend(by_ci.or_else(|| choose_longer(&names)).unwrap_or_default());
        }
        if !chosen.is_empty() {
            from.push("pyproject.toml".to_owned());
        }
        let mut seen = BTreeSet::new();
        for name in chosen {
            group(groups, &name, &mut dependencies.requirements, 8, &mut seen);
        }
    }
    dependencies
        .requirements
        .extend(poetry::development(files, from, choose));
    dependencies
        .requirements
        .extend(tool_requirements(files, from));
    let pixi = pixi::packages(tree, files, choose)?;
    let mut by_pixi = pixi.for_tests;
    if !installable || dependencies.is_empty() && by_pixi.is_empty() {
        by_pixi.extend(pixi.general);
    }
    by_pixi.retain(|line| !is_own(tree, line));
    if !by_pixi.is_empty() {
        from.push(pixi.path.to_owned());
    }
    dependencies.requirements.extend(by_pixi);
    if dependencies.is_empty() {
        tests_require(files, &mut dependencies.requirements, from);
    }
    // The dependencies suffice if they include pytest, or an extra that may include it.
    if dependencies.lacks_pytest && !has_pytest(&dependencies.requirements) {
        let used = [ci.files.as_slice(), tox.files.as_slice()].concat();
        if let Some(path) = requirements_file(tree, &used)? {
            if installable {
                let own = local_lines::own_extras(tree, &path, 8, &mut BTreeSet::new())?;
                dependencies.extras.extend(own);
            }
            // The other files and packages that tox installs go with this one.
            if tox.files.contains(&path) {
                dependencies.add_tox(tox, files, installable, from);
            } else {
                from.push(path.clone());
                dependencies.files.push(path);
            }
        } else if dependencies.requirements.is_empty() && !ci.files.is_empty() {
            from.extend(ci.files.iter().cloned());
            dependencies.files.extend(ci.files);
        } else {
            dependencies.add_tox(tox, files, installable, from);
        }
    }
    if dependencies.is_empty() {
        dependencies.requirements = pipfile(tree, installable)?;
        if !dependencies.requirements.is_empty() {
            from.push("Pipfile".to_owned());
        }
    }
    if dependencies.is_empty() {
        ci.packages.retain(|line| !is_own(tree, line));
        if !ci.packages.is_empty() {
            from.extend(ci.package_sources);
        }
        dependencies.requirements = ci.packages;
        // An environment file can contradict the extras.
        let mut conda = match dependencies.extras.is_empty() {
            true => conda::environment(tree)?,
            false => conda::CondaEnvironment::default(),
        };
        conda.requirements.retain(|line| !is_own(tree, line));
        if !conda.requirements.is_empty() || !conda.files.is_empty() {
            from.push(conda.path);
        }
        dependencies.requirements.extend(conda.requirements);
        dependencies.files.extend(conda.files);
    }
    if !installable
        && let Some(path) = application_file(tree, dependencies.files.is_empty())
        && !dependencies.files.iter().any(|file| file == path)
    {
        from.push(path.to_owned());
        dependencies.files.insert(0, path.to_owned());
    }
    Ok(dependencies)
}

impl TestDependencies {
    fn is_empty(&self) -> bool {
        self.lacks_pytest && self.requirements.is_empty() && self.files.is_empty()
    }

    /// Adds what tox installs, with those of its extras that the project declares.
    fn add_tox(
        &mut self,
        tox: ToxDependencies,
        files: &Files,
        installable: bool,
        from: &mut Vec<String>,
    ) {
        if !tox.requirements.is_empty() || !tox.files.is_empty() {
            from.push(files.tox_file.to_owned());
        }
        self.requirements.extend(tox.requirements);
        self.files.extend(tox.files);
        if installable {
            let declared = extras(files).into_iter().flat_map(|(_, names)| names);
            self.extras
                .extend(declared.filter(|name| tox.extras.contains(name)));
            // These are for tests.
            self.lacks_pytest &= tox.extras.is_empty();
        }
    }
}

/// Returns whether a package is called like a module of the tree: a published copy of the code must not be installed.
fn is_own(tree: &Tree, requirement: &str) -> bool {
    let module = package_name(requirement).replace('-', "_");
    ["", "src/"].iter().any(|folder| {
        tree.contains(&format!("{folder}{module}/__init__.py"))
            || tree.contains(&format!("{folder}{module}.py"))
    })
}

fn has_pytest(requirements: &[String]) -> bool {
    requirements.iter().any(|r| package_name(r) == "pytest")
}

/// Returns the extras by the file that declares them.
fn extras(files: &Files) -> Vec<(&'static str, Vec<String>)> {
    let mut all = Vec::new();
    let project = files
        .pyproject
        .get("project")
        .and_then(|p| p.get("optional-dependencies"));
    let poetry = files.poetry().and_then(|p| p.get("extras"));
    for table in [project, poetry]
        .into_iter()
        .flatten()
        .filter_map(Value::as_table)
    {
        all.push(("pyproject.toml", table.keys().cloned().collect()));
    }
    let names: Vec<_> = files
        .setup_cfg
        .keys("options.extras_require")
        .map(str::to_owned)
        .collect();
    all.push(("setup.cfg", names));
    if let Some(setup_py::Literal::Dict(table)) =
        setup_py::literal(&files.setup_py, "extras_require")
    {
        all.push(("setup.py", table.keys().cloned().collect()));
    }
    all
}

/// Returns the requirements of the test extras of a project that is not installed itself.
pub(super) fn virtual_extras(files: &Files, metadata: &ProjectMetadata) -> Vec<String> {
    let chosen = extras(files)
        .into_iter()
        .find_map(|(_, names)| choose(&names));
    metadata.extra_requirements(&chosen.unwrap_or_default())
}

/// Returns the extras that are for tests.
pub(crate) fn test_extras(names: &[String]) -> Vec<String> {
    choose(names).unwrap_or_default()
}

/// Returns the declared names that CI installs, in the order in which they are declared. If it installs all of them, those
/// for other purposes than tests are left out.
fn installed_by_ci(declared: &[String], installed: &[String], all: bool) -> Option<Vec<String>> {
    let normal = |name: &str| name.to_lowercase().replace('_', "-");
    let is_installed = |name: &&String| {
        all && !ci::is_for_other_purpose(name)
            || installed.iter().any(|other| normal(other) == normal(name))
    };
    let chosen: Vec<String> = declared.iter().filter(is_installed).cloned().collect();
    (!chosen.is_empty()).then_some(chosen)
}

/// Returns the declared names that tox installs for tests, if one of them is named for tests: `test_all` next to `test`.
fn installed_by_tox(declared: &[String], installed: &[String]) -> Option<Vec<String>> {
    let chosen = installed_by_ci(declared, installed, false)?;
    choose_longer(&chosen).map(|_| chosen)
}

fn choose(names: &[String]) -> Option<Vec<String>> {
    for purpose_names in [&FOR_TESTS[..], &FOR_DEVELOPMENT[..]] {
        let chosen: Vec<_> = names
            .iter()
            .filter(|n| purpose_names.contains(&n.to_lowercase().replace('_', "-").as_str()))
            .cloned()
            .collect();
        if !chosen.is_empty() {
            return Some(chosen);
        }
    }
    None
}

/// Returns names such as `test-deps` and `tests_core`, for projects without usual ones.
fn choose_longer(names: &[String]) -> Option<Vec<String>> {
    let is_for_tests = |name: &&String| {
        let lower = name.to_lowercase();
        let mut parts = lower.split(['-', '_']);
        let has_other = parts.clone().any(ci::is_for_other_purpose);
        !has_other && parts.any(|part| part != "pytest" && FOR_TESTS.contains(&part))
    };
    let chosen: Vec<_> = names.iter().filter(is_for_tests).cloned().collect();
    (!chosen.is_empty()).then_some(chosen)
}

/// Adds the requirements of a dependency group (PEP 735), including those of included groups, unless it was `seen`.
fn group(
    groups: &toml::Table,
    name: &str,
    into: &mut Vec<String>,
    depth: usize,
    seen: &mut BTreeSet<String>,
) {
    if !seen.insert(name.to_owned()) {
        return;
    }
    for item in groups
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        match item {
            Value::String(requirement) => into.push(requirement.clone()),
            Value::Table(table) if depth > 0 => {
                if let Some(included) = table.get("include-group").and_then(Value::as_str) {
                    group(groups, included, into, depth - 1, seen);
                }
            }
            _ => {}
        }
    }
}

fn tests_require(files: &Files, into: &mut Vec<String>, from: &mut Vec<String>) {
    if let Some(literal) = setup_py::literal(&files.setup_py, "tests_require") {
        from.push("setup.py".to_owned());
        into.extend(literal.texts());
    }
    let listed = files.setup_cfg.requirements("options", "tests_require");
    if !listed.is_empty() {
        from.push("setup.cfg".to_owned());
        let lines = listed.iter().flat_map(|line| line.split(';').next());
        into.extend(lines.map(str::to_owned));
    }
}

/// Finds the requirements file for tests: one with pytest that CI or tox installs (`used`), otherwise by its name (for
/// tests or for development), or because it requires pytest.
///
/// If several match, the one with the shortest name is returned.
fn requirements_file(tree: &Tree, used: &[String]) -> Result<Option<String>> {
    let is_used = |path: &str| used.iter().any(|file| file == path);
    let candidate = |path: &&str| {
        let lower = path.to_lowercase();
        let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let place = match path.matches('/').count() {
            0 => true,
            1 => folder.contains("require") || is_for_tests(folder) || folder == "ci",
            2 => matches!(
                folder,
                "test/unit" | "test/units" | "tests/unit" | "tests/units"
            ),
            _ => false,
        };
        let is_named = name.contains("require") || folder.contains("require");
        let is_list = name.ends_with(".txt") || is_uncompiled(tree, path);
        is_used(path) || place && is_named && is_list
    };
    let mut best: Option<((bool, bool, u8), usize, &str)> = None;
    for path in tree.paths().filter(candidate) {
        let requires_pytest = text(tree, path)?.unwrap_or_default().lines().any(|line| {
            let name = package_name(line);
            name == "pytest" || name.starts_with("pytest-")
        });
        let lower = path.to_lowercase();
        let kind = match (is_for_tests(&lower), lower.contains("dev")) {
            (true, _) => 0,
            (_, true) => 1,
            _ if requires_pytest => 2,
            _ => continue,
        };
        let is_certain = requires_pytest && is_used(path);
        // A file for development that lacks pytest ranks below any that requires it.
        let kind = (kind == 1 && !requires_pytest, !is_certain, kind);
        let rank = (kind, path.len(), path);
        if best.is_none_or(|best| rank < best) {
            best = Some(rank);
        }
    }
    Ok(best.map(|(_, _, path)| path.to_owned()))
}

/// Returns whether a file is the source of a requirements file that is not committed, as for pip-tools.
fn is_uncompiled(tree: &Tree, path: &str) -> bool {
    let compiled = path.strip_suffix(".in").map(|path| format!("{path}.txt"));
    compiled.is_some_and(|compiled| !tree.contains(&compiled))
}

/// Returns the requirements file of an application. The file for production counts only if there is none for tests.
fn application_file(tree: &Tree, has_none_for_tests: bool) -> Option<&'static str> {
    let names = [
        "requirements.txt",
        "requirements.in",
        "requirements/base.txt",
        "requirements/base.in",
        "requirements/common.txt",
        "requirements/main.txt",
        "requirements/main.in",
        "requirements/requirements.txt",
    ];
    let for_production = [
        "requirements/default.txt",
        "requirements/prod.txt",
        "requirements/production.txt",
    ];
    let for_production = for_production.into_iter().filter(|_| has_none_for_tests);
    let mut names = names.into_iter().chain(for_production);
    names.find(|path| tree.contains(path))
}

/// Returns whether a path in lower case names tests, but not those in documentation.
fn is_for_tests(path: &str) -> bool {
    path.replace("doctest", "")
        .replace("latest", "")
        .contains("test")
}

/// Returns the test dependencies in the tables of Hatch, PDM, Rye and uv.
fn tool_requirements(files: &Files, from: &mut Vec<String>) -> Vec<String> {
    let tool = |path: &[&str]| {
        let mut value = files.pyproject.get("tool")?;
        for key in path {
            value = value.get(key)?;
        }
        Some(value)
    };
    let mut lists = Vec::from(["uv", "rye"].map(|name| tool(&[name, "dev-dependencies"])));
    if let Some(groups) = tool(&["pdm", "dev-dependencies"]).and_then(Value::as_table) {
        let names: Vec<String> = groups.keys().cloned().collect();
        // PDM installs all of them.
        let chosen = choose(&names).or_else(|| installed_by_ci(&names, &[], true));
        lists.extend(chosen.into_iter().flatten().map(|name| groups.get(&name)));
    }
    for environment in HATCH_ENVIRONMENTS {
        let Some(environment) = tool(&["hatch", "envs", environment]) else {
            continue;
        };
        lists.push(environment.get("dependencies"));
        lists.push(environment.get("extra-dependencies"));
    }
    let lists = lists.into_iter().flatten().filter_map(Value::as_array);
    let texts = lists.flatten().filter_map(Value::as_str);
    let texts: Vec<String> = texts.map(str::to_owned).collect();
    if !texts.is_empty() {
        from.push("pyproject.toml".to_owned());
    }
    texts
}

/// Returns the extras or groups that environments of Hatch install.
fn hatch_names(files: &Files, key: &str) -> Vec<String> {
    let environments = files.tool("hatch").and_then(|hatch| hatch.get("envs"));
    let lists = HATCH_ENVIRONMENTS.iter().filter_map(|name| {
        let names = environments?.get(name)?.get(key)?;
        names.as_array()
    });
    let names = lists.flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Returns the development packages of a Pipfile, and all its other packages if nothing else installs them.
fn pipfile(tree: &Tree, installable: bool) -> Result<Vec<String>> {
    let pipfile = text(tree, "Pipfile")?.unwrap_or_default();
    let pipfile: toml::Table = pipfile.parse().unwrap_or_default();
    let tables = match installable {
        true => &["dev-packages"][..],
        false => &["packages", "dev-packages"],
    };
    let tables = tables
        .iter()
        .filter_map(|name| pipfile.get(*name)?.as_table());
    let requirement = |(name, value): (&String, &Value)| {
        let table = value.as_table();
        let version = match table {
            // The code itself, other folders and git URLs are not followed.
            Some(table) => table.get("version")?.as_str()?,
            None => value.as_str()?,
        };
        Some(format!("{name}{}", version.trim_start_matches('*')))
    };
    Ok(tables.flatten().filter_map(requirement).collect())
}
