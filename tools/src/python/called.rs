//! Finds the classes and functions of a repository that a range of code uses, and which of them it calls.
//!
//! Names are resolved on the syntax tree: through imports, members, and variables that hold an instance of a class.
//! Names in comments and strings do not count, nor do names that the file binds otherwise.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::index::binding_name;
use super::nodes::{field_children, named_children};
use super::offsets::line_of;
use super::{Binding, FoundDefinition, Kind, Module, RepositoryIndex, outer_uses};

/// A use of a class or function of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Class or function that is used.
    pub found: FoundDefinition,
    /// Line number from 1.
    pub line: usize,
    /// Whether the use is a call.
    pub is_called: bool,
}

/// Returns the references in a range of a file, in order. `path` is the file's location, which resolves relative
/// imports.
pub fn references(
    module: &Module,
    path: &str,
    stretch: &Range<usize>,
    index: &RepositoryIndex,
) -> Vec<Reference> {
    let mut reader = ReferenceFinder::new(module, path, stretch, index);
    let mut nodes = Vec::new();
    reader.chains(module.root(), &mut nodes);
    // Find instances first: a variable may be used above the place where a loop sets it.
    reader.find_instances(module.root());
    let references = nodes.into_iter().filter_map(|node| reader.reference(node));
    references.collect()
}

struct ReferenceFinder<'m> {
    module: &'m Module,
    stretch: Range<usize>,
    index: &'m RepositoryIndex,
    /// Dotted names by the names that the file's top level imports them as.
    imported: HashMap<String, Vec<String>>,
    /// Dotted names by local name, for imports inside the range.
    local: HashMap<String, Vec<String>>,
    /// Byte offsets of names that no function binds.
    outer: HashSet<usize>,
    /// Names that the file's top level binds other than by an import.
    rebound: HashSet<String>,
    /// Variables that hold an instance; `None` if it may be of more than one class.
    instances: HashMap<String, Option<FoundDefinition>>,
}

impl<'m> ReferenceFinder<'m> {
    fn new(
        module: &'m Module,
        path: &str,
        stretch: &Range<usize>,
        index: &'m RepositoryIndex,
    ) -> Self {
        let here = path.trim_end_matches(".py").replace('/', ".");
        let here = index.module_of(path).map_or(here, str::to_owned);
        let name = |binding: &Binding| binding_name(binding, &binding.local, &here, false);
        let text = module.text();
        let lines = line_of(text, stretch.start)..=line_of(text, stretch.end);
        let (mut imported, mut local) = (HashMap::new(), HashMap::new());
        for import in module.imports() {
            let is_local = lines.contains(&import.first);
            for binding in &import.bindings {
                let into = if is_local { &mut local } else { &mut imported };
                let names: &mut Vec<String> = into.entry(binding.local.clone()).or_default();
                names.extend(name(binding));
            }
        }
        let definitions = module.outline().into_iter().map(|d| d.name);
        let assigned = module.assignments().into_iter().flat_map(|a| a.names);
        ReferenceFinder {
            module,
            stretch: stretch.clone(),
            index,
            imported,
            local,
            outer: outer_uses(module)
                .into_iter()
                .filter(|used| !used.is_member)
                .map(|used| used.at)
                .collect(),
            rebound: definitions.chain(assigned).collect(),
            instances: HashMap::new(),
        }
    }

    fn is_inside(&self, node: Node<'_>) -> bool {
        node.end_byte() > self.stretch.start && node.start_byte() < self.stretch.end
    }

    /// Collects the outermost `a.b.c` chains and names of the range.
    fn chains(&self, node: Node<'m>, nodes: &mut Vec<Node<'m>>) {
        if !self.is_inside(node) {
            return;
        }
        match node.kind() {
            "identifier" => nodes.push(node),
            "attribute" => {
                nodes.push(node);
                if split_chain(self.module, node).is_none() {
                    self.chains_in(field_children(node, "object"), nodes);
                }
            }
            "import_statement" | "import_from_statement" | "type" => {}
            "keyword_argument" => self.chains_in(field_children(node, "value"), nodes),
            _ => self.chains_in(named_children(node), nodes),
        }
    }

