//! The names of its file that a piece of code refers to: names that it uses without binding them, members of its
//! class, and fixtures, which parameters and strings name.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use crate::python::nodes::named_children;
use crate::python::{Module, OuterUse, outer_uses};
use crate::workspace::Layout;

/// The place to look a name up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameScope {
    Module,
    /// The class of the test and its bases.
    Class,
    /// The class and the module, for a fixture.
    Both,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReferredName {
    pub name: String,
    pub scope: NameScope,
}

/// Calls whose strings are names of fixtures or members.
const NAMING_CALLS: [&str; 5] = [
    "usefixtures",
    "getfixturevalue",
    "lazy_fixture",
    "fixture_ref",
    "getattr",
];

pub(super) struct ReferredNames<'m> {
    module: &'m Module,
    layout: Layout,
    /// Uses of outer names, sorted by position.
    uses: Vec<OuterUse<'m>>,
    /// Names of the fixture functions of the file, by the names that tests request.
    fixtures: BTreeMap<&'m str, &'m str>,
}

impl<'m> ReferredNames<'m> {
    pub(super) fn from_module(module: &'m Module, layout: &Layout) -> Self {
        let mut names = ReferredNames {
            module,
            layout: layout.clone(),
            uses: outer_uses(module),
            fixtures: BTreeMap::new(),
        };
        names.find_fixtures(module.root());
        names
    }

    /// Returns the names that a node's code refers to, without those in `skip`.
    pub(super) fn names(&self, node: Node<'m>, skip: Option<Node<'m>>) -> BTreeSet<ReferredName> {
        let mut names = BTreeSet::new();
        let range = node.byte_range();
        let first = self.uses.partition_point(|used| used.at < range.start);
        let skipped = skip.map(|node| node.byte_range()).unwrap_or_default();
        for used in self.uses.iter().skip(first) {
            if used.at >= range.end {
                break;
            }
            if !skipped.contains(&used.at) {
                let scope = match used.is_member {
                    true => NameScope::Class,
                    false => NameScope::Module,
                };
                add(&mut names, used.name, scope);
            }
        }
        self.visit(node, skip, &mut names);
        names
    }

    /// Collects references that are not plain uses of a name: members, and names of fixtures.
    fn visit(&self, node: Node<'m>, skip: Option<Node<'m>>, out: &mut BTreeSet<ReferredName>) {
        if skip.is_some_and(|skip| skip.id() == node.id()) {
            return;
        }
        match node.kind() {
            "attribute" => {
                let object = node.child_by_field_name("object");
                let is_own =
                    object.is_some_and(|o| matches!(self.module.source(o), "self" | "cls"));
                if let (true, Some(attribute)) = (is_own, node.child_by_field_name("attribute")) {
                    add(out, self.module.source(attribute), NameScope::Class);
                }
            }
            "global_statement" => {
                for name in named_children(node) {
                    add(out, self.module.source(name), NameScope::Module);
                }
            }
            "function_definition" => self.parameters(node, out),
            "call" if self.calls_by_name(node) => self.strings(node, out),
            "string_content" => {
                let text = self.module.source(node);
                if let Some(function) = self.fixtures.get(text) {
                    add(out, function, NameScope::Both);
                }
            }
            _ => {}
        }
        for child in named_children(node) {
            self.visit(child, skip, out);
        }
    }

    /// Collects parameters of tests and fixtures, which name fixtures unless they have a default or a `parametrize`
    /// value.
    fn parameters(&self, function: Node<'m>, out: &mut BTreeSet<ReferredName>) {
        let name = function.child_by_field_name("name");
        let name = name.map_or("", |name| self.module.source(name));
        let is_test = self.layout.is_test_function(name) || name.starts_with("test");
        let decorated = function.parent();
        let decorated = decorated.filter(|parent| parent.kind() == "decorated_definition");
        if !is_test && !decorated.is_some_and(|whole| self.is_fixture(whole)) {
            return;
        }
        let parametrized_names = decorated.map(|whole| self.parametrized(whole));
        let parametrized_names = parametrized_names.unwrap_or_default();
        let parameters = function.child_by_field_name("parameters");
        for parameter in parameters.into_iter().flat_map(named_children) {
            let name = match parameter.kind() {
                "identifier" => Some(parameter),
                "typed_parameter" => parameter.named_child(0),
                _ => None,
            };
            let name = name.filter(|name| name.kind() == "identifier");
            if let Some(name) = name.map(|name| self.module.source(name))
                && !parametrized_names.contains(name)
            {
                self.add_fixture(out, name);
            }
        }
    }

