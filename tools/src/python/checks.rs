//! Detects whether code checks anything.

use tree_sitter::Node;

use super::Module;
use super::constants::is_constant;
use super::nodes::descendants;

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
    descendants(module.root(), |_| true).any(|node| is_check(&module, node))
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

fn is_check(module: &Module, node: Node<'_>) -> bool {
    if node.kind() == "assert_statement" {
        let condition = node.named_child(0);
        return condition.is_some_and(|node| !is_constant(node) && node.kind() != "string");
    }
    let function = module.called_function(node);
    let name = function.and_then(|function| function.rsplit('.').next());
    name.is_some_and(|name| name.starts_with("assert") || CHECKS.contains(&name))
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
