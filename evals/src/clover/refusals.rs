//! What an answer may not name, since it is no part of a test and could forge what is measured.

use std::collections::BTreeSet;

use testwright_tools::python::code_tokens;

/// Names of what measures, reports and ends runs.
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

/// The first of these names that an answer has in its code and the golden file has not. Strings do not count.
pub fn forbidden(answer: &str, golden: &str) -> Option<&'static str> {
    let used = names(answer);
    let known = names(golden);
    let is_new = |name: &&&'static str| used.contains(**name) && !known.contains(**name);
    FORBIDDEN.iter().find(is_new).copied()
}

/// Tokens that are not the content of a string.
fn names(text: &str) -> BTreeSet<String> {
    let (mut found, mut in_string) = (BTreeSet::new(), false);
    for token in code_tokens(text) {
        match token.as_str() {
            token if token.starts_with("str:") => in_string = true,
            "str-end" => in_string = false,
            _ if in_string => {}
            _ => {
                found.insert(token);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_code_are_refused_unless_the_golden_test_has_them() {
        let golden = "import os\ndef test_x():\n    pass\n";
        let found = |answer: &str| forbidden(answer, golden);
        assert_eq!(
            found("import sys\ndef test_x():\n    sys.settrace(None)\n"),
            Some("settrace")
        );
        assert_eq!(found("from coverage import Coverage\n"), Some("coverage"));
        assert_eq!(found("x = 'coverage'  # settrace\n"), None);
        assert_eq!(forbidden("import os\nos._exit(0)\n", "os._exit(1)\n"), None);
    }
}
