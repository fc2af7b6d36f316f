//! The code in a candidate patch. Other files of the patch could decide how tests come out, so they do not count.

use std::collections::BTreeSet;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{AppliedPatch, Files, Tree};
use testwright_tools::python::{Definition, Kind, Module, flatten, is_standard_library};
use testwright_tools::workspace::{Layout, decode_source, is_conftest};

use super::runner_use;
use super::special_files::{
    BYTECODE, BYTECODE_FOLDER, EXTENSION_MODULES, RUNNER_SETTINGS, SHARED_SETTINGS,
    STARTUP_MODULES, is_metadata, is_of_startup, module_path,
};
use crate::large_stack::on_large_stack;

/// Reason for files that run when Python starts.
const RUNS_AT_STARTUP: &str = "it runs when Python starts, or replaces a test runner";
/// Reason for new modules that tests would import in place of a library.
const REPLACES_LIBRARY: &str = "it takes the place of a module of Python or of the test runner";
/// Modules that pytest imports, beside its own and those of Python.
const RUNNER_DEPENDENCIES: [&str; 8] = [
    "attr",
    "colorama",
    "exceptiongroup",
    "iniconfig",
    "packaging",
    "py",
    "pygments",
    "tomli",
];
/// Modules of Python that test runners do not import. A project may use their names for modules of its own.
const FREE_NAMES: [&str; 6] = ["chunk", "formatter", "parser", "profile", "symbol", "trace"];
/// Reason for test files, and for other files in test folders.
const IS_TEST: &str = "it is part of the tests";

/// Names of modules in which packages usually offer assertions to tests.
const ASSERTION_MODULES: [&str; 3] = ["_testing.py", "pytest.py", "testing.py"];

/// Special methods with which an object can satisfy every assertion.
const TRUTH_METHODS: [&str; 9] = [
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__bool__",
    "__contains__",
    "__instancecheck__",
];
/// Words of expressions whose value is constant.
const CONSTANT_WORDS: [&str; 12] = [
    "True", "False", "None", "not", "and", "or", "is", "in", "if", "else", "bool", "int",
];

/// A candidate patch, reduced to its code.
#[derive(Debug, Default)]
pub(super) struct CodePatch {
    /// Files that count, with their new content.
    pub files: Files,
    /// Files that do not count, as `PATH: REASON`.
    pub left_out: Vec<String>,
    /// Code that satisfies any assertion, uses the test runner, or may contain the assertions of tests, as
    /// `PATH:LINE: REASON`.
    pub suspicions: Vec<String>,
}

impl CodePatch {
    /// Separates the code of a patch. Files in test folders count as code if the golden patch, `fix`, changes them.
    pub(super) fn from_patch(
        applied: AppliedPatch,
        tree: &Tree,
        layout: &Layout,
        fix: &Files,
    ) -> Result<Self, SandboxError> {
        let mut patch = CodePatch::default();
        let mut sources = Vec::new();
        for (path, file) in applied.files {
            let before = tree.read(&path)?.map(|content| decode_source(&content));
            let after = file.as_ref().map(|file| decode_source(&file.content));
            let module = file.as_ref().map(|file| module_path(&path, file));
            let is_fixed = fix.contains_key(&path) && !layout.is_test_file(&path);
            let reason = reason_to_leave_out(&path, before.as_deref(), after.as_deref(), layout)
                .filter(|reason| *reason != IS_TEST || !is_fixed)
                .or_else(|| {
                    let module = module.as_ref().unwrap_or(&path);
                    is_of_startup(module, tree).then_some(RUNS_AT_STARTUP)
                })
                .or_else(|| {
                    let is_known = tree.contains(&path) || fix.contains_key(&path);
                    let is_new = |module: &str| !is_known && !tree.has_folder(module);
                    let library = module.as_deref().and_then(replaced_library);
                    library.is_some_and(is_new).then_some(REPLACES_LIBRARY)
                })
                .or_else(|| {
                    let replaces = file.is_some() && replaces_tests(&path, tree, layout);
                    replaces.then_some("it takes the place of a folder with tests")
                });
            if let Some(reason) = reason {
                patch.left_out.push(format!("{path}: {reason}"));
                continue;
            }
            if let Some(after) = after
                && path.ends_with(".py")
            {
                sources.push((path.clone(), before, after));
            }
            patch.files.insert(path, file);
        }
        let is_runner = runner_use::is_runner(tree);
        patch.suspicions = on_large_stack(|| {
            let of_file = |(path, before, after): &(String, Option<String>, String)| {
                let before = before.as_deref().unwrap_or_default();
                let mut found = suspicions(path, before, after);
                if is_assertion_module(path) && !fix.contains_key(path) {
                    found.push(format!("{path}:1: tests may assert with this module"));
                }
                if !is_runner {
                    found.extend(uses_of_runner(path, before, after));
                }
                found
            };
            sources.iter().flat_map(of_file).collect()
        })?;
        Ok(patch)
    }

