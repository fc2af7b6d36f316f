//! Suggests imports for a name, from the repository's definitions and the imports in its other files.

use std::collections::HashMap;
use std::path::Path;

use regex::Regex;

use super::Module;
use crate::workspace::{MAX_TEXT_LEN, read_text};

/// A way to import a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSuggestion {
    /// An absolute import statement that binds the name.
    pub statement: String,
    /// Number of places in the repository that support it.
    pub weight: usize,
}

/// Returns the dotted name under which a file is imported, starting from its outermost package folder.
pub fn module_name(root: &Path, path: &str) -> String {
    let parts: Vec<&str> = path.trim_end_matches(".py").split('/').collect();
    let mut start = parts.len() - 1;
    while start > 0
        && root
            .join(parts[..start].join("/"))
            .join("__init__.py")
            .is_file()
    {
        start -= 1;
    }
    let mut name = parts[start..].to_vec();
    if name.last() == Some(&"__init__") {
        name.pop();
    }
    name.join(".")
}

/// Returns at most three import statements for `name`, best first. `files` are the repository's files.
pub fn suggest(root: &Path, files: &[String], name: &str) -> Vec<ImportSuggestion> {
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
    let mut weights: HashMap<String, usize> = HashMap::new();
    for path in files.iter().filter(|p| p.ends_with(".py")) {
        let Some(text) = read_text(&root.join(path), MAX_TEXT_LEN) else {
            continue;
        };
        if !text.contains(name) {
            continue;
        }
        let mut here = None;
        let mut here = || here.get_or_insert_with(|| module_name(root, path)).clone();
        let is_package = path.ends_with("/__init__.py");
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
                    let Some(from) = absolute_module(&here(), is_package, &binding.module) else {
                        continue;
                    };
                    absolute.module = from;
                }
                *weights.entry(absolute.statement()).or_default() += 1;
                if is_package {
                    *weights
                        .entry(format!("from {} import {name}", here()))
                        .or_default() += 3;
                }
            }
        }
        let is_test = path.contains("test");
        if !is_test && definition.is_match(&text) {
            *weights
                .entry(format!("from {} import {name}", here()))
                .or_default() += 2;
        }
    }
    let mut suggestions: Vec<ImportSuggestion> = weights
        .into_iter()
        .map(|(statement, weight)| ImportSuggestion { statement, weight })
        .collect();
    suggestions.sort_by(|a, b| {
        (b.weight, a.statement.len())
            .cmp(&(a.weight, b.statement.len()))
            .then_with(|| a.statement.cmp(&b.statement))
    });
    suggestions.truncate(3);
    suggestions
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
