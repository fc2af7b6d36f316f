//! Suggests imports for a name, from the repository's definitions and the imports in its other files.

use std::collections::HashMap;
use std::path::Path;

use regex::Regex;

use super::Module;
use crate::workspace::{MAX_TEXT_LEN, read_text};

/// Returns the dotted name under which a file is imported, starting from its outermost package folder.
pub(super) fn dotted_name(path: &str, is_package: &dyn Fn(&str) -> bool) -> String {
    let parts: Vec<&str> = path.trim_end_matches(".py").split('/').collect();
    let mut name = parts[name_start(&parts, is_package)..].to_vec();
    if name.len() > 1 {
        name.pop_if(|last| *last == "__init__");
    }
    name.join(".")
}

/// Returns the index of the part of a path with which its dotted name begins.
pub(crate) fn package_start(root: &Path, parts: &[&str]) -> usize {
    name_start(parts, &|folder| is_package(root, folder))
}

fn name_start(parts: &[&str], is_package: &dyn Fn(&str) -> bool) -> usize {
    let mut start = parts.len() - 1;
    while start > 0 && is_package(&parts[..start].join("/")) {
        start -= 1;
    }
    start
}

fn is_package(root: &Path, folder: &str) -> bool {
    root.join(folder).join("__init__.py").is_file()
}

/// Returns at most three absolute import statements that bind `name`, best first. `files` are the repository's files.
pub fn suggest(root: &Path, files: &[String], name: &str) -> Vec<String> {
    let escaped = regex::escape(name);
    let (Ok(import), Ok(definition)) = (
        Regex::new(&format!(
            r"(?m)^[ \t]*(?:from[ \t]+\S+[ \t]+)?import[ \t][^\n#]*\b{escaped}\b[^\n#]*"
        )),
        Regex::new(&format!(
            r"(?m)^(?:(?:async[ \t]+)?def|class)[ \t]+{escaped}\b|^{escaped}[ \t]*=[^=]"
        )),
    ) else {
        return Vec::new();
    };
    // Numbers of places in the repository that support a statement.
    let mut weights: HashMap<String, usize> = HashMap::new();
    let mut add =
        |statement: String, weight: usize| *weights.entry(statement).or_default() += weight;
    for path in files.iter().filter(|p| p.ends_with(".py")) {
        let Some(text) = read_text(&root.join(path), MAX_TEXT_LEN) else {
            continue;
        };
        if !text.contains(name) {
            continue;
        }
        let mut here = None;
        let mut here = || {
            here.get_or_insert_with(|| dotted_name(path, &|folder| is_package(root, folder)))
                .clone()
        };
        let is_package_file = path.ends_with("/__init__.py");
        for line in import.find_iter(&text) {
            let module = Module::parse(format!(
                "{}\n",
                line.as_str().trim().trim_end_matches(['(', '\\', ','])
            ));
            for binding in module.imports().into_iter().flat_map(|i| i.bindings) {
                if binding.local != name || binding.module == "__future__" {
                    continue;
                }
                let mut absolute = binding.clone();
                if binding.module.starts_with('.') {
                    let Some(from) = absolute_module(&here(), is_package_file, &binding.module)
                    else {
                        continue;
                    };
                    absolute.module = from;
                }
                add(absolute.statement(), 1);
                if is_package_file {
                    add(format!("from {} import {name}", here()), 3);
                }
            }
        }
        // The name of the package in the root is not known.
        let is_importable = !path.contains("test") && path != "__init__.py";
        if is_importable && definition.is_match(&text) {
            add(format!("from {} import {name}", here()), 2);
        }
    }
    let mut suggestions: Vec<(String, usize)> = weights.into_iter().collect();
    suggestions.sort_by(|(a, weight), (b, other)| (other, a.len(), a).cmp(&(weight, b.len(), b)));
    suggestions.truncate(3);
    suggestions
        .into_iter()
        .map(|(statement, _)| statement)
        .collect()
}

/// Converts `..x` in module `here` to an absolute name.
pub(super) fn absolute_module(here: &str, is_package: bool, relative: &str) -> Option<String> {
    let dots = relative.len() - relative.trim_start_matches('.').len();
    let mut parts: Vec<&str> = here.split('.').collect();
    let up = dots - usize::from(is_package);
    for _ in 0..up {
        parts.pop()?;
    }
    let rest = relative.trim_start_matches('.');
    if !rest.is_empty() {
        parts.push(rest);
    }
    let name = parts.join(".");
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
