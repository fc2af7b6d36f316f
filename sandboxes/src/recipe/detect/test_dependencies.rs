//! Detection of test dependencies.
//!
//! The first kind of place that lists some counts: extras and dependency groups named for tests; `tests_require` and
//! Poetry's groups; requirements files; tox.

use std::collections::BTreeSet;

use toml::Value;

use super::ci::CiInstalls;
use super::project_metadata::ProjectMetadata;
use super::requirements_files::{application_file, requirements_file};
use super::tox::{self, ToxDependencies};
use super::{Files, ci, conda, entries, local_lines, package_name, pixi, poetry, strings, text};
use crate::pattern::Pattern;
use crate::recipe::setup_py;
use crate::repository::Tree;
use crate::sandbox::Result;

#[derive(Debug, Default)]
pub(super) struct TestDependencies {
    pub requirements: Vec<String>,
    pub files: Vec<String>,
    pub extras: Vec<String>,
    /// Files that list these dependencies.
    pub from: Vec<String>,
    /// Whether the extras do not suffice for tests: there are no extras, or their known requirements lack pytest and their
    /// names are not for tests.
    lacks_pytest: bool,
}

/// Names of extras and groups for tests. If none exists, those for development are used.
static FOR_TESTS: Pattern = Pattern::new("^(?:(?:unit-?)?tests?|testing|pytest)$");
static FOR_DEVELOPMENT: Pattern = Pattern::new("^(?:dev|develop|development)$");

/// Environments of Hatch for tests or development.
const HATCH_ENVIRONMENTS: [&str; 6] = ["hatch-test", "test", "tests", "testing", "default", "dev"];

pub(super) fn test_requirements(
    tree: &Tree,
    files: &Files,
    installable: bool,
    python: &str,
) -> Result<TestDependencies> {
    let mut dependencies = TestDependencies::default();
    let mut ci = ci::read(tree)?;
    let tox_groups = tox::groups(&files.tox, python);
    ci.groups.extend(tox_groups.iter().cloned());
    ci.groups.extend(hatch_names(files, "dependency-groups"));
    ci.extras.extend(hatch_names(files, "features"));
    let tox = tox::dependencies(tree, &files.tox, python);
    if installable && let Some((file, extras)) = choose_extras(files, &tox, &ci) {
        dependencies.extras = extras;
        dependencies.from.push(file.to_owned());
    }
    // CI also installs extras for other purposes. If their metadata shows that they lack pytest, other lists count too.
    let lists = ProjectMetadata::read(tree)?.extra_requirements(&dependencies.extras);
    let is_named = |extras: &[String]| choose(extras).or_else(|| choose_longer(extras)).is_some();
    dependencies.lacks_pytest = dependencies.extras.is_empty()
        || !lists.is_empty() && !has_pytest(&lists) && !is_named(&dependencies.extras);
    if let Some(Value::Table(groups)) = files.get("dependency-groups") {
        let chosen = choose_groups(groups, &tox_groups, &ci);
        if !chosen.is_empty() {
            dependencies.from.push("pyproject.toml".to_owned());
        }
        let mut seen = BTreeSet::new();
        for name in chosen {
            group(groups, &name, &mut dependencies.requirements, 8, &mut seen);
        }
    }
    dependencies.add(poetry::development(files, choose), "pyproject.toml");
    dependencies.add(tool_requirements(files), "pyproject.toml");
    dependencies.add_pixi(tree, files, installable)?;
    if dependencies.is_empty() {
        dependencies.add_tests_require(files);
    }
    // The dependencies suffice if they include pytest, or an extra that may include it.
    if dependencies.lacks_pytest && !has_pytest(&dependencies.requirements) {
        let used = [ci.files.as_slice(), tox.files.as_slice()].concat();
        if let Some(path) = requirements_file(tree, &used)? {
            if installable {
                dependencies
                    .extras
                    .extend(local_lines::own_extras(tree, &path)?);
            }
            // The other files and packages that tox installs go with this one.
            if tox.files.contains(&path) {
                dependencies.add_tox(tox, files, installable);
            } else {
                let files = ci::files_of_job(tree, path)?;
                dependencies.from.extend(files.iter().cloned());
                dependencies.files.extend(files);
            }
        } else if dependencies.requirements.is_empty() && !ci.files.is_empty() {
            dependencies.from.extend(ci.files.iter().cloned());
            dependencies.files.append(&mut ci.files);
        } else {
            dependencies.add_tox(tox, files, installable);
        }
    }
    if dependencies.is_empty() {
        dependencies.add(pipfile(tree, installable)?, "Pipfile");
    }
    if dependencies.is_empty() {
        dependencies.add_ci_and_conda(tree, ci)?;
    }
    if !installable
        && let Some(path) = application_file(tree, dependencies.files.is_empty())
        && !dependencies.files.iter().any(|file| file == path)
    {
        dependencies.from.push(path.to_owned());
        dependencies.files.insert(0, path.to_owned());
    }
    Ok(dependencies)
}