    /// Returns why the patch cannot be tried, if it changes no code.
    pub(super) fn reason_without_code(&self) -> Option<String> {
        if !self.files.is_empty() {
            return None;
        }
        let mut reason = "the patch changes no code".to_owned();
        if !self.left_out.is_empty() {
            reason.push_str(": ");
            reason.push_str(&self.left_out.join("; "));
        }
        Some(reason)
    }
}

/// Returns why a changed file is not code that a candidate patch may change, if it is not. `before` and `after` are the
/// texts of the file; `None` if it does not exist.
pub(super) fn reason_to_leave_out(
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
    layout: &Layout,
) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let has_ending = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if has_ending(&BYTECODE) || path.split('/').any(|part| part == BYTECODE_FOLDER) {
        return Some("it is bytecode");
    }
    if has_ending(&EXTENSION_MODULES) {
        return Some("it is an extension module");
    }
    if is_metadata(path) {
        return Some("it is metadata of a package");
    }
    if is_conftest(path) {
        return Some("it is test support");
    }
    let names_plugins = |text: Option<&str>| text.is_some_and(|text| text.contains("pytest11"));
    if name == "setup.py" && names_plugins(after) && !names_plugins(before) {
        return Some("it adds a plugin of the test runner");
    }
    if RUNNER_SETTINGS.contains(&name) {
        return Some("it holds settings of the test runner");
    }
    if SHARED_SETTINGS.contains(&name)
        && pytest_sections(name, before) != pytest_sections(name, after)
    {
        return Some("it changes settings of the test runner");
    }
    if STARTUP_MODULES.contains(&name) || name.ends_with(".pth") {
        return Some(RUNS_AT_STARTUP);
    }
    layout.is_test_path(path).then_some(IS_TEST)
}

/// Returns the module of Python, or of a library of pytest, in whose place a file would be imported. pytest is started in
/// the root of the repository, so the modules there come first.
fn replaced_library(path: &str) -> Option<&str> {
    let module = match path.split_once('/') {
        None => path.strip_suffix(".py"),
        Some((folder, file)) => (file == "__init__.py").then_some(folder),
    }?;
    let is_library = is_standard_library(module) || RUNNER_DEPENDENCIES.contains(&module);
    // Names with an underscore need not belong to Python, and its `test` is only for its own tests.
    let is_free = module.starts_with('_') || module == "test" || FREE_NAMES.contains(&module);
    (is_library && !is_free).then_some(module)
}

/// Returns whether a file takes the place of a folder that contains tests.
fn replaces_tests(path: &str, tree: &Tree, layout: &Layout) -> bool {
    let is_below = |other: &str| {
        let rest = other.strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    tree.has_folder(path)
        && tree
            .paths()
            .any(|other| is_below(other) && layout.is_test_path(other))
}

/// Returns the sections of a settings file that can hold settings or plugins of pytest, with their headers.
fn pytest_sections(name: &str, text: Option<&str>) -> Vec<String> {
    let is_toml = name.ends_with(".toml");
    let mut sections = vec![(String::new(), String::new())];
    for line in text.unwrap_or_default().lines() {
        // In an INI file, an indented line continues a value.
        let start = if is_toml { line.trim_start() } else { line };
        if start.starts_with('[') && (!is_toml || is_toml_header(start)) {
            sections.push((line.trim().to_owned(), String::new()));
        } else if let Some((_, body)) = sections.last_mut()
            && !line.trim().is_empty()
        {
            body.push_str(line.trim_end());
            body.push('\n');
        }
    }
    let is_of_pytest = |header: &str, body: &str| {
        let bare: String = header
            .split('#')
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|c| !c.is_whitespace() && !matches!(c, '[' | ']' | '"' | '\''))
            .collect();
        let is_above = is_toml && (bare.is_empty() || bare == "tool");
        // An escape in a TOML key can spell any name.
        header.contains("pytest")
            || is_toml && header.contains('\\')
            || body.contains("pytest11")
            || is_above && (body.contains("pytest") || body.contains('\\'))
    };
    sections
        .into_iter()
        .filter(|(header, body)| is_of_pytest(header, body))
        .map(|(header, body)| format!("{header}\n{body}"))
        .collect()
}

