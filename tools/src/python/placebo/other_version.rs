//! Adds unused copies of what only another version of a file has. If the old and the new code both get such copies, a
//! test can tell them apart neither by what the fix adds nor by what it removes.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::Random;
use super::docstrings::string_of;
use super::syntax::{descendants, is_definition, is_movable, statements};
use crate::python::nodes::named_children;
use crate::python::standard_library::is_deprecated;
use crate::python::{Binding, Definition, Module, flatten, is_standard_library};

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

/// Modules of the standard library that do something when they are imported.
const ACTIVE_MODULES: [&str; 6] = [
    "antigravity",
    "idlelib",
    "readline",
    "this",
    "tkinter",
    "turtle",
];

/// Maximum number of lines that align a function, or the head of a file.
const MAX_PADDING: usize = 200;

/// Maximum number of lines in place of missing ones, if no line is missing.
const MAX_DECOY_LINES: usize = 3;

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
    /// Whether names may be copied.
    has_names: bool,
}

impl<'m> OtherVersion<'m> {
    pub(super) fn new(own: &'m Module, module: &'m Module, has_names: bool) -> Self {
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
            has_names,
        }
    }

    /// Returns the definition with the same name as the own definition with this body.
    fn definition(&self, body_start: usize) -> Option<&Definition> {
        self.definitions.get(self.names.get(&body_start)?)
    }

    /// Returns the docstring of the module, class or function with this body in the own version. It is empty if there is
    /// no docstring; `None` if there is no such class or function.
    pub(super) fn docstring(&self, own_body: Node<'_>) -> Option<&'m str> {
        if own_body.parent().is_none() {
            let first = statements(self.module.root()).into_iter().next();
            let string = first.and_then(string_of);
            return Some(string.map_or("", |string| self.module.source(string)));
        }
        let docstring = self
            .module
            .docstring(self.definition(own_body.start_byte())?);
        Some(docstring.map_or("", |docstring| docstring.source))
    }

    /// Returns by how many lines of code the versions of a function differ.
    pub(super) fn function_padding(&self, own_body: Node<'_>) -> usize {
        let Some(definition) = self.definition(own_body.start_byte()) else {
            return 0;
        };
        let own_docstring = statements(own_body).first().copied().and_then(string_of);
        let own = count_lines(self.own.source(own_body));
        let own = own.saturating_sub(own_docstring.map_or(0, rows));
        let docstring = self.module.docstring(definition);
        let docstring = docstring.map_or(0, |docstring| count_lines(docstring.source));
        let body = self.module.text().get(definition.body.clone());
        let other = count_lines(body.unwrap_or_default()).saturating_sub(docstring);
        other.abs_diff(own).min(MAX_PADDING)
    }

    /// Returns by how many lines the places of the first definitions differ.
    pub(super) fn head_padding(&self) -> usize {
        let head = |module: &Module| {
            let statements = statements(module.root());
            let first = statements
                .iter()
                .find(|statement| is_definition(**statement))?;
            let docstring = statements.first().copied().and_then(string_of);
            let row = first.start_position().row;
            Some(row.saturating_sub(docstring.map_or(0, rows)))
        };
        match (head(self.own), head(self.module)) {
            (Some(own), Some(other)) => other.abs_diff(own).min(MAX_PADDING),
            _ => 0,
        }
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
        if copies.is_empty() {
            // The copies of the other function have something.
            copies.push("1000");
        }
        Some(format!("[] and [{}]", copies.join(", ")))
    }

    /// Returns lines that define the missing names. If only the opposite change would add a line of some form, another
    /// name gets one, because the form would otherwise tell the versions apart.
    pub(super) fn definitions(&self, random: &mut Random) -> Vec<String> {
        let texts = [self.own.text(), self.module.text()];
        let has = |word: &&str| texts.iter().any(|text| text.contains(word));
        if !self.has_names || NAMESPACE_WORDS.iter().any(has) {
            return Vec::new();
        }
        let mut names = self.missing_names();
        let opposite = OtherVersion::new(self.module, self.own, true).missing_names();
        for form in [Form::Function, Form::Alias] {
            let has_form = |names: &Definitions| names.values().any(|(other, _)| *other == form);
            if has_form(&opposite) && !has_form(&names) {
                let name = self.decoy_name(form, random);
                names.extend(name.map(|name| {
                    let line = stand_in(&name, form);
                    (name, (form, line))
                }));
            }
        }
        let lines = names.into_values().flat_map(|(form, line)| match form {
            // A fix may remove an import because it fails.
            Form::Import => vec![format!("try: {line}"), "except Exception: pass".to_owned()],
            _ => vec![line],
        });
        lines.collect()
    }

    /// Returns the missing names of imports, and of private functions, classes and variables. The issue may ask for a
    /// public name, or for an import that the module itself does not use.
    fn missing_names(&self) -> Definitions {
        let texts = [self.own.text(), self.module.text()];
        let mut names = BTreeMap::new();
        let used = variable_names(self.module, false);
        let imports = self.module.imports().into_iter();
        for binding in imports.filter(|i| i.top_level).flat_map(|i| i.bindings) {
            if binding.module != "__future__" && used.contains(binding.local.as_str()) {
                let line = import_line(&binding);
                names.insert(binding.local, line);
            }
        }
        let definitions = self.definitions.values().filter(|d| d.indent == 0);
        let variables = self.module.assignments().into_iter();
        let private = definitions
            .map(|definition| definition.name.clone())
            .chain(variables.flat_map(|assignment| assignment.names))
            .filter(|name| name.starts_with('_') && !name.starts_with("__"));
        names.extend(private.map(|name| {
            let line = stand_in(&name, Form::Function);
            (name, (Form::Function, line))
        }));
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
        names
    }

    /// Returns a name like one of the own version that neither version contains.
    fn decoy_name(&self, form: Form, random: &mut Random) -> Option<String> {
        let prefix = if form == Form::Alias { "" } else { "_" };
        let texts = [self.own.text(), self.module.text()];
        let names = variable_names(self.own, true).into_iter();
        let names = names.map(|name| name.trim_matches('_'));
        let names: Vec<String> = names
            .filter(|name| name.len() > 1)
            .map(|name| format!("{prefix}{name}s"))
            .filter(|name| !texts.iter().any(|text| text.contains(name.as_str())))
            .filter(|name| !is_looked_up(name))
            .collect();
        names.get(random.below(names.len())).cloned()
    }

    /// Returns the missing lines as comments; a few other lines if none is missing.
    pub(super) fn comments(&self, random: &mut Random) -> Vec<String> {
        let code_lines = |module: &'m Module| {
            let lines = module.text().lines().map(str::trim);
            lines.filter(|line| !line.is_empty())
        };
        let own: BTreeSet<&str> = code_lines(self.own).collect();
        let mut lines: Vec<&str> = code_lines(self.module)
            .filter(|line| !own.contains(line))
            .take(MAX_LINES)
            .collect();
        if lines.is_empty() && !own.is_empty() {
            let own: Vec<&str> = own.into_iter().collect();
            let count = 1 + random.below(MAX_DECOY_LINES);
            lines.extend((0..count).filter_map(|_| own.get(random.below(own.len()))));
        }
        lines.iter().map(|line| format!("# {line}")).collect()
    }
}

