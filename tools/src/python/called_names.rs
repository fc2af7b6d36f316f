//! Finds the names of the functions and methods that a piece of code calls.

use std::collections::VecDeque;

use tree_sitter::Node;

use super::Module;
use super::builtins::is_builtin;
use super::nodes::named_children;

/// Objects that tests use, whose methods are not under test.
const TEST_OBJECTS: [&str; 4] = ["contextlib", "monkeypatch", "pytest", "self"];

/// Returns the names of the called functions and methods, each once. The last statement comes first, and in a
/// statement the outermost call. Builtins and methods of string literals do not count.
pub fn called_names(source: &str) -> Vec<String> {
    let module = Module::parse(source);
    let root = module.root();
    let mut names: Vec<String> = Vec::new();
    for statement in named_children(root).rev() {
        let mut queue = VecDeque::from([statement]);
        while let Some(node) = queue.pop_front() {
            if let Some(name) = called_name(&module, node)
                && !names.iter().any(|n| n == name)
            {
                names.push(name.to_owned());
            }
            queue.extend(named_children(node));
        }
    }
    names
}

/// Returns the name that a call is for.
fn called_name<'m>(module: &'m Module, node: Node<'_>) -> Option<&'m str> {
    if node.kind() != "call" {
        return None;
    }
    let function = node.child_by_field_name("function")?;
    match function.kind() {
        "identifier" => Some(module.source(function)).filter(|name| !is_builtin(name)),
        "attribute" => {
            let object = function.child_by_field_name("object")?;
            let is_skipped = ["string", "concatenated_string"].contains(&object.kind())
                || TEST_OBJECTS.contains(&module.source(object));
            let name = function.child_by_field_name("attribute")?;
            (!is_skipped).then(|| module.source(name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn called_names_start_with_last_statement() {
        let source =
            "box = shop.open_box(Size(3))\nprint(box.label(len(turn(box)), side=2).upper())\n";
        assert_eq!(
            called_names(source),
            ["upper", "label", "turn", "open_box", "Size"]
        );
    }

    #[test]
    fn calls_in_strings_do_not_count() {
        let source =
            "with pytest.raises(Stuck):\n    sqlite.run('select count(a)', 'a'.join(names))\n";
        assert_eq!(called_names(source), ["run"]);
        assert_eq!(called_names("self.assertEqual(shop.low, 3"), [""; 0]);
    }
}
