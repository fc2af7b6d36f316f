//! Finds code that a test replaces while it runs, as by `monkeypatch.setattr` or `mock.patch`.
//!
//! Names are not resolved, so this is a hint for a reader and no proof. Objects that the test made itself do not count,
//! nor do attributes of classes and functions of its file.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::Module;
use super::names::undefined_names;
use super::nodes::descendants;
use super::standard_library::is_standard_library;

/// Returns the dotted names of code that the source of a test function replaces, apart from the standard library and
/// the `own_names` of the test's file.
pub(crate) fn replaced_code(test_source: &str, own_names: &BTreeSet<String>) -> Vec<String> {
    let module = Module::parse(test_source);
    let outer: BTreeSet<String> = undefined_names(&module)
        .into_iter()
        .map(|undefined| undefined.name)
        .collect();
    let mut replaced = BTreeSet::new();
    for node in descendants(module.root(), |_| true) {
        let target = match node.kind() {
            "call" => called_target(&module, node),
            "assignment" => assigned_target(&module, node),
            _ => None,
        };
        if let Some((name, is_text)) = target {
            let root = name.split('.').next().unwrap_or_default();
            // Private modules need not belong to the standard library: `_pytest`.
            let is_standard = is_standard_library(root) && !root.starts_with('_');
            let is_own = !is_text && own_names.contains(root) && name.matches('.').count() == 1;
            if (is_text || outer.contains(root)) && !is_standard && !is_own {
                replaced.insert(name);
            }
        }
    }
    replaced.into_iter().collect()
}

/// Returns the names that a test file defines itself. A definition that stands in for an import that fails does not
/// count.
pub(crate) fn own_names(file: &Module) -> BTreeSet<String> {
    let definitions = file.outline().into_iter();
    let mut names: BTreeSet<String> = definitions.map(|definition| definition.name).collect();
    for binding in file.imports().iter().flat_map(|import| &import.bindings) {
        names.remove(&binding.local);
    }
    names
}

/// Returns the target of a call that replaces an attribute, and whether the call names it as text.
fn called_target(module: &Module, call: Node<'_>) -> Option<(String, bool)> {
    let function = module.called_function(call)?;
    let name = function.rsplit('.').next()?;
    let is_patch = name == "patch" || function.contains("patch.");
    if !is_patch && !matches!(name, "setattr" | "delattr") {
        return None;
    }
    let arguments = call.child_by_field_name("arguments")?;
    // Then the attribute may be a new one.
    if module.source(arguments).contains("raising=False") {
        return None;
    }
    let object = arguments.named_child(0)?;
    if object.kind() == "string" {
        let text = module.source(object).trim_matches(['"', '\'']);
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
        let is_dotted = text.contains('.') && text.chars().all(is_name);
        return is_dotted.then(|| (text.to_owned(), true));
    }
    if !matches!(object.kind(), "identifier" | "attribute") {
        return None;
    }
    let attribute = arguments.named_child(1);
    let attribute = attribute.filter(|node| node.kind() == "string")?;
    let attribute = module.source(attribute).trim_matches(['"', '\'']);
    Some((format!("{}.{attribute}", module.source(object)), false))
}

/// Returns the attribute that a statement assigns to, such as `module.name`.
fn assigned_target(module: &Module, assignment: Node<'_>) -> Option<(String, bool)> {
    let left = assignment.child_by_field_name("left")?;
    (left.kind() == "attribute").then(|| (module.source(left).to_owned(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_code_is_named() {
        for (statement, expected) in [
            ("monkeypatch.setattr(pkg.core, 'f', g)", "pkg.core.f"),
            ("monkeypatch.setattr('pkg.core.f', g)", "pkg.core.f"),
            ("monkeypatch.delattr(pkg, \"f\")", "pkg.f"),
            ("setattr(pkg, 'f', lambda: 1)", "pkg.f"),
            ("mock.patch('pkg.f', return_value=1)", "pkg.f"),
            ("mocker.patch.object(Core, 'f')", "Core.f"),
            ("pkg.core.f = lambda: 1", "pkg.core.f"),
            ("mock.patch('_pytest.mark.Mark')", "_pytest.mark.Mark"),
            ("Recorder.core.f = lambda: 1", "Recorder.core.f"),
        ] {
            let source = format!("def test_a(monkeypatch, mocker):\n    {statement}\n");
            let own = BTreeSet::from(["Recorder".to_owned()]);
            assert_eq!(replaced_code(&source, &own), [expected], "{statement}");
        }
    }

    #[test]
    fn own_objects_and_standard_library_do_not_count() {
        for statement in [
            "a = pkg.A(); a.x = 1; setattr(a, 'x', 2)",
            "monkeypatch.setattr(os.path, 'exists', g)",
            "monkeypatch.setattr('time.time', g)",
            "monkeypatch.setenv('A', 'b')",
            "monkeypatch.setattr(pkg, 'new', g, raising=False)",
            "requests.patch('https://example.org')",
            "assert pkg.f() == 1",
            "Recorder.messages = []",
            "monkeypatch.setattr(Recorder, 'messages', [])",
        ] {
            let source = format!("def test_a(monkeypatch):\n    {statement}\n");
            let own = BTreeSet::from(["Recorder".to_owned()]);
            assert!(replaced_code(&source, &own).is_empty(), "{statement}");
        }
    }
}
