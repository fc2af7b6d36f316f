//! Decides by its content whether a file holds tests, if its name does not say so.

use super::Layout;

/// Returns whether Python code defines a test: a test class with a test method, or a test function without parameters
/// that no fixture fills. Functions that merely have such a name (`test_odd(value)`) are code.
pub(super) fn has_tests(text: &str, layout: &Layout) -> bool {
    let uses_pytest = text.contains("pytest");
    let mut in_test_class = false;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let function = code
            .strip_prefix("async ")
            .unwrap_or(code)
            .strip_prefix("def ");
        if let Some((name, parameters)) = function.and_then(|function| function.split_once('(')) {
            let is_test = layout.is_test_function(name) || name.starts_with("test");
            let is_alone = parameters.trim_start().starts_with(')') || uses_pytest;
            let is_block = indent == 0 && layout.is_block(name) && is_alone;
            if (is_test && if indent == 0 { is_alone } else { in_test_class }) || is_block {
                return true;
            }
        }
        if indent == 0 && !code.is_empty() && !code.starts_with(['#', '@', ')', ']']) {
            in_test_class = is_test_class(code, layout);
        }
    }
    false
}

fn is_test_class(line: &str, layout: &Layout) -> bool {
    let Some(head) = line.strip_prefix("class ") else {
        return false;
    };
    let (name, bases) = head.split_once(['(', ':']).unwrap_or((head, ""));
    layout.is_test_class(name.trim()) || bases.contains("Test")
}