/// Returns whether a line of TOML that starts with a bracket is a header, not part of an array.
fn is_toml_header(line: &str) -> bool {
    let bare = line.split('#').next().unwrap_or_default().trim_end();
    bare.ends_with(']') && !bare.contains(',')
}

/// Returns whether a module usually offers assertions to tests.
fn is_assertion_module(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ASSERTION_MODULES.contains(&name)
}

/// Returns special methods that a patch adds or changes, and that always return the same.
fn suspicions(path: &str, before: &str, after: &str) -> Vec<String> {
    let (old, new) = (Module::parse(before), Module::parse(after));
    let (old_outline, new_outline) = (old.outline(), new.outline());
    let source = |module: &Module, definition: &Definition| {
        let text = module.text().get(definition.bytes.clone());
        text.unwrap_or_default().to_owned()
    };
    let known: BTreeSet<(&str, String)> = flatten(&old_outline)
        .into_iter()
        .map(|definition| (definition.qualified.as_str(), source(&old, definition)))
        .collect();
    let mut lines: Vec<(usize, &str)> = flatten(&new_outline)
        .into_iter()
        .filter(|definition| {
            definition.kind == Kind::Function
                && TRUTH_METHODS.contains(&definition.name.as_str())
                && returns_constant(&new, definition)
                && !known.contains(&(definition.qualified.as_str(), source(&new, definition)))
        })
        .map(|definition| (definition.line, definition.name.as_str()))
        .collect();
    let old_lines: BTreeSet<&str> = before.lines().map(str::trim).collect();
    for (at, line) in after.lines().enumerate() {
        if let Some(name) = constant_lambda(line)
            && !old_lines.contains(line.trim())
        {
            lines.push((at + 1, name));
        }
    }
    lines.sort_unstable();
    lines
        .into_iter()
        .map(|(line, name)| format!("{path}:{line}: `{name}` always returns the same"))
        .collect()
}

/// Returns the lines with which a patch starts to use the test runner.
fn uses_of_runner(path: &str, before: &str, after: &str) -> Vec<String> {
    let uses = runner_use::find_new_uses(before, after).into_iter();
    uses.map(|(line, package)| {
        format!("{path}:{line}: code that uses `{package}` can change how tests end")
    })
    .collect()
}

/// Returns whether the body of a function, without its docstring, is only `return` and a constant.
fn returns_constant(module: &Module, definition: &Definition) -> bool {
    let body = module.text().get(definition.body.clone());
    let mut body = body.unwrap_or_default().to_owned();
    if let Some(docstring) = module.docstring(definition) {
        body = body.replacen(docstring.source, "", 1);
    }
    let code = body.lines().filter_map(|line| {
        let code = line.split('#').next().unwrap_or_default();
        let code = code.trim_matches(|c: char| c.is_whitespace() || c == ';');
        (!code.is_empty()).then_some(code)
    });
    let code: Vec<&str> = code.collect();
    match code.as_slice() {
        [line] => line.strip_prefix("return").is_some_and(is_constant),
        _ => false,
    }
}

/// Returns the special method to which a line assigns a lambda that always returns the same.
fn constant_lambda(line: &str) -> Option<&'static str> {
    let code = line.split('#').next().unwrap_or_default();
    TRUTH_METHODS.into_iter().find(|name| {
        let rest = code.split_once(name).map(|(_, rest)| rest);
        let lambda = rest.and_then(|rest| rest.split_once("lambda"));
        let value = lambda.and_then(|(_, lambda)| lambda.split_once(':'));
        value.is_some_and(|(_, value)| {
            let end = value.find([',', '}', ')']).unwrap_or(value.len());
            is_constant(value.get(..end).unwrap_or_default())
        })
    })
}

/// Returns whether an expression contains only constants and operators.
fn is_constant(expression: &str) -> bool {
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    let mut words = expression
        .split(is_separator)
        .filter(|word| !word.is_empty());
    !expression.trim().is_empty()
        && words.all(|word| {
            CONSTANT_WORDS.contains(&word) || word.starts_with(|c: char| c.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests;
