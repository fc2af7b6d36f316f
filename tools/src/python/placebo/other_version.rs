//! Adds unused copies of what only another version of a file has. If the old and the new code both get such copies, a
//! test can tell them apart neither by what the fix adds nor by what it removes.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::syntax::{descendants, is_movable};
use crate::python::nodes::named_children;
use crate::python::{Definition, Module, flatten};

/// Maximum number of copied expressions in a function, and of their bytes.
const MAX_EXPRESSIONS: usize = 200;
const MAX_EXPRESSION_BYTES: usize = 200;

/// Maximum number of copied lines.
const MAX_LINES: usize = 500;

/// Words of code that counts frames. One more frame could have the effect of the fix, e.g. on the line of a warning.
const FRAME_WORDS: [&str; 5] = [
    "stacklevel",
    "_getframe",
    "currentframe",
    "f_back",
    ".stack(",
];

/// Words of code that may define names without naming them.
const NAMESPACE_WORDS: [&str; 5] = [
    "\n__getattr__",
    "\ndef __getattr__",
    "globals()",
    "import *",
    "sys.modules[__name__]",
];

/// Names that frameworks look up in modules, beside `pytest_*` and names such as `__path__`. They would use a stand-in.
const LOOKED_UP_NAMES: [&str; 13] = [
    "app",
    "application",
    "load_tests",
    "main",
    "register",
    "setUpModule",
    "setup",
    "setup_function",
    "setup_module",
    "tearDownModule",
    "teardown",
    "teardown_function",
    "teardown_module",
];

/// The other version of a file.
pub(super) struct OtherVersion<'m> {
    own: &'m Module,
    module: &'m Module,
    /// Qualified names in the own version, by the start of the body.
    names: BTreeMap<usize, String>,
    /// Definitions by qualified name.
    definitions: BTreeMap<String, Definition>,
    /// Whether code of a version counts frames.
    pub(super) counts_frames: bool,
}

impl<'m> OtherVersion<'m> {
    pub(super) fn new(own: &'m Module, module: &'m Module) -> Self {
        let (own_outline, outline) = (own.outline(), module.outline());
        let names = flatten(&own_outline).into_iter();
        let definitions = flatten(&outline).into_iter();
        let mut words = FRAME_WORDS.iter();
        let texts = [own.text(), module.text()];
        OtherVersion {
            counts_frames: words.any(|word| texts.iter().any(|text| text.contains(word))),
            own,
            module,
            names: names.map(|d| (d.body.start, d.qualified.clone())).collect(),
            definitions: definitions
                .map(|d| (d.qualified.clone(), d.clone()))
                .collect(),
        }
    }

    /// Returns the definition with the same name as the own definition with this body.
    fn definition(&self, body_start: usize) -> Option<&Definition> {
        self.definitions.get(self.names.get(&body_start)?)
    }

