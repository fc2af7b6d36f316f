//! Adds imports to a file in its own order: to a statement that imports from the same module, or else to its group. The
//! groups are isort's: standard library, other packages, the repository's own, relative ones.

use tree_sitter::Node;

use super::indentation::indentation;
use super::nodes::{field_children, is_compound, named_children};
use super::offsets::line_start;
use super::standard_library::is_standard_library;
use super::{Binding, Import, Module, in_function};

/// Maximum columns of a line that is extended by a name, unless the file has longer ones.
const MAX_COLUMNS: usize = 79;

/// The reason why an import cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A text that should be an import, but is not.
    #[error("`{0}` is not an import statement; write e.g. `from package.module import name`")]
    NotAnImport(String),
    /// Another import binds the name.
    #[error(
        "`{name}` is bound already by `{existing}`; `{wanted}` would take its place. Import it `as` another name"
    )]
    Bound {
        /// Local name that the import would bind.
        name: String,
        /// Statement that binds it in the file.
        existing: String,
        /// Statement that was to be added.
        wanted: String,
    },
    /// A class or function of the file has the name.
    #[error(
        "`{name}` is defined in the file already (line {line}), so `{wanted}` would take its place"
    )]
    Defined {
        /// Local name that the import would bind.
        name: String,
        /// Line of its `class` or `def`, from 1.
        line: usize,
        /// Statement that was to be added.
        wanted: String,
    },
}

/// A text with added imports, and a summary of the changes.
#[derive(Debug, Default)]
pub struct ImportedText {
    /// The whole file after the edit.
    pub text: String,
    /// One statement for each added name.
    pub added: Vec<String>,
    /// A sentence for each name that the file already imports, from another location of the same thing.
    pub existing: Vec<String>,
}

/// Adds the imports that are missing; `is_own` recognizes the repository's own packages.
///
/// # Errors
///
/// Fails if an import would replace another binding of its name.
pub fn add_imports(
    module: &Module,
    bindings: &[Binding],
    is_own: &dyn Fn(&str) -> bool,
) -> Result<ImportedText, ImportError> {
    let mut result = ImportedText {
        text: module.text().to_owned(),
        ..ImportedText::default()
    };
    for binding in bindings {
        let module = Module::parse(result.text.as_str());
        match state(&module, binding)? {
            ImportState::There => {}
            ImportState::ThereFrom(other) => {
                let line = format!(
                    "`{}` was not added: the file already has `{}`.",
                    binding.statement(),
                    other.statement()
                );
                if !result.existing.contains(&line) {
                    result.existing.push(line);
                }
            }
            ImportState::Missing => {
                result.text = match merged(&module, binding) {
                    Some(text) => text,
                    None => with_statement(&module, binding, is_own),
                };
                result.added.push(binding.statement());
            }
        }
    }
    Ok(result)
}

/// Replaces every binding of `old` with one from elsewhere; other names of the statements stay unchanged. Returns
/// `None` if the file has no such binding.
pub fn replace_binding(
    module: &Module,
    old: &Binding,
    new: &Binding,
    is_own: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let mut text = module.text().to_owned();
    let mut is_found = false;
    // Replace one at a time, since positions move.
    while let Some(changed) = replaced_once(&Module::parse(text.as_str()), old, new, is_own) {
        is_found = true;
        text = changed;
    }
    is_found.then_some(text)
}

fn replaced_once(
    module: &Module,
    old: &Binding,
    new: &Binding,
    is_own: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if old == new || old.module.is_empty() {
        return None;
    }
    let statement = import_of(module, module.root(), old)?;
    let (bytes, text) = (statement.byte_range(), module.text());
    let names = module.bindings(statement);
    if names.len() == 1 {
        let mut replaced = text.to_owned();
        replaced.replace_range(bytes, &new.statement());
        return Some(replaced);
    }
    let at = names.iter().position(|name| name == old)?;
    let nodes: Vec<Node<'_>> = field_children(statement, "name").collect();
    // Include the comma after the name, or else the one before it.
    let removed_range = match nodes.get(at + 1) {
        Some(next) => nodes.get(at)?.start_byte()..next.start_byte(),
        None => nodes.get(at.checked_sub(1)?)?.end_byte()..nodes.get(at)?.end_byte(),
    };
    let mut without = text.to_owned();
    without.replace_range(removed_range.clone(), "");
    let parent = statement.parent();
    if parent.is_some_and(|parent| parent.kind() == "module") {
        let result = add_imports(&Module::parse(without), std::slice::from_ref(new), is_own);
        return result.ok().map(|imported| imported.text);
    }
    // Add it on its own line below.
    let row = line_start(text, bytes.start);
    let indent = indentation(&text[row..bytes.start]);
    let end = bytes.end - removed_range.len();
    let (above, below) = without.split_at(end);
    Some(format!("{above}\n{indent}{}{below}", new.statement()))
}

/// Returns the first statement with this binding.
fn import_of<'m>(module: &'m Module, node: Node<'m>, binding: &Binding) -> Option<Node<'m>> {
    named_children(node).find_map(|child| match child.kind() {
        "import_from_statement" => module.bindings(child).contains(binding).then_some(child),
        kind if is_compound(kind) => import_of(module, child, binding),
        _ => None,
    })
}