    fn add_fixture(&self, out: &mut BTreeSet<ReferredName>, name: &'m str) {
        let function = self.fixtures.get(name).unwrap_or(&name);
        add(out, function, NameScope::Both);
    }

    /// Returns the names that `parametrize` gives values itself.
    fn parametrized(&self, decorated: Node<'m>) -> BTreeSet<&'m str> {
        let mut parametrized_names = BTreeSet::new();
        for decorator in named_children(decorated) {
            let text = self.module.source(decorator);
            let is_own = decorator.kind() == "decorator"
                && text.contains("parametrize")
                && !text.contains("indirect");
            let call = decorator
                .named_child(0)
                .filter(|node| node.kind() == "call");
            let names = call.and_then(|call| call.child_by_field_name("arguments"));
            if let (true, Some(names)) = (is_own, names.and_then(|list| list.named_child(0))) {
                let text = self.module.source(names);
                let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                parametrized_names.extend(parts.filter(|part| !part.is_empty()));
            }
        }
        parametrized_names
    }

    fn calls_by_name(&self, call: Node<'m>) -> bool {
        let function = self.module.called_function(call);
        let last = function.and_then(|name| name.rsplit('.').next());
        last.is_some_and(|last| NAMING_CALLS.contains(&last))
    }

    fn strings(&self, node: Node<'m>, out: &mut BTreeSet<ReferredName>) {
        for child in named_children(node) {
            match child.kind() {
                "string_content" => self.add_fixture(out, self.module.source(child)),
                // Visited separately.
                "call" if self.calls_by_name(child) => {}
                _ => self.strings(child, out),
            }
        }
    }

    fn find_fixtures(&mut self, node: Node<'m>) {
        for child in named_children(node) {
            match child.kind() {
                "decorated_definition" if self.is_fixture(child) => {
                    let definition = child.child_by_field_name("definition");
                    let name = definition.and_then(|node| node.child_by_field_name("name"));
                    if let Some(function) = name.map(|name| self.module.source(name)) {
                        let name = self.fixture_name(child).unwrap_or(function);
                        self.fixtures.insert(name, function);
                    }
                }
                "expression_statement" => {}
                _ => self.find_fixtures(child),
            }
        }
    }

    /// Returns the `name` argument of the fixture decorator.
    fn fixture_name(&self, decorated: Node<'m>) -> Option<&'m str> {
        let mut calls = named_children(decorated)
            .filter_map(|decorator| decorator.named_child(0))
            .filter(|node| node.kind() == "call");
        let arguments = calls.find_map(|call| call.child_by_field_name("arguments"))?;
        named_children(arguments).find_map(|argument| {
            let name = argument.child_by_field_name("name")?;
            let value = argument.child_by_field_name("value")?;
            let content = named_children(value).find(|part| part.kind() == "string_content")?;
            (self.module.source(name) == "name").then(|| self.module.source(content))
        })
    }

    /// Returns whether a definition is decorated with `fixture`, in any form.
    pub(super) fn is_fixture(&self, decorated: Node<'m>) -> bool {
        named_children(decorated).any(|child| {
            let text = self.module.source(child);
            let name = text.split('(').next().unwrap_or_default();
            child.kind() == "decorator" && name.trim_end().ends_with("fixture")
        })
    }
}

fn add(out: &mut BTreeSet<ReferredName>, name: &str, scope: NameScope) {
    out.insert(ReferredName {
        name: name.to_owned(),
        scope,
    });
}