impl TestDependencies {
    fn is_empty(&self) -> bool {
        self.lacks_pytest && self.requirements.is_empty() && self.files.is_empty()
    }

    /// Adds requirements that a file lists.
    fn add(&mut self, requirements: Vec<String>, file: &str) {
        if !requirements.is_empty() {
            self.from.push(file.to_owned());
        }
        self.requirements.extend(requirements);
    }

    fn add_tests_require(&mut self, files: &Files) {
        let literal = setup_py::literal(&files.setup_py, "tests_require");
        let texts = literal.map(|literal| literal.texts());
        self.add(texts.unwrap_or_default(), "setup.py");
        let listed = files.setup_cfg.requirements("options", "tests_require");
        let lines = listed.iter().flat_map(|line| line.split(';').next());
        self.add(lines.map(str::to_owned).collect(), "setup.cfg");
    }

    /// Adds the packages that pixi installs for tests; if nothing else is known or installed, also the others.
    fn add_pixi(&mut self, tree: &Tree, files: &Files, installable: bool) -> Result<()> {
        let pixi = pixi::packages(tree, files, choose)?;
        let mut requirements = pixi.for_tests;
        if !installable || self.is_empty() && requirements.is_empty() {
            requirements.extend(pixi.general);
        }
        requirements.retain(|line| !is_own(tree, line));
        self.add(requirements, pixi.path);
        Ok(())
    }

    /// Adds the packages in the commands of CI, and those of an environment file of conda.
    fn add_ci_and_conda(&mut self, tree: &Tree, mut ci: CiInstalls) -> Result<()> {
        ci.packages.retain(|line| !is_own(tree, line));
        if !ci.packages.is_empty() {
            self.from.extend(ci.package_sources);
        }
        self.requirements = ci.packages;
        // An environment file can contradict the extras.
        if !self.extras.is_empty() {
            return Ok(());
        }
        let mut conda = conda::environment(tree)?;
        conda.requirements.retain(|line| !is_own(tree, line));
        if !conda.requirements.is_empty() || !conda.files.is_empty() {
            self.from.push(conda.path);
        }
        self.requirements.extend(conda.requirements);
        self.files.extend(conda.files);
        Ok(())
    }

