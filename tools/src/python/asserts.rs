//! Does code check anything?

use tree_sitter::Node;

use super::Module;
use super::constants::is_constant;

/// Functions and context managers that check, besides those whose name begins with `assert`.
const CHECKS: [&str; 6] = [
    "raises",
    "warns",
    "deprecated_call",
    "fail",
    "match_lines",
    "fnmatch_lines",
];

/// Does this code hold an `assert` whose condition is no constant, or call something that checks (`pytest.raises`,
/// `self.assertEqual`, `mock.assert_called`)?
pub fn asserts(source: &str) -> bool {
    // A method stands as it is in its class.
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
    let mut cursor = node.walk();
    is_check
        || node
            .named_children(&mut cursor)
            .any(|child| holds_check(module, child))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_checks_is_told_from_what_only_runs() {
        for source in [
            "def test_a():\n    assert f() == 1\n",
            "    def test_a(self):\n        with pytest.raises(ValueError):\n            f()\n",
            "def test_a(self):\n    self.assertEqual(f(), 1)\n",
            "async def test_a():\n    for x in f():\n        assert x\n",
        ] {
            assert!(asserts(source), "{source}");
        }
        for source in [
            "def test_a():\n    f()\n",
            "def test_a():\n    f()\n    assert True, f()\n",
            "def test_a():\n    'assert f()'\n    # assert f()\n    f()\n",
        ] {
            assert!(!asserts(source), "{source}");
        }
    }
}
