//! Renames a local variable of a function, if this is certainly safe.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::syntax::{INTROSPECTION, descendants, plain_assignment, statements};
use super::{Edit, Random};
use crate::python::Module;
use crate::python::nodes::named_children;

/// Endings of the new names.
pub(super) const SUFFIXES: [&str; 4] = ["_val", "_cur", "_tmp", "_obj"];

/// Soft keywords, and keywords of some versions of Python.
const SOFT_KEYWORDS: [&str; 7] = ["async", "await", "case", "exec", "match", "print", "type"];

/// Returns the words of a text: maximal runs of letters, digits and underscores.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// Returns edits that rename one local variable. Only variables qualify that are always bound when they are read, so
/// the name does not occur in an `UnboundLocalError` either.
pub(super) fn rename_local(
    module: &Module,
    function: Node<'_>,
    words: &HashSet<&str>,
    random: &mut Random,
) -> Option<Vec<Edit>> {
    let names = Names::read(module, function)?;
    let mut candidates = names.candidates(module, function);
    if candidates.is_empty() {
        return None;
    }
    let name = candidates.swap_remove(random.below(candidates.len()));
    let start = random.below(SUFFIXES.len());
    let new_name = (0..SUFFIXES.len())
        .filter_map(|at| SUFFIXES.get((start + at) % SUFFIXES.len()))
        .map(|suffix| format!("{name}{suffix}"))
        .find(|new_name| !words.contains(new_name.as_str()))?;
    let ranges = names.uses.get(name)?;
    let edits = ranges.iter().map(|range| Edit {
        start: range.start,
        end: range.end,
        text: new_name.clone(),
    });
    Some(edits.collect())
}

/// Identifiers of one function.
struct Names<'m> {
    /// Places in the body where each name is a variable, in the order of the text.
    uses: BTreeMap<&'m str, Vec<Range<usize>>>,
    /// Names that keep their spelling.
    excluded: BTreeSet<&'m str>,
}

impl<'m> Names<'m> {
    /// Reads the names of a function. Returns `None` if it contains something that may see or share its variables.
    fn read(module: &'m Module, function: Node<'m>) -> Option<Names<'m>> {
        let body = function.child_by_field_name("body")?.byte_range();
        let mut names = Names {
            uses: BTreeMap::new(),
            excluded: SOFT_KEYWORDS.into_iter().collect(),
        };
        // Offsets of attributes and keyword arguments, which are not variables.
        let mut labels: BTreeSet<usize> = BTreeSet::new();
        for node in descendants(function).into_iter().skip(1) {
            let source = module.source(node);
            match node.kind() {
                "attribute" => labels.extend(field_start(node, "attribute")),
                "keyword_argument" => labels.extend(field_start(node, "name")),
                "identifier" => {
                    let shows_variables =
                        INTROSPECTION.contains(&source) || source.contains("inspect");
                    if shows_variables || !source.is_ascii() {
                        return None;
                    }
                    let range = node.byte_range();
                    if range.start < body.start {
                        names.excluded.insert(source);
                    } else if !labels.contains(&range.start) {
                        names.uses.entry(source).or_default().push(range);
                    }
                }
                "string_content" => names.excluded.extend(words(source)),
                // Template strings keep the text of their expressions.
                "string_start" if source.contains(['t', 'T']) => return None,
                // `f"{name=}"` prints the name.
                "interpolation" | "format_expression" if has_equals_sign(node) => return None,
                "as_pattern_target" | "member_type" => names.exclude(module, node),
                "except_clause" => {
                    if let Some(alias) = node.child_by_field_name("alias") {
                        names.exclude(module, alias);
                    }
                }
                "future_import_statement" | "import_statement" | "import_from_statement" => {
                    names.exclude(module, node);
                }
                kind if has_own_scope(kind) || is_unsafe_statement(kind) => return None,
                _ => {}
            }
        }
        Some(names)
    }

    fn exclude(&mut self, module: &'m Module, node: Node<'m>) {
        let nodes = descendants(node).into_iter();
        let identifiers = nodes.filter(|node| node.kind() == "identifier");
        self.excluded
            .extend(identifiers.map(|node| module.source(node)));
    }

    /// Returns the names that can be renamed, in the order of their bindings.
    fn candidates(&self, module: &'m Module, function: Node<'m>) -> Vec<&'m str> {
        let mut candidates: Vec<&str> = Vec::new();
        let nodes = descendants(function).into_iter();
        for block in nodes.filter(|node| node.kind() == "block") {
            for statement in statements(block) {
                let Some(binding) = Binding::read(module, block, statement) else {
                    continue;
                };
                for &name in &binding.names {
                    if self.is_renamable(name, &binding) && !candidates.contains(&name) {
                        candidates.push(name);
                    }
                }
            }
        }
        candidates
    }

    /// Returns whether all uses of a name follow this binding in its block.
    fn is_renamable(&self, name: &str, binding: &Binding<'_>) -> bool {
        let Some(uses) = self.uses.get(name) else {
            return false;
        };
        let is_bound = |range: &Range<usize>| {
            range.start >= binding.targets.start
                && range.end <= binding.end
                && !binding.value.contains(&range.start)
        };
        let is_first = |range: &Range<usize>| binding.targets.contains(&range.start);
        name.len() >= 2
            && !name.starts_with('_')
            && !self.excluded.contains(name)
            && uses.first().is_some_and(is_first)
            && uses.iter().all(is_bound)
    }
}

/// An assignment or a loop that binds names for the rest of a block.
struct Binding<'m> {
    names: Vec<&'m str>,
    targets: Range<usize>,
    /// The value, which is evaluated before the names are bound.
    value: Range<usize>,
    /// End of the block in which the names are bound.
    end: usize,
}

impl<'m> Binding<'m> {
    fn read(module: &'m Module, block: Node<'m>, statement: Node<'m>) -> Option<Binding<'m>> {
        let (node, end) = match statement.kind() {
            "expression_statement" => (plain_assignment(statement)?, block.end_byte()),
            "for_statement" => (statement, statement.child_by_field_name("body")?.end_byte()),
            _ => return None,
        };
        let left = node.child_by_field_name("left")?;
        let value = node.child_by_field_name("right")?.byte_range();
        let targets: Vec<Node<'m>> = match left.kind() {
            "identifier" => vec![left],
            "pattern_list" | "tuple_pattern" => named_children(left).collect(),
            _ => return None,
        };
        if targets.iter().any(|target| target.kind() != "identifier") {
            return None;
        }
        Some(Binding {
            names: targets.iter().map(|name| module.source(*name)).collect(),
            targets: left.byte_range(),
            value,
            end,
        })
    }
}

fn field_start(node: Node<'_>, field: &str) -> Option<usize> {
    node.child_by_field_name(field)
        .map(|child| child.start_byte())
}

fn has_equals_sign(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.any(|child| child.kind() == "=")
}

fn has_own_scope(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition"
            | "class_definition"
            | "lambda"
            | "list_comprehension"
            | "dictionary_comprehension"
            | "set_comprehension"
            | "generator_expression"
    )
}

fn is_unsafe_statement(kind: &str) -> bool {
    matches!(
        kind,
        "global_statement"
            | "nonlocal_statement"
            | "delete_statement"
            | "match_statement"
            | "type_alias_statement"
    )
}