    /// Returns the docstring of a class or function.
    pub(super) fn docstring(&self, body_start: usize) -> Option<&'m str> {
        let docstring = self.module.docstring(self.definition(body_start)?);
        docstring.map(|docstring| docstring.source)
    }

    /// Returns one expression with copies of those of a function, which never run. `None` if the function is the same.
    pub(super) fn expressions(&self, own_body: Node<'_>) -> Option<String> {
        let body = self.definition(own_body.start_byte())?.body.clone();
        // A name must not occur before its declaration.
        let is_declaration =
            |node: &Node<'_>| matches!(node.kind(), "global_statement" | "nonlocal_statement");
        if self.module.text().get(body.clone()) == Some(self.own.source(own_body))
            || descendants(own_body).iter().any(is_declaration)
        {
            return None;
        }
        let root = self.module.root();
        let mut nodes = vec![root.descendant_for_byte_range(body.start, body.end)?];
        let mut copies = Vec::new();
        while let Some(node) = nodes.pop().filter(|_| copies.len() < MAX_EXPRESSIONS) {
            match is_copied(self.module, node) {
                true => copies.push(self.module.source(node)),
                false => nodes.extend(named_children(node)),
            }
        }
        (!copies.is_empty()).then(|| format!("[] and [{}]", copies.join(", ")))
    }

    /// Returns lines that define the missing names of imports, and of private functions, classes and variables. The
    /// issue may ask for a public name, or for an import that the module itself does not use.
    pub(super) fn definitions(&self) -> Vec<String> {
        let texts = [self.own.text(), self.module.text()];
        let has = |word: &&str| texts.iter().any(|text| text.contains(word));
        if NAMESPACE_WORDS.iter().any(has) {
            return Vec::new();
        }
        let mut names = BTreeMap::new();
        let used = variable_names(self.module, false);
        let imports = self.module.imports().into_iter();
        for binding in imports.filter(|i| i.top_level).flat_map(|i| i.bindings) {
            if binding.module != "__future__" && used.contains(binding.local.as_str()) {
                names.insert(binding.local, binding.module.is_empty());
            }
        }
        let definitions = self.definitions.values().filter(|d| d.indent == 0);
        let variables = self.module.assignments().into_iter();
        let private = definitions
            .map(|definition| definition.name.clone())
            .chain(variables.flat_map(|assignment| assignment.names))
            .filter(|name| name.starts_with('_') && !name.starts_with("__"));
        names.extend(private.map(|name| (name, false)));
        let own_names = variable_names(self.own, true);
        // Code that looks a name up by its text would notice.
        let is_quoted = |name: &str| {
            let quoted = [format!("'{name}'"), format!("\"{name}\"")];
            let mut texts = texts.iter();
            texts.any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
        };
        names.retain(|name, _| {
            !own_names.contains(name.as_str()) && !is_quoted(name) && !is_looked_up(name)
        });
        let lines = names.into_iter().map(|(name, is_module)| match is_module {
            true => format!("import colorsys as {name}"),
            false => format!("def {name}(*args, **kwargs): raise GeneratorExit"),
        });
        lines.collect()
    }

    /// Returns the missing lines as comments.
    pub(super) fn comments(&self) -> Vec<String> {
        let own: BTreeSet<&str> = self.own.text().lines().map(str::trim).collect();
        let lines = self.module.text().lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !own.contains(line))
            .take(MAX_LINES)
            .map(|line| format!("# {line}"))
            .collect()
    }
}

/// Returns whether a framework may look the name up in a module.
fn is_looked_up(name: &str) -> bool {
    let is_hook = ["__", "pytest_"].iter().any(|p| name.starts_with(p));
    is_hook || LOOKED_UP_NAMES.contains(&name)
}

/// Returns whether a node is copied as a whole. The copies are on one line.
fn is_copied(module: &Module, node: Node<'_>) -> bool {
    let kind = node.kind();
    let is_expression = kind.ends_with("_operator")
        || kind.ends_with("_comprehension")
        || matches!(
            kind,
            "attribute" | "call" | "identifier" | "lambda" | "subscript"
        )
        || matches!(kind, "float" | "integer" | "string");
    let source = module.source(node);
    is_expression
        && source.len() <= MAX_EXPRESSION_BYTES
        && !source.contains('\n')
        && is_movable(module, node)
}

/// Returns the identifiers of a module, possibly with imports, but without attributes and names of keyword arguments.
fn variable_names(module: &Module, with_imports: bool) -> BTreeSet<&str> {
    let nodes = descendants(module.root());
    let others = nodes.iter().flat_map(|node| match node.kind() {
        "attribute" => Vec::from_iter(node.child_by_field_name("attribute")),
        "keyword_argument" => Vec::from_iter(node.child_by_field_name("name")),
        "import_from_statement" | "import_statement" if !with_imports => descendants(*node),
        _ => Vec::new(),
    });
    let others: BTreeSet<usize> = others.map(|node| node.start_byte()).collect();
    let is_name =
        |node: &&Node<'_>| node.kind() == "identifier" && !others.contains(&node.start_byte());
    let names = nodes.iter().filter(is_name);
    names.map(|node| module.source(*node)).collect()
}

#[cfg(test)]
mod tests;
