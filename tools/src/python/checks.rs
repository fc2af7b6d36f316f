//! Detects whether code checks anything.

use tree_sitter::Node;

use super::Module;
use super::constants::is_constant;
use super::nodes::named_children;

/// Functions and context managers that check, in addition to names that begin with `assert`.
const CHECKS: [&str; 6] = [
    "raises",
    "warns",
    "deprecated_call",
    "fail",
    "match_lines",
    "fnmatch_lines",
];

/// Returns whether code contains a check: an `assert` whose condition is not constant, or a call of a checking function
/// (`pytest.raises`, `self.assertEqual`, `mock.assert_called`).
pub fn contains_check(source: &str) -> bool {
    // The source of a method has the indentation of its class.
    let module = Module::parse(dedented(source));
    holds_check(&module, module.root())
}

fn dedented(source: &str) -> String {
    let indent = source.len() - source.trim_start_matches([' ', '\t']).len();
    let lines = source.split_inclusive('\n');
    let cut = |line: &str| {
        line.get(indent..)
            .unwrap_or_else(|| line.trim_start())
            .to_owned()
    };
    lines.map(cut).collect()
}

fn holds_check(module: &Module, node: Node<'_>) -> bool {
    let is_check = match node.kind() {
        "assert_statement" => node
            .named_child(0)
            .is_some_and(|condition| !is_constant(condition) && condition.kind() != "string"),
        "call" => node
            .child_by_field_name("function")
            .is_some_and(|function| {
                let name = module
                    .source(function)
                    .rsplit('.')
                    .next()
                    .unwrap_or_default();
                name.starts_with("assert") || CHECKS.contains(&name)
            }),
        _ => false,
    };
    is_check || named_children(node).any(|child| holds_check(module, child))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_distinguished_from_plain_code() {
        for source in [
            "def test_a():\n    assert f() == 1\n",
            "    def test_a(self):\n        with pytest.raises(ValueError):\n            f()\n",
            "def test_a(self):\n    self.assertEqual(f(), 1)\n",
            "async def test_a():\n    for x in f():\n        assert x\n",
        ] {
            assert!(contains_check(source), "{source}");
        }
        for source in [
            "def test_a():\n    f()\n",
            "def test_a():\n    f()\n    assert True, f()\n",
            "def test_a():\n    'assert f()'\n    # assert f()\n    f()\n",
        ] {
            assert!(!contains_check(source), "{source}");
        }
    }
}
