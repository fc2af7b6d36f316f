//! The scopes of a module, the names that each binds, and the uses of names.

use std::collections::HashSet;

use tree_sitter::Node;

use crate::python::Module;
use crate::python::nodes::{field_children, named_children};

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Module,
    Class,
    Function,
    Comprehension,
}

struct NameScope<'m> {
    kind: ScopeKind,
    parent: Option<usize>,
    bound: HashSet<&'m str>,
}

pub(super) struct Use<'m> {
    pub(super) name: &'m str,
    pub(super) scope: usize,
    pub(super) line: usize,
    /// Byte offset.
    pub(super) at: usize,
    /// Whether the use is inside a `try` that catches a NameError.
    pub(super) guarded: bool,
}

pub(super) struct Walk<'m> {
    module: &'m Module,
    scopes: Vec<NameScope<'m>>,
    pub(super) uses: Vec<Use<'m>>,
    /// Number of enclosing `try` blocks that catch a NameError.
    guards: usize,
    pub(super) anything_goes: bool,
    /// Whether names in annotations count as uses.
    annotations: bool,
}

impl<'m> Walk<'m> {
    pub(super) fn over(module: &'m Module, annotations: bool) -> Self {
        let mut walk = Walk {
            module,
            scopes: Vec::new(),
            uses: Vec::new(),
            guards: 0,
            anything_goes: false,
            annotations,
        };
        let scope = walk.open(ScopeKind::Module, None);
        walk.visit(module.root(), scope);
        walk
    }

    /// Returns the scope that binds a name as seen from another; 0 is the module's.
    pub(super) fn binder(&self, name: &str, scope: usize) -> Option<usize> {
        let mut here = scope;
        let mut sees_class = true;
        loop {
            let current = self.scopes.get(here)?;
            if (current.kind != ScopeKind::Class || sees_class) && current.bound.contains(name) {
                return Some(here);
            }
            // A class's names are visible in its own body and in comprehensions there, but not in its methods.
            sees_class = matches!(current.kind, ScopeKind::Comprehension) && sees_class;
            here = current.parent?;
        }
    }

    pub(super) fn is_class(&self, scope: usize) -> bool {
        let scope = self.scopes.get(scope);
        scope.is_some_and(|scope| scope.kind == ScopeKind::Class)
    }

    fn text(&self, node: Node<'m>) -> &'m str {
        self.module.source(node)
    }

    fn open(&mut self, kind: ScopeKind, parent: Option<usize>) -> usize {
        self.scopes.push(NameScope {
            kind,
            parent,
            bound: HashSet::new(),
        });
        self.scopes.len() - 1
    }

    fn declare(&mut self, name: &'m str, scope: usize) {
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.bound.insert(name);
        }
    }

    /// Declares the `name` of a definition.
    fn declare_name(&mut self, node: Node<'m>, scope: usize) {
        if let Some(name) = node.child_by_field_name("name") {
            self.declare(self.text(name), scope);
        }
    }

