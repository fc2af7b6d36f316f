//! Finds the values that assertions compare with.

use tree_sitter::Node;

use super::Module;

/// Values that say little, because many tests contain them.
const COMMON: [&str; 4] = ["0", "1", "2", ""];

/// Returns the numbers and the contents of strings in the assertions of code, and in calls of functions whose names begin
/// with `assert`. Common values such as 0 and 1 are left out.
pub fn asserted_values(source: &str) -> Vec<String> {
    let module = Module::parse(source);
    let mut values = Vec::new();
    // An explicit stack, because a submitted test may nest deeply.
    let mut nodes = vec![(module.root(), false)];
    while let Some((node, inside)) = nodes.pop() {
        let inside = inside || is_assertion(&module, node);
        if inside && matches!(node.kind(), "integer" | "float" | "string_content") {
            let value = module.source(node).trim();
            if !COMMON.contains(&value) {
                values.push(value.to_owned());
            }
        }
        let mut cursor = node.walk();
        nodes.extend(node.named_children(&mut cursor).map(|node| (node, inside)));
    }
    values
}

fn is_assertion(module: &Module, node: Node<'_>) -> bool {
    match node.kind() {
        "assert_statement" => true,
        "call" => node
            .child_by_field_name("function")
            .is_some_and(|function| {
                let name = module.source(function);
                name.rsplit('.')
                    .next()
                    .is_some_and(|name| name.starts_with("assert"))
            }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_assertions_are_listed() {
        let source = "def test_a(self):\n    x = f('input', 7)\n    assert x == 'how-to' and len(x) == 12 or 1\n    \
                      self.assertEqual(x, 3.5)\n    log('other')\n";
        let mut values = asserted_values(source);
        values.sort();
        assert_eq!(values, ["12", "3.5", "how-to"]);
    }
}