enum ImportState {
    There,
    /// Bound by an import from a package that contains the wanted one, or is inside it.
    ThereFrom(Binding),
    Missing,
}

fn state(module: &Module, new_binding: &Binding) -> Result<ImportState, ImportError> {
    let existing = module.imports();
    let defined = module.outline();
    let at_module_level =
        |import: &&Import| import.top_level || in_function(&defined, import.first).is_none();
    let mut module_imports = existing.iter().filter(at_module_level);
    if module_imports.any(|import| import.bindings.contains(new_binding)) {
        return Ok(ImportState::There);
    }
    let top_level = existing.iter().filter(|import| import.top_level);
    let other = top_level.flat_map(|import| &import.bindings).find(|other| {
        let are_packages = other.module.is_empty() && new_binding.module.is_empty();
        other.local == new_binding.local && other.local != "*" && !are_packages
    });
    if let Some(other) = other {
        if other.name == new_binding.name && are_nested(&other.module, &new_binding.module) {
            return Ok(ImportState::ThereFrom(other.clone()));
        }
        return Err(ImportError::Bound {
            name: new_binding.local.clone(),
            existing: other.statement(),
            wanted: new_binding.statement(),
        });
    }
    let mut defined = defined.iter();
    if let Some(own) = defined.find(|definition| definition.name == new_binding.local) {
        return Err(ImportError::Defined {
            name: new_binding.local.clone(),
            line: own.line,
            wanted: new_binding.statement(),
        });
    }
    Ok(ImportState::Missing)
}

/// Returns whether the packages are equal, or one contains the other. A package may re-export its modules' definitions.
fn are_nested(a: &str, b: &str) -> bool {
    let is_in = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer).filter(|_| !outer.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    is_in(a, b) || is_in(b, a)
}

/// Adds the name to a statement that imports from the same module; `None` if there is no such statement, or no room.
fn merged(module: &Module, new_binding: &Binding) -> Option<String> {
    if new_binding.module.is_empty() || new_binding.name == "*" {
        return None;
    }
    let root = module.root();
    let is_same = |node: &Node<'_>| {
        let bindings = match node.kind() {
            "import_from_statement" | "future_import_statement" => module.bindings(*node),
            _ => return false,
        };
        let mut bindings = bindings.iter();
        bindings.all(|binding| binding.module == new_binding.module && binding.name != "*")
    };
    let statement = named_children(root).rfind(is_same)?;
    let names: Vec<Node<'_>> = field_children(statement, "name").collect();
    let (first, last) = (names.first()?, names.last()?);
    let text = match new_binding.name == new_binding.local {
        true => new_binding.name.clone(),
        false => format!("{} as {}", new_binding.name, new_binding.local),
    };
    let rows: Vec<usize> = names.iter().map(|node| node.start_position().row).collect();
    let has_a_line_each =
        rows.is_sorted_by(|a, b| a < b) && rows[0] > statement.start_position().row;
    let separator = match has_a_line_each {
        true => format!(",\n{}", " ".repeat(first.start_position().column)),
        false => ", ".to_owned(),
    };
    let name_texts: Vec<&str> = names.iter().map(|node| module.source(*node)).collect();
    let at = place_among(&name_texts, &text);
    let mut out = module.text().to_owned();
    match at.checked_sub(1).and_then(|before| names.get(before)) {
        Some(before) => out.insert_str(before.end_byte(), &format!("{separator}{text}")),
        None => out.insert_str(first.start_byte(), &format!("{text}{separator}")),
    }
    let longest = module.text().lines().map(|line| line.chars().count()).max();
    let max_width = longest.unwrap_or_default().clamp(MAX_COLUMNS, 120);
    let rows = statement.start_position().row..=last.end_position().row + 1;
    let fits = (out.lines().enumerate())
        .filter(|(row, _)| rows.contains(row))
        .all(|(_, line)| line.chars().count() <= max_width);
    fits.then_some(out)
}

/// Returns the position of a name in the order of the others; at the end if they have no order.
fn place_among(names: &[&str], new: &str) -> usize {
    type Key = fn(&str) -> (usize, String);
    // isort's default: constants, classes, the rest.
    let by_type: Key = |name| {
        let is_constant = name.len() > 1 && !name.contains(char::is_lowercase);
        let is_class = name.starts_with(char::is_uppercase);
        let kind = match (is_constant, is_class) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        (kind, name.to_lowercase())
    };
    let by_letters: Key = |name| (0, name.to_lowercase());
    let by_code: Key = |name| (0, name.to_owned());
    for key in [by_type, by_letters, by_code] {
        if names.is_sorted_by_key(|name| key(name)) {
            return names.partition_point(|name| key(name) < key(new));
        }
    }
    names.len()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Future,
    StandardLibrary,
    Package,
    Own,
    Relative,
}

