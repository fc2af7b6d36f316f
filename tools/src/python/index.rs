//! An index of the definitions in a repository's modules, by the names under which code imports them.

use std::collections::{BTreeMap, HashMap};

use super::offsets::line_of;
use super::resolve::{absolute_module, dotted_name};
use super::{Binding, Definition, Kind, Module};

/// Maximum number of modules through which a name is followed.
const MAX_STEPS: usize = 12;

/// A class or function of the repository. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDefinition {
    /// Path of the file, as given to [`RepositoryIndex::new`].
    pub path: String,
    /// Names of its enclosing classes and its own, joined by dots.
    pub qualified: String,
    /// Whether it is a class or a function.
    pub kind: Kind,
    /// Signature on one line.
    pub signature: String,
    /// First line, decorators included.
    pub first: usize,
    /// Last line, inclusive.
    pub last: usize,
    /// First and last lines of the code that runs on use: the body, or for a class with methods their bodies.
    pub bodies: Vec<(usize, usize)>,
}

struct File {
    text: String,
    outline: Vec<Definition>,
    imports: Vec<Binding>,
    module: String,
    is_package: bool,
}

/// All modules of a repository.
pub struct RepositoryIndex {
    files: BTreeMap<String, File>,
    /// Paths by dotted name.
    modules: HashMap<String, String>,
}

impl RepositoryIndex {
    /// Builds an index from paths and texts of Python files.
    pub fn new(texts: impl IntoIterator<Item = (String, String)>) -> RepositoryIndex {
        let texts: BTreeMap<String, String> = texts.into_iter().collect();
        let is_package = |folder: &str| texts.contains_key(&format!("{folder}/__init__.py"));
        let names: Vec<(String, String)> = texts
            .keys()
            .map(|path| (path.clone(), dotted_name(path, &is_package)))
            .collect();
        let mut modules: HashMap<String, String> = HashMap::new();
        // In a package without `__init__.py`, a module has its whole path as its name.
        for (path, _) in &names {
            modules.insert(dotted_name(path, &|_| true), path.clone());
        }
        for (path, name) in &names {
            modules.insert(name.clone(), path.clone());
        }
        let names: HashMap<String, String> = names.into_iter().collect();
        let files = texts.into_iter().map(|(path, text)| {
            let module = Module::parse(text);
            let imports = module.imports().into_iter();
            let file = File {
                outline: module.outline(),
                imports: imports.flat_map(|import| import.bindings).collect(),
                module: names.get(&path).cloned().unwrap_or_default(),
                is_package: path.ends_with("__init__.py"),
                text: module.text().to_owned(),
            };
            (path, file)
        });
        RepositoryIndex {
            files: files.collect(),
            modules,
        }
    }

