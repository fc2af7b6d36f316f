//! Requirements in Poetry's notation.

use toml::Value;

use super::{Files, ci, entries, strings, value};
use crate::recipe::extras::with_extras;
use crate::repository::Tree;

/// Returns whether the project is an application that Poetry cannot build, because it has no module of its name.
pub(super) fn is_application(pyproject: &toml::Table, tree: &Tree) -> bool {
    let of_poetry = |key: &str| value(pyproject, &format!("tool.poetry.{key}"));
    let is_stated = of_poetry("packages").is_some() || of_poetry("package-mode").is_some();
    let name = of_poetry("name").filter(|_| !is_stated);
    let Some(name) = name.and_then(Value::as_str) else {
        return false;
    };
    let module = name.to_lowercase().replace(['-', '.'], "_");
    let is_module = |path: &str| {
        let path = path.strip_prefix("src/").unwrap_or(path);
        let first = path.split('/').next().unwrap_or(path).to_lowercase();
        first.strip_suffix(".py").unwrap_or(&first) == module
    };
    !tree.paths().any(is_module)
}

/// Returns the requirements that the package itself has, and those of each extra.
pub(in crate::recipe) fn dependencies(files: &Files) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let all = files.get("tool.poetry.dependencies");
    let is_optional = |value: &Value| value.get("optional").and_then(Value::as_bool) == Some(true);
    let main = entries(all)
        .filter(|(name, value)| *name != "python" && !is_optional(value))
        .flat_map(|(name, value)| requirements(name, value))
        .collect();
    let of_extra = |names: &Value| {
        let names = strings(Some(names)).into_iter();
        let values = names.filter_map(|name| Some((all?.get(&name)?.clone(), name)));
        values
            .flat_map(|(value, name)| requirements(&name, &value))
            .collect()
    };
    let extras = entries(files.get("tool.poetry.extras"));
    let extras = extras.map(|(name, names)| (name.clone(), of_extra(names)));
    (main, extras.collect())
}

/// Returns the development packages. `choose` selects groups by their names.
pub(super) fn development(
    files: &Files,
    choose: fn(&[String]) -> Option<Vec<String>>,
) -> Vec<String> {
    let mut tables = Vec::new();
    if let Some(Value::Table(groups)) = files.get("tool.poetry.group") {
        let names: Vec<String> = groups.keys().cloned().collect();
        // Poetry installs all groups that are not optional.
        let is_default = |name: &&String| {
            let optional = groups.get(*name).and_then(|group| group.get("optional"));
            optional.and_then(Value::as_bool) != Some(true) && !ci::is_for_other_purpose(name)
        };
        let default = || names.iter().filter(is_default).cloned().collect();
        let chosen: Vec<String> = choose(&names).unwrap_or_else(default);
        tables.extend(
            chosen
                .iter()
                .filter_map(|name| groups.get(name)?.get("dependencies")?.as_table()),
        );
    }
    let old = files.get("tool.poetry.dev-dependencies");
    tables.extend(old.and_then(Value::as_table));
    tables
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "python")
        .flat_map(|(name, value)| requirements(name, value))
        .collect()
}

/// Converts one dependency, which may list several versions with conditions. Paths and git URLs are not followed.
pub(super) fn requirements(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::String(version) => vec![format!("{name}{}", bounds(version))],
        Value::Array(values) => values
            .iter()
            .flat_map(|value| requirements(name, value))
            .collect(),
        Value::Table(table) => {
            let text = |key: &str| table.get(key).and_then(Value::as_str);
            let Some(version) = text("version") else {
                return Vec::new();
            };
            let conditions: Vec<String> = text("python")
                .and_then(python_condition)
                .into_iter()
                .chain(text("markers").map(str::to_owned))
                .collect();
            let condition = match conditions.is_empty() {
                true => String::new(),
                false => format!(" ; {}", conditions.join(" and ")),
            };
            let name = with_extras(name, &strings(table.get("extras")));
            vec![format!("{name}{}{condition}", bounds(version))]
        }
        _ => Vec::new(),
    }
}

/// Converts limits of Python such as `>=3.7,<3.9`. Returns `None` for a notation that only Poetry has.
fn python_condition(limits: &str) -> Option<String> {
    let clause = |clause: &str| {
        let clause = clause.trim();
        let version = clause.trim_start_matches(['<', '>', '=', '!']);
        let operator = &clause[..clause.len() - version.len()];
        let version = version.trim();
        let is_version = |c: char| c.is_ascii_digit() || c == '.';
        let is_plain = !operator.is_empty() && version.chars().all(is_version);
        is_plain.then(|| format!("python_version {operator} '{version}'"))
    };
    let clauses: Option<Vec<String>> = limits.split(',').map(clause).collect();
    Some(clauses?.join(" and "))
}

/// Converts Poetry's limits: `^1.2` becomes `>=1.2,<2`, and `~1.2` becomes `>=1.2,<1.3`. Others stay as they are.
fn bounds(version: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poetry_versions_become_bounds() {
        assert_eq!(bounds("^1.2.3"), ">=1.2.3,<2");
        assert_eq!(bounds("^0.2.3"), ">=0.2.3,<0.3");
        assert_eq!(bounds("^0.0.3"), ">=0.0.3,<0.0.4");
        assert_eq!(bounds("~1.2"), ">=1.2,<1.3");
        assert_eq!(bounds("1.2"), "==1.2");
        assert_eq!(bounds(">=1,<3"), ">=1,<3");
        assert_eq!(bounds("*"), "");
    }

    #[test]
    fn tables_become_extras_and_markers() {
        let value: toml::Table = "x = [{version = '^1', extras = ['a', 'b'], python = '<3.9'}, {version = '2', markers = \"sys_platform == 'linux'\"}]"
            .parse()
            .unwrap_or_default();
        assert_eq!(
            requirements("x", &value["x"]),
            [
                "x[a,b]>=1,<2 ; python_version < '3.9'",
                "x==2 ; sys_platform == 'linux'"
            ]
        );
        assert_eq!(python_condition("^3.8"), None);
    }
}