fn count_lines(text: &str) -> usize {
    text.lines().count()
}

/// Returns the number of lines of a node.
fn rows(node: Node<'_>) -> usize {
    node.end_position().row - node.start_position().row + 1
}

/// Names with the lines that define them, and the forms of these.
type Definitions = BTreeMap<String, (Form, String)>;

/// The form of a line that defines a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A stand-in for a function, class or variable.
    Function,
    /// A stand-in for a module.
    Alias,
    /// The import of the other version.
    Import,
}

/// Returns the line that imports a missing name. An import from the standard library is the real one.
fn import_line(binding: &Binding) -> (Form, String) {
    let is_module = binding.module.is_empty();
    let from = if is_module {
        &binding.name
    } else {
        &binding.module
    };
    let top = from.split('.').next().unwrap_or_default();
    // Names with an underscore need not belong to the library.
    let is_library = is_standard_library(top) && !top.starts_with('_');
    // A fix may remove an import because it gives a warning.
    if is_library && !is_deprecated(top) && !ACTIVE_MODULES.contains(&top) {
        return (Form::Import, binding.statement());
    }
    let form = if is_module {
        Form::Alias
    } else {
        Form::Function
    };
    (form, stand_in(&binding.local, form))
}

fn stand_in(name: &str, form: Form) -> String {
    match form {
        Form::Alias | Form::Import => format!("import colorsys as {name}"),
        Form::Function => format!("def {name}(*args, **kwargs): raise GeneratorExit"),
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
