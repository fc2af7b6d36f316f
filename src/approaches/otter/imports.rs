//! Import repair: names that nothing binds, and imports of the model's own guessing, looked up in the repository. A module
//! found there takes the guess's place; else the guess stays.

use std::collections::BTreeSet;

use regex::Regex;
use testwright_tools::python::{Binding, Module, import_edit, new_undefined_names};

use super::repository::Repository;

/// The text with its imports mended, and what was done, one line each.
pub fn repair(repository: &Repository, before: &str, after: &str) -> (String, Vec<String>) {
    let mut text = after.to_owned();
    let mut done = Vec::new();
    let (old, new) = (Module::parse(before), Module::parse(after));
    let known: BTreeSet<String> = bindings(&old).map(|binding| binding.statement()).collect();
    let guessed: Vec<Binding> = bindings(&new)
        .filter(|binding| !binding.module.is_empty() && !known.contains(&binding.statement()))
        .collect();
    for guess in guessed {
        if !repository.is_own(&guess.module) || repository.defines(&guess.module, &guess.name) {
            continue;
        }
        if let Some(module) = repository.module_of(&guess.name) {
            let wrong = format!("from {} import {}", guess.module, guess.name);
            let right = format!("from {module} import {}", guess.name);
            if text.contains(&wrong) {
                text = text.replacen(&wrong, &right, 1);
                done.push(format!("`{wrong}` is `{right}`"));
            }
        }
    }
    let now = Module::parse(text.clone());
    for name in new_undefined_names(Some(&old), &now) {
        let Some(module) = repository.module_of(&name.name) else {
            continue;
        };
        let statement = format!("from {module} import {}", name.name);
        let Ok(wanted) = import_edit::read_imports(std::slice::from_ref(&statement)) else {
            continue;
        };
        let module = Module::parse(text.clone());
        if let Ok(added) =
            import_edit::add_imports(&module, &wanted, &|name| repository.is_own(name))
        {
            text = added.text;
            done.push(format!("added `{statement}`"));
        }
    }
    (text, done)
}

fn bindings(module: &Module) -> impl Iterator<Item = Binding> {
    let imports = module.imports().into_iter();
    imports.flat_map(|import| import.bindings)
}

impl Repository {
    /// The path of a module's file, if the repository has it.
    fn file_of(&self, module: &str) -> Option<String> {
        let path = module.replace('.', "/");
        let names = [format!("{path}.py"), format!("{path}/__init__.py")];
        let roots = ["", "src/", "lib/"];
        let mut paths = roots
            .iter()
            .flat_map(|root| names.iter().map(move |name| format!("{root}{name}")));
        paths.find(|path| self.tree.contains(path))
    }

    /// Is it of a package of the repository?
    fn is_own(&self, module: &str) -> bool {
        let package = module.split('.').next().unwrap_or(module);
        self.file_of(package).is_some()
    }

    fn defines(&self, module: &str, name: &str) -> bool {
        let submodule = format!("{module}.{name}");
        if self.file_of(&submodule).is_some() {
            return true;
        }
        let text = self.file_of(module).and_then(|path| self.text(&path));
        text.is_some_and(|text| binds(&text, name))
    }

    /// The module that defines a name at its top level; of several the shortest.
    fn module_of(&self, name: &str) -> Option<String> {
        let definition = Regex::new(&format!(
            r"(?m)^(class|def|async def) {}\b|^{0}\s*(:.*)?=",
            regex::escape(name)
        ))
        .ok()?;
        let modules = self.sources.iter().filter_map(|path| {
            let module = module_name(path)?;
            let text = self.text(path)?;
            definition.is_match(&text).then_some(module)
        });
        modules.min_by_key(|module| (module.matches('.').count(), module.clone()))
    }
}

/// Does a file bind this name, by a definition or by an import?
fn binds(text: &str, name: &str) -> bool {
    let module = Module::parse(text);
    let is_defined = module
        .outline()
        .iter()
        .any(|definition| definition.name == name);
    let is_assigned = module
        .assignments()
        .iter()
        .any(|assignment| assignment.names.iter().any(|known| known == name));
    // Of a star nobody knows.
    let is_imported = |binding: Binding| binding.local == name || binding.name == "*";
    is_defined || is_assigned || bindings(&module).any(is_imported)
}

/// `None` for a file that nothing imports.
fn module_name(path: &str) -> Option<String> {
    let path = path
        .strip_prefix("src/")
        .or_else(|| path.strip_prefix("lib/"))
        .unwrap_or(path);
    let path = path.strip_suffix(".py")?;
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    path.split('/').all(is_name).then(|| path.replace('/', "."))
}