fn group(binding: &Binding, is_own: &dyn Fn(&str) -> bool) -> Group {
    let name = match binding.module.as_str() {
        "" => &binding.name,
        module => module,
    };
    let top = name.split('.').next().unwrap_or_default();
    match top {
        "" => Group::Relative,
        "__future__" => Group::Future,
        _ if is_own(top) => Group::Own,
        _ if is_standard_library(top) => Group::StandardLibrary,
        _ => Group::Package,
    }
}

/// Adds a separate statement for the binding.
fn with_statement(module: &Module, new_binding: &Binding, is_own: &dyn Fn(&str) -> bool) -> String {
    let outline = module.outline();
    let first_definition = outline.first().map_or(usize::MAX, |d| d.first);
    let imports: Vec<(Import, Group)> = (module.imports().into_iter())
        .filter(|import| import.top_level && import.last < first_definition)
        .map(|import| {
            let binding = import.bindings.first();
            let group = binding.map_or(Group::Package, |binding| group(binding, is_own));
            (import, group)
        })
        .collect();
    let new = group(new_binding, is_own);
    let lines: Vec<&str> = module.text().lines().collect();
    let is_blank = |at: usize| lines.get(at).is_none_or(|line| line.trim().is_empty());
    let statement = new_binding.statement();
    let same: Vec<&Import> = (imports.iter())
        .filter(|(_, group)| *group == new)
        .map(|(import, _)| import)
        .collect();
    // Whether blank lines separate all groups.
    let is_separated = imports
        .windows(2)
        .all(|pair| pair[0].1 == pair[1].1 || (pair[0].0.last..pair[1].0.first - 1).any(is_blank));
    let later = imports.iter().find(|(_, group)| *group > new);
    let (at, block) = if !same.is_empty() {
        (place_in_group(&same, new_binding), vec![statement])
    } else if new == Group::Future || imports.is_empty() {
        let at = header_end(module);
        let mut block = Vec::new();
        if at > 0 && !is_blank(at - 1) {
            block.push(String::new());
        }
        block.push(statement);
        if at < lines.len() && !is_blank(at) {
            block.push(String::new());
        }
        (at, block)
    } else if let Some((later, _)) = later {
        let mut at = later.first - 1;
        while at > 0 && lines[at - 1].starts_with('#') {
            at -= 1;
        }
        if !is_separated || at <= header_end(module) {
            at = later.first - 1;
        }
        (at, vec![statement, String::new()])
    } else {
        let at = imports.last().map_or(0, |(import, _)| import.last);
        match is_separated {
            true => (at, vec![String::new(), statement]),
            false => (at, vec![statement]),
        }
    };
    let mut out: Vec<&str> = lines[..at.min(lines.len())].to_vec();
    out.extend(block.iter().map(String::as_str));
    out.extend(&lines[at.min(lines.len())..]);
    out.join("\n") + "\n"
}

/// Returns the line after which a statement goes in its group.
fn place_in_group(same: &[&Import], new_binding: &Binding) -> usize {
    let name = |binding: &Binding| match binding.module.as_str() {
        "" => binding.name.to_lowercase(),
        module => module.to_lowercase(),
    };
    let key =
        |binding: &Binding, mixes: bool| (!mixes && !binding.module.is_empty(), name(binding));
    // isort puts `import x` first; other files sort by module name only.
    for mixes in [false, true] {
        let keys: Vec<(bool, String)> = (same.iter())
            .filter_map(|import| import.bindings.first())
            .map(|binding| key(binding, mixes))
            .collect();
        if keys.is_sorted() && keys.len() == same.len() {
            let at = keys.partition_point(|other| *other <= key(new_binding, mixes));
            return match at.checked_sub(1).and_then(|before| same.get(before)) {
                Some(before) => before.last,
                None => same.first().map_or(0, |first| first.first - 1),
            };
        }
    }
    same.last().map_or(0, |last| last.last)
}

/// Returns the number of lines of the leading comments and the module's docstring.
fn header_end(module: &Module) -> usize {
    let root = module.root();
    let mut end = 0;
    for child in named_children(root) {
        let is_header = child.kind() == "comment" && child.start_position().row <= end + 1;
        if is_header || super::tokens::is_docstring(child) {
            end = super::definitions::last_line(child);
        } else {
            break;
        }
    }
    end
}

/// Parses import statements from a model into their bindings.
///
/// # Errors
///
/// Fails if a text is not an import statement.
pub fn read_imports(statements: &[String]) -> Result<Vec<Binding>, ImportError> {
    let mut all_bindings = Vec::new();
    for text in statements {
        let module = Module::parse(format!("{}\n", text.trim()));
        let root = module.root();
        let only_imports = named_children(root).all(|c| {
            c.kind().starts_with("import_")
                || matches!(c.kind(), "future_import_statement" | "comment")
        });
        let imports = module.imports().into_iter();
        let bindings: Vec<Binding> = imports.flat_map(|import| import.bindings).collect();
        if root.has_error() || !only_imports || bindings.is_empty() {
            return Err(ImportError::NotAnImport(text.trim().to_owned()));
        }
        all_bindings.extend(bindings);
    }
    Ok(all_bindings)
}

#[cfg(test)]
mod tests;