    fn each(&mut self, node: Node<'m>, scope: usize, visit: fn(&mut Self, Node<'m>, usize)) {
        for child in named_children(node) {
            visit(self, child, scope);
        }
    }

    fn field(&mut self, node: Node<'m>, field: &str, scope: usize) {
        for child in field_children(node, field) {
            self.visit(child, scope);
        }
    }

    /// Visits the children of a node; the given field binds names.
    fn each_binding(&mut self, node: Node<'m>, field: &str, scope: usize) {
        let target = node.child_by_field_name(field).map(|target| target.id());
        for child in named_children(node) {
            if target == Some(child.id()) {
                self.bind(child, scope);
            } else {
                self.visit(child, scope);
            }
        }
    }

    /// Returns the scope in which `:=` binds.
    fn outside_comprehensions(&self, mut scope: usize) -> usize {
        let parent = |scope: usize| {
            let scope = self.scopes.get(scope)?;
            scope
                .parent
                .filter(|_| scope.kind == ScopeKind::Comprehension)
        };
        while let Some(outer) = parent(scope) {
            scope = outer;
        }
        scope
    }

    fn visit(&mut self, node: Node<'m>, scope: usize) {
        match node.kind() {
            "identifier" => {
                self.uses.push(Use {
                    name: self.text(node),
                    scope,
                    line: node.start_position().row + 1,
                    at: node.start_byte(),
                    guarded: self.guards > 0,
                });
            }
            "type" if self.annotations => self.each(node, scope, Self::visit),
            "type" | "comment" | "ERROR" | "nonlocal_statement" => {}
            "function_definition" | "lambda" => self.function(node, scope),
            "class_definition" => {
                self.declare_name(node, scope);
                let inner = self.open(ScopeKind::Class, Some(scope));
                self.type_parameters(node, &[scope, inner]);
                self.field(node, "superclasses", scope);
                self.field(node, "body", inner);
            }
            "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression" => {
                let inner = self.open(ScopeKind::Comprehension, Some(scope));
                self.each(node, inner, Self::visit);
            }
            "assignment" | "for_in_clause" | "for_statement" | "augmented_assignment" => {
                self.each_binding(node, "left", scope);
            }
            "named_expression" => {
                self.declare_name(node, self.outside_comprehensions(scope));
                self.field(node, "value", scope);
            }
            "as_pattern" | "except_clause" | "except_group_clause" => {
                self.each_binding(node, "alias", scope);
            }
            "import_statement" | "import_from_statement" | "future_import_statement" => {
                self.import(node, scope)
            }
            "global_statement" => {
                for name in named_children(node) {
                    self.declare(self.text(name), 0);
                }
            }
            "keyword_argument" => self.field(node, "value", scope),
            "attribute" => self.field(node, "object", scope),
            "case_clause" => {
                for child in named_children(node) {
                    match child.kind() {
                        "case_pattern" => self.pattern(child, scope),
                        _ => self.visit(child, scope),
                    }
                }
            }
            "type_alias_statement" => {
                if let Some(name) = node.child_by_field_name("left").and_then(first_identifier) {
                    self.declare(self.text(name), scope);
                }
            }
            "exec_statement" => self.anything_goes = true,
            "call" => {
                let function = node.child_by_field_name("function").map(|f| self.text(f));
                if matches!(function, Some("exec" | "globals" | "execfile")) {
                    self.anything_goes = true;
                }
                self.each(node, scope, Self::visit);
            }
            "try_statement" => self.try_statement(node, scope),
            _ => self.each(node, scope, Self::visit),
        }
    }

    fn try_statement(&mut self, node: Node<'m>, scope: usize) {
        let children: Vec<Node<'m>> = named_children(node).collect();
        let mut handlers = children.iter().filter(|c| c.kind().starts_with("except"));
        let guards = handlers.any(|handler| {
            let head = self.text(*handler).lines().next().unwrap_or_default();
            head.contains("NameError") || head.contains("Exception") || head.trim_end() == "except:"
        });
        let body = node.child_by_field_name("body");
        for child in children {
            let guarded = guards && body.is_some_and(|b| b.id() == child.id());
            self.guards += usize::from(guarded);
            self.visit(child, scope);
            self.guards -= usize::from(guarded);
        }
    }

    fn function(&mut self, node: Node<'m>, scope: usize) {
        self.declare_name(node, scope);
        let inner = self.open(ScopeKind::Function, Some(scope));
        self.type_parameters(node, &[scope, inner]);
        if self.annotations {
            self.field(node, "return_type", scope);
        }
        if let Some(parameters) = node.child_by_field_name("parameters") {
            for parameter in named_children(parameters) {
                self.parameter(parameter, scope, inner);
            }
        }
        self.field(node, "body", inner);
    }

    fn parameter(&mut self, node: Node<'m>, outer: usize, inner: usize) {
        match node.kind() {
            "default_parameter" | "typed_default_parameter" => {
                if let Some(name) = node.child_by_field_name("name") {
                    self.bind(name, inner);
                }
                if self.annotations {
                    self.field(node, "type", outer);
                }
                self.field(node, "value", outer);
            }
            "typed_parameter" => {
                for child in named_children(node) {
                    match child.kind() {
                        "type" => self.visit(child, outer),
                        _ => self.bind(child, inner),
                    }
                }
            }
            "keyword_separator" | "positional_separator" | "comment" => {}
            _ => self.bind(node, inner),
        }
    }

    fn type_parameters(&mut self, node: Node<'m>, scopes: &[usize]) {
        let Some(parameters) = node.child_by_field_name("type_parameters") else {
            return;
        };
        for parameter in named_children(parameters) {
            if let Some(name) = first_identifier(parameter) {
                for &scope in scopes {
                    self.declare(self.text(name), scope);
                }
            }
        }
    }

    /// Binds the target of an assignment.
    fn bind(&mut self, node: Node<'m>, scope: usize) {
        match node.kind() {
            "identifier" => self.declare(self.text(node), scope),
            "attribute" | "subscript" | "call" => self.visit(node, scope),
            "comment" | "type" => {}
            _ if node.named_child_count() == 0 => {
                // `print`, `match` and the like have no child node if they are names.
                self.declare(self.text(node), scope);
            }
            _ => self.each(node, scope, Self::bind),
        }
    }

    /// Visits a pattern of `match`: plain names are bound; dotted names and classes are used.
    fn pattern(&mut self, node: Node<'m>, scope: usize) {
        match node.kind() {
            "identifier" => self.declare(self.text(node), scope),
            "dotted_name" => {
                let parts: Vec<Node<'m>> = named_children(node).collect();
                match parts.as_slice() {
                    [only] => self.declare(self.text(*only), scope),
                    [first, ..] => self.visit(*first, scope),
                    [] => {}
                }
            }
            "class_pattern" => {
                for child in named_children(node) {
                    match child.named_child(0) {
                        Some(first) if child.kind() == "dotted_name" => self.visit(first, scope),
                        _ => self.pattern(child, scope),
                    }
                }
            }
            "keyword_pattern" => {
                for child in named_children(node).skip(1) {
                    self.pattern(child, scope);
                }
            }
            "string" | "concatenated_string" => {}
            _ => self.each(node, scope, Self::pattern),
        }
    }

    fn import(&mut self, node: Node<'m>, scope: usize) {
        for name in field_children(node, "name") {
            let local = match name.kind() {
                "aliased_import" => name.child_by_field_name("alias"),
                _ => name.named_child(0).or(Some(name)),
            };
            if let Some(local) = local {
                self.declare(self.text(local), scope);
            }
        }
        if named_children(node).any(|c| c.kind() == "wildcard_import") {
            self.anything_goes = true;
        }
    }
}

fn first_identifier(node: Node<'_>) -> Option<Node<'_>> {
    if node.kind() == "identifier" {
        return Some(node);
    }
    named_children(node).find_map(first_identifier)
}