    fn chains_in(&self, children: impl Iterator<Item = Node<'m>>, nodes: &mut Vec<Node<'m>>) {
        children.for_each(|child| self.chains(child, nodes));
    }

    /// Finds variables that are set to `Class(…)`.
    fn find_instances(&mut self, node: Node<'m>) {
        if !self.is_inside(node) {
            return;
        }
        let (target, value) = match node.kind() {
            "assignment" => (
                node.child_by_field_name("left"),
                node.child_by_field_name("right"),
            ),
            "as_pattern" => (
                node.child_by_field_name("alias")
                    .and_then(|a| a.named_child(0)),
                node.named_child(0),
            ),
            _ => (None, None),
        };
        if let Some(target) = target.filter(|target| target.kind() == "identifier") {
            let class = value
                .filter(|value| value.kind() == "call")
                .and_then(|call| call.child_by_field_name("function"))
                .and_then(|function| self.resolve(function))
                .filter(|definition| definition.kind == Kind::Class);
            let name = self.module.source(target).to_owned();
            let first = class.clone();
            let instance = self.instances.entry(name).or_insert(first);
            if *instance != class {
                *instance = None;
            }
        }
        for child in named_children(node) {
            self.find_instances(child);
        }
    }

    fn reference(&self, node: Node<'m>) -> Option<Reference> {
        let mut here = node;
        let found = loop {
            if let Some(definition) = self.resolve(here) {
                break definition;
            }
            // `Class.unknown` is a use of `Class`.
            here = here.child_by_field_name("object")?;
            if here.kind() == "call" {
                return None;
            }
        };
        let call = here.parent().filter(|parent| parent.kind() == "call");
        let function = call.and_then(|call| call.child_by_field_name("function"));
        Some(Reference {
            found,
            line: here.start_position().row + 1,
            is_called: function.is_some_and(|function| function.id() == here.id()),
        })
    }

    /// Resolves `Class(…).member`.
    fn member_of_call(&self, node: Node<'_>) -> Option<FoundDefinition> {
        let call = node.child_by_field_name("object")?;
        let class = self.resolve(call.child_by_field_name("function")?)?;
        let member = self.module.source(node.child_by_field_name("attribute")?);
        match class.kind {
            Kind::Class => self.index.member(&class, &[member]),
            Kind::Function => None,
        }
    }

    fn resolve(&self, node: Node<'_>) -> Option<FoundDefinition> {
        let Some((root, at, members)) = split_chain(self.module, node) else {
            return self.member_of_call(node);
        };
        if let Some(instance) = self.instances.get(root) {
            let class = instance.as_ref().filter(|_| !members.is_empty())?;
            return self.index.member(class, &members);
        }
        let bound = match self.local.get(root) {
            Some(bound) => bound,
            None if self.outer.contains(&at) && !self.rebound.contains(root) => {
                self.imported.get(root)?
            }
            None => return None,
        };
        bound.iter().find_map(|dotted| {
            let names = [&[dotted.as_str()][..], members.as_slice()].concat();
            self.index.resolve(&names.join("."))
        })
    }
}

/// Splits `a.b.c` into its first name, that name's offset, and the other names.
fn split_chain<'m>(module: &'m Module, node: Node<'_>) -> Option<(&'m str, usize, Vec<&'m str>)> {
    let mut members = Vec::new();
    let mut here = node;
    while here.kind() == "attribute" {
        members.push(module.source(here.child_by_field_name("attribute")?));
        here = here.child_by_field_name("object")?;
    }
    members.reverse();
    (here.kind() == "identifier").then(|| (module.source(here), here.start_byte(), members))
}

#[cfg(test)]
mod tests;
