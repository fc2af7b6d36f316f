//! What the tests need, from wherever a project declares it. The first kind of place that says something counts:
//! extras and dependency groups named for tests; `tests_require` and Poetry's groups; requirements files; tox.

use toml::Value;

use super::{Files, package_name};
use crate::recipe::setup_py;
use crate::repository::Tree;
use crate::sandbox::Result;

#[derive(Debug, Default)]
pub(super) struct TestDependencies {
    pub requirements: Vec<String>,
    pub files: Vec<String>,
    pub extras: Vec<String>,
}

/// Names of extras and groups: those for tests; if there is none, those for development.
const FOR_TESTS: [&str; 6] = [
    "test",
    "tests",
    "testing",
    "unittest",
    "unit-test",
    "pytest",
];
const FOR_DEVELOPMENT: [&str; 3] = ["dev", "develop", "development"];

pub(super) fn test_requirements(
    tree: &Tree,
    files: &Files,
    installable: bool,
    from: &mut Vec<String>,
) -> Result<TestDependencies> {
    let mut wanted = TestDependencies::default();
    if installable {
        for (file, extras) in extras(files) {
            if let Some(chosen) = choose(&extras) {
                wanted.extras = chosen;
                from.push(file.to_owned());
                break;
            }
        }
    }
    if let Some(groups) = files
        .pyproject
        .get("dependency-groups")
        .and_then(Value::as_table)
        && let Some(chosen) = choose(&groups.keys().cloned().collect::<Vec<_>>())
    {
        for name in chosen {
            group(groups, &name, &mut wanted.requirements, 8);
        }
        from.push("pyproject.toml".to_owned());
    }
    wanted.requirements.extend(poetry(files, from));
    if wanted.extras.is_empty() && wanted.requirements.is_empty() {
        tests_require(files, &mut wanted.requirements, from);
    }
    // Enough if pytest itself is among them or an extra may hold it.
    if wanted.extras.is_empty() && !has_pytest(&wanted.requirements) {
        if let Some(path) = requirements_file(tree) {
            from.push(path.clone());
            wanted.files.push(path);
        } else {
            tox(tree, files, &mut wanted, from);
        }
    }
    if !installable && tree.contains("requirements.txt") {
        from.push("requirements.txt".to_owned());
        wanted.files.insert(0, "requirements.txt".to_owned());
    }
    Ok(wanted)
}

fn has_pytest(requirements: &[String]) -> bool {
    requirements.iter().any(|r| package_name(r) == "pytest")
}

/// Extras by the file that declares them.
fn extras(files: &Files) -> Vec<(&'static str, Vec<String>)> {
    let mut all = Vec::new();
    let project = files
        .pyproject
        .get("project")
        .and_then(|p| p.get("optional-dependencies"));
    let poetry = files
        .pyproject
        .get("tool")
        .and_then(|t| t.get("poetry"))
        .and_then(|p| p.get("extras"));
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

fn choose(names: &[String]) -> Option<Vec<String>> {
    for wanted in [&FOR_TESTS[..], &FOR_DEVELOPMENT[..]] {
        let chosen: Vec<_> = names
            .iter()
            .filter(|n| wanted.contains(&n.to_lowercase().replace('_', "-").as_str()))
            .cloned()
            .collect();
        if !chosen.is_empty() {
            return Some(chosen);
        }
    }
    None
}

/// The requirements of a dependency group (PEP 735), included groups too.
fn group(groups: &toml::Table, name: &str, into: &mut Vec<String>, depth: usize) {
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
                    group(groups, included, into, depth - 1);
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
    let listed = files.setup_cfg.list("options", "tests_require");
    if !listed.is_empty() {
        from.push("setup.cfg".to_owned());
        into.extend(
            listed
                .iter()
                .flat_map(|l| l.split(';').next())
                .map(str::to_owned),
        );
    }
}

/// Development packages of Poetry, in its own words for versions.
fn poetry(files: &Files, from: &mut Vec<String>) -> Vec<String> {
    let Some(poetry) = files.pyproject.get("tool").and_then(|t| t.get("poetry")) else {
        return Vec::new();
    };
    let mut tables = Vec::new();
    if let Some(groups) = poetry.get("group").and_then(Value::as_table)
        && let Some(chosen) = choose(&groups.keys().cloned().collect::<Vec<_>>())
    {
        tables.extend(
            chosen
                .iter()
                .filter_map(|name| groups.get(name)?.get("dependencies")?.as_table()),
        );
    }
    tables.extend(poetry.get("dev-dependencies").and_then(Value::as_table));
    if !tables.is_empty() {
        from.push("pyproject.toml".to_owned());
    }
    tables
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "python")
        .filter_map(|(name, value)| {
            let version = match value {
                Value::String(version) => version.as_str(),
                // Paths and git addresses are not ours to follow.
                Value::Table(table) if table.contains_key("version") => {
                    table.get("version")?.as_str()?
                }
                _ => return None,
            };
            Some(format!("{name}{}", poetry_version(version)))
        })
        .collect()
}