    /// Returns the dotted name of a file's module.
    pub fn module_of(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.module.as_str())
    }

    /// Finds the class or function of a dotted name, through imports, members and base classes.
    pub fn resolve(&self, dotted: &str) -> Option<FoundDefinition> {
        let names: Vec<&str> = dotted.split('.').collect();
        self.lookup_absolute(&names, MAX_STEPS)
    }

    /// Finds a member of a class of the repository.
    pub fn member(&self, class: &FoundDefinition, names: &[&str]) -> Option<FoundDefinition> {
        self.member_within(class, names, MAX_STEPS)
    }

    fn member_within(
        &self,
        class: &FoundDefinition,
        names: &[&str],
        steps: usize,
    ) -> Option<FoundDefinition> {
        let file = self.files.get(&class.path)?;
        let all = super::flatten(&file.outline);
        let definition = all.into_iter().rfind(|d| d.qualified == class.qualified)?;
        self.in_definition(&class.path, definition, names, steps)
    }

    fn lookup_absolute(&self, names: &[&str], steps: usize) -> Option<FoundDefinition> {
        let steps = steps.checked_sub(1)?;
        for cut in (1..names.len()).rev() {
            if let Some(path) = self.modules.get(&names[..cut].join(".")) {
                return self.in_module(path, &names[cut..], steps);
            }
        }
        None
    }

    fn in_module(&self, path: &str, names: &[&str], steps: usize) -> Option<FoundDefinition> {
        let file = self.files.get(path)?;
        let (first, rest) = names.split_first()?;
        if let Some(definition) = file.outline.iter().rfind(|d| d.name == *first) {
            return self.in_definition(path, definition, rest, steps);
        }
        let bound = file.imports.iter().rev().filter(|b| b.local == *first);
        let stars = file.imports.iter().filter(|b| b.local == "*");
        bound.chain(stars).find_map(|binding| {
            // Following many stars in a row would take exponentially many paths.
            let steps = steps / if binding.local == "*" { 2 } else { 1 };
            let dotted = binding_name(binding, first, &file.module, file.is_package)?;
            let mut names: Vec<&str> = dotted.split('.').collect();
            names.extend(rest);
            self.lookup_absolute(&names, steps)
        })
    }

    fn in_definition(
        &self,
        path: &str,
        definition: &Definition,
        names: &[&str],
        steps: usize,
    ) -> Option<FoundDefinition> {
        let file = self.files.get(path)?;
        let Some((first, rest)) = names.split_first() else {
            return Some(file.found(path, definition));
        };
        if definition.kind != Kind::Class {
            return None;
        }
        if let Some(member) = definition.children.iter().rfind(|d| d.name == *first) {
            return self.in_definition(path, member, rest, steps);
        }
        let steps = steps.checked_sub(1)?;
        bases(&definition.signature).into_iter().find_map(|base| {
            let names: Vec<&str> = base.split('.').collect();
            let base = self.in_module(path, &names, steps)?;
            self.member_within(&base, std::slice::from_ref(first), steps)
                .filter(|_| rest.is_empty())
        })
    }
}

impl File {
    fn found(&self, path: &str, definition: &Definition) -> FoundDefinition {
        let body = |of: &Definition| (line_of(&self.text, of.body.start), of.last);
        let methods = definition.children.iter();
        let methods: Vec<(usize, usize)> = methods
            .filter(|child| definition.kind == Kind::Class && child.kind == Kind::Function)
            .map(body)
            .collect();
        FoundDefinition {
            path: path.to_owned(),
            qualified: definition.qualified.clone(),
            kind: definition.kind,
            signature: definition.signature.clone(),
            first: definition.first,
            last: definition.last,
            bodies: match methods.is_empty() {
                true => vec![body(definition)],
                false => methods,
            },
        }
    }
}

/// Returns the absolute dotted name of a binding. For a star import, it is the local name in that module.
pub(super) fn binding_name(
    binding: &Binding,
    local: &str,
    module: &str,
    is_package: bool,
) -> Option<String> {
    if binding.module.is_empty() {
        // `import a.b` binds `a`.
        let is_first = binding.name.split('.').next() == Some(local);
        return Some(match is_first {
            true => local.to_owned(),
            false => binding.name.clone(),
        });
    }
    let from = match binding.module.starts_with('.') {
        true => absolute_module(module, is_package, &binding.module)?,
        false => binding.module.clone(),
    };
    let name = match binding.name.as_str() {
        "*" => local,
        name => name,
    };
    Some(format!("{from}.{name}"))
}

/// Returns the names of base classes in `class A(B, c.D[E], metaclass=M)`.
fn bases(signature: &str) -> Vec<&str> {
    let inner = signature.split_once('(').map_or("", |(_, inner)| inner);
    let inner = inner.strip_suffix(')').unwrap_or(inner);
    let is_other = |c: char| !c.is_alphanumeric() && c != '_' && c != '.';
    let parts = inner.split(',').map(str::trim);
    parts
        .map(|part| part.split('[').next().unwrap_or_default())
        .filter(|part| !part.is_empty() && !part.contains(is_other))
        .collect()
}

#[cfg(test)]
mod tests;
