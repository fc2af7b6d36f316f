//! Names that an answer must not use, because they do not belong in a test and could falsify the measurement.

use std::collections::BTreeSet;

use testwright_tools::python::code_tokens;

/// Names of functions and modules that measure, report or end runs.
const FORBIDDEN: [&str; 23] = [
    "coverage",
    "settrace",
    "gettrace",
    "setprofile",
    "settrace_all_threads",
    "setprofile_all_threads",
    "monitoring",
    "_getframe",
    "_current_frames",
    "f_trace",
    "_pytest",
    "pytest_plugins",
    "pytest_sessionfinish",
    "pytest_runtest_protocol",
    "pytest_runtest_makereport",
    "pytest_runtest_call",
    "pytest_pyfunc_call",
    "pytest_collection_modifyitems",
    "_exit",
    "killpg",
    "ctypes",
    "get_objects",
    "get_referrers",
];

/// Returns the first forbidden name that the answer uses in code and the golden file does not. Strings are ignored.
pub fn forbidden(answer: &str, golden: &str) -> Option<&'static str> {
    let used = names(answer);
    let golden_names = names(golden);
    let is_new = |name: &&&'static str| used.contains(**name) && !golden_names.contains(**name);
    FORBIDDEN.iter().find(is_new).copied()
}

/// Returns the tokens outside of strings.
fn names(text: &str) -> BTreeSet<String> {
    let (mut names, mut in_string) = (BTreeSet::new(), false);
    for token in code_tokens(text) {
        match token.as_str() {
            token if token.starts_with("str:") => in_string = true,
            "str-end" => in_string = false,
            _ if in_string => {}
            _ => {
                names.insert(token);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests;