/// `^1.2` → `>=1.2,<2`; `~1.2` → `>=1.2,<1.3`; the rest as it is.
fn poetry_version(version: &str) -> String {
    let version = version.trim();
    if version == "*" || version.contains("||") {
        return String::new();
    }
    let (caret, rest) = match version.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => match version.strip_prefix('~').filter(|r| !r.starts_with('=')) {
            Some(rest) => (false, rest),
            None if version.starts_with(|c: char| c.is_ascii_digit()) => {
                return format!("=={version}");
            }
            None => return version.to_owned(),
        },
    };
    let numbers: Vec<u64> = rest.split('.').map_while(|n| n.parse().ok()).collect();
    let place = if caret {
        numbers
            .iter()
            .position(|n| *n > 0)
            .unwrap_or(numbers.len().saturating_sub(1))
    } else {
        1.min(numbers.len().saturating_sub(1))
    };
    let mut upper: Vec<u64> = numbers.iter().take(place + 1).copied().collect();
    match upper.last_mut() {
        Some(last) => *last = last.saturating_add(1),
        None => return String::new(),
    }
    let upper: Vec<_> = upper.iter().map(u64::to_string).collect();
    format!(">={rest},<{}", upper.join("."))
}

/// A requirements file for tests; if there is none, one for development. Of several, the shortest name.
fn requirements_file(tree: &Tree) -> Option<String> {
    let candidate = |words: &[&str]| {
        tree.paths()
            .filter(|path| {
                let lower = path.to_lowercase();
                let depth = path.matches('/').count();
                let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
                let place = match depth {
                    0 => true,
                    1 => folder.contains("require") || folder.contains("test") || folder == "ci",
                    _ => false,
                };
                let named = name.contains("require") || folder.contains("require");
                place && named && name.ends_with(".txt") && words.iter().any(|w| lower.contains(w))
            })
            .min_by_key(|path| (path.len(), path.to_string()))
            .map(str::to_owned)
    };
    candidate(&["test"]).or_else(|| candidate(&["dev"]))
}

/// `deps` of tox's test environment; lines for one factor alone and substitutions are left out.
fn tox(tree: &Tree, files: &Files, wanted: &mut TestDependencies, from: &mut Vec<String>) {
    let lines = files.tox.list("testenv", "deps");
    if lines.is_empty() {
        return;
    }
    from.push("tox.ini".to_owned());
    for line in lines {
        if line.contains('{') {
            continue;
        }
        if let Some(path) = line.strip_prefix("-r") {
            let path = path.trim().trim_start_matches("./").to_owned();
            if tree.contains(&path) {
                wanted.files.push(path);
            }
        } else if line.starts_with('-')
            || line
                .split_once(':')
                .is_some_and(|(f, _)| !f.contains(['>', '=', '<']))
        {
            continue;
        } else {
            wanted.requirements.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::poetry_version;

    #[test]
    fn versions_of_poetry_become_bounds() {
        assert_eq!(poetry_version("^1.2.3"), ">=1.2.3,<2");
        assert_eq!(poetry_version("^0.2.3"), ">=0.2.3,<0.3");
        assert_eq!(poetry_version("^0.0.3"), ">=0.0.3,<0.0.4");
        assert_eq!(poetry_version("~1.2"), ">=1.2,<1.3");
        assert_eq!(poetry_version("1.2"), "==1.2");
        assert_eq!(poetry_version(">=1,<3"), ">=1,<3");
        assert_eq!(poetry_version("*"), "");
    }
}