    /// Adds what tox installs, with those of its extras that the project declares.
    fn add_tox(&mut self, tox: ToxDependencies, files: &Files, installable: bool) {
        if !tox.requirements.is_empty() || !tox.files.is_empty() {
            self.from.push(files.tox_file.to_owned());
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
    for keys in ["project.optional-dependencies", "tool.poetry.extras"] {
        let names = entries(files.get(keys)).map(|(name, _)| name.clone());
        all.push(("pyproject.toml", names.collect()));
    }
    let names = files.setup_cfg.keys("options.extras_require");
    all.push(("setup.cfg", names.map(str::to_owned).collect()));
    let names = setup_py::dict(&files.setup_py, "extras_require").into_keys();
    all.push(("setup.py", names.collect()));
    all
}

/// Returns the extras to install for tests, and the file that declares them.
fn choose_extras(
    files: &Files,
    tox: &ToxDependencies,
    ci: &CiInstalls,
) -> Option<(&'static str, Vec<String>)> {
    let declared = extras(files);
    let first = |rule: &dyn Fn(&[String]) -> Option<Vec<String>>| {
        declared
            .iter()
            .find_map(|(file, names)| Some((*file, rule(names)?)))
    };
    first(&|names| installed_by_tox(names, &tox.extras))
        .or_else(|| first(&|names| choose(names).map(|chosen| with_companions(chosen, names, ci))))
        .or_else(|| first(&|names| installed_by_ci(names, &ci.extras, ci.has_all_extras)))
        .or_else(|| first(&choose_longer))
}

/// Adds the declared extras that a command of CI installs with one of those chosen: `.[testing,linkify]`.
fn with_companions(mut chosen: Vec<String>, declared: &[String], ci: &CiInstalls) -> Vec<String> {
    let with_chosen = |set: &&Vec<String>| chosen.iter().any(|name| set.contains(name));
    let sets: Vec<&Vec<String>> = ci.extra_sets.iter().filter(with_chosen).collect();
    let is_new =
        |name: &&String| !chosen.contains(name) && sets.iter().any(|set| set.contains(name));
    let new: Vec<String> = declared.iter().filter(is_new).cloned().collect();
    chosen.extend(new);
    chosen
}

/// Returns the dependency groups to install for tests.
fn choose_groups(groups: &toml::Table, tox_groups: &[String], ci: &CiInstalls) -> Vec<String> {
    let names: Vec<String> = groups.keys().cloned().collect();
    let mut chosen = installed_by_tox(&names, tox_groups).unwrap_or_default();
    chosen.extend(choose(&names).unwrap_or_default());
    if chosen.is_empty() {
        let by_ci = installed_by_ci(&names, &ci.groups, ci.has_all_groups);
        chosen.extend(by_ci.or_else(|| choose_longer(&names)).unwrap_or_default());
    }
    chosen
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
    for purpose in [&FOR_TESTS, &FOR_DEVELOPMENT] {
        let chosen: Vec<_> = names
            .iter()
            .filter(|name| purpose.is_match(&name.to_lowercase().replace('_', "-")))
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
        !has_other && parts.any(|part| part != "pytest" && FOR_TESTS.is_match(part))
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
    let items = groups.get(name).and_then(Value::as_array);
    for item in items.into_iter().flatten() {
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

/// Returns the test dependencies in the tables of Hatch, PDM, Rye and uv.
fn tool_requirements(files: &Files) -> Vec<String> {
    let lists = ["tool.uv.dev-dependencies", "tool.rye.dev-dependencies"];
    let mut lists = Vec::from(lists.map(|keys| files.get(keys)));
    if let Some(Value::Table(groups)) = files.get("tool.pdm.dev-dependencies") {
        let names: Vec<String> = groups.keys().cloned().collect();
        // PDM installs all of them.
        let chosen = choose(&names).or_else(|| installed_by_ci(&names, &[], true));
        lists.extend(chosen.into_iter().flatten().map(|name| groups.get(&name)));
    }
    let lists = lists.into_iter().flat_map(strings);
    let hatch = ["dependencies", "extra-dependencies"].into_iter();
    let hatch = hatch.flat_map(|key| hatch_names(files, key));
    lists.chain(hatch).collect()
}

/// Returns the extras, groups or packages that environments of Hatch install.
fn hatch_names(files: &Files, key: &str) -> Vec<String> {
    let keys = HATCH_ENVIRONMENTS.map(|name| format!("tool.hatch.envs.{name}.{key}"));
    keys.iter()
        .flat_map(|keys| strings(files.get(keys)))
        .collect()
}

/// Returns the development packages of a Pipfile, and all its other packages if nothing else installs them.
fn pipfile(tree: &Tree, installable: bool) -> Result<Vec<String>> {
    let pipfile = text(tree, "Pipfile")?.unwrap_or_default();
    let pipfile: toml::Table = pipfile.parse().unwrap_or_default();
    let tables = match installable {
        true => &["dev-packages"][..],
        false => &["packages", "dev-packages"],
    };
    let packages = tables.iter().flat_map(|name| entries(pipfile.get(*name)));
    let requirement = |(name, value): (&String, &Value)| {
        let table = value.as_table();
        let version = match table {
            // The code itself, other folders and git URLs are not followed.
            Some(table) => table.get("version")?.as_str()?,
            None => value.as_str()?,
        };
        Some(format!("{name}{}", version.trim_start_matches('*')))
    };
    Ok(packages.filter_map(requirement).collect())
}
