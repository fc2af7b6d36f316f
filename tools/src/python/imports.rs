//! Import statements and the names that they bind.

use tree_sitter::Node;

use super::Module;
use super::nodes::{field_children, is_compound, named_children};

/// One name that an import statement binds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding {
    /// `a.b` of `from a.b import c`, with leading dots; empty for `import a.b`.
    pub module: String,
    /// `c` of `from a.b import c`; `a.b` of `import a.b`; `*`.
    pub name: String,
    /// The local name: `c`, or `a`, or the name after `as`; `*`.
    pub local: String,
}

impl Binding {
    /// Returns a statement with only this binding.
    pub fn statement(&self) -> String {
        let bound_anyway = match self.module.as_str() {
            "" => self.name.split('.').next() == Some(&self.local),
            _ => self.name == self.local,
        };
        let from = match self.module.as_str() {
            "" => format!("import {}", self.name),
            module => format!("from {module} import {}", self.name),
        };
        if bound_anyway {
            from
        } else {
            format!("{from} as {}", self.local)
        }
    }
}

/// Joins adjacent statements that import modules, or import from the same module.
pub fn joined_imports(statements: &[String]) -> Vec<String> {
    const WORD: &str = "import ";
    let mut out: Vec<String> = Vec::new();
    for statement in statements {
        let names = statement.find(WORD).map_or(0, |at| at + WORD.len());
        let (head, names) = statement.split_at(names);
        match out.last_mut() {
            Some(last) if !head.is_empty() && last.starts_with(head) => {
                last.push_str(&format!(", {names}"));
            }
            _ => out.push(statement.clone()),
        }
    }
    out
}

/// An import statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// Names that the statement binds, in order.
    pub bindings: Vec<Binding>,
    /// First line, from 1.
    pub first: usize,
    /// Last line, from 1.
    pub last: usize,
    /// Whether it is outside of functions, classes, `if` and `try`.
    pub top_level: bool,
    /// Source of the statement.
    pub source: String,
}

impl Module {
    /// Returns all import statements in order, including those inside functions.
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        self.collect_imports(self.root(), &mut imports);
        imports
    }

    fn collect_imports(&self, node: Node<'_>, imports: &mut Vec<Import>) {
        for child in named_children(node) {
            match child.kind() {
                "import_statement" | "import_from_statement" | "future_import_statement" => imports
                    .push(Import {
                        bindings: self.bindings(child),
                        first: child.start_position().row + 1,
                        last: super::definitions::last_line(child),
                        top_level: node.kind() == "module",
                        source: self.source(child).to_owned(),
                    }),
                kind if is_compound(kind) => self.collect_imports(child, imports),
                _ => {}
            }
        }
    }

    /// Returns the names that an import statement binds.
    pub fn bindings(&self, statement: Node<'_>) -> Vec<Binding> {
        let plain = |node: Node<'_>| self.source(node).split_whitespace().collect::<String>();
        let module = match statement.kind() {
            "future_import_statement" => "__future__".to_owned(),
            "import_from_statement" => statement
                .child_by_field_name("module_name")
                .map(plain)
                .unwrap_or_default(),
            _ => String::new(),
        };
        let mut bindings = Vec::new();
        for node in field_children(statement, "name") {
            let (name, alias) = match node.kind() {
                "aliased_import" => (
                    node.child_by_field_name("name")
                        .map(plain)
                        .unwrap_or_default(),
                    node.child_by_field_name("alias").map(plain),
                ),
                _ => (plain(node), None),
            };
            let own = match module.as_str() {
                "" => name.split('.').next().unwrap_or_default().to_owned(),
                _ => name.clone(),
            };
            bindings.push(Binding {
                module: module.clone(),
                local: alias.unwrap_or(own),
                name,
            });
        }
        if named_children(statement).any(|c| c.kind() == "wildcard_import") {
            bindings.push(Binding {
                module,
                name: "*".to_owned(),
                local: "*".to_owned(),
            });
        }
        bindings
    }
}
