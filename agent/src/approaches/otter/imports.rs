//! Import repair: looks up unbound names, and imports that the model guessed, in the repository. A module
//! found there replaces the guess; otherwise the guess stays.

use std::collections::BTreeSet;

use regex::Regex;
use testwright_tools::python::{
    Binding, Module, import_edit, is_standard_library, new_undefined_names,
};

use super::repository::Repository;

/// Returns the text with repaired imports, and one line per repair.
pub(super) fn repair(repository: &Repository, before: &str, after: &str) -> (String, Vec<String>) {
    let mut text = after.to_owned();
    let mut done = Vec::new();
    let (old, new) = (Module::parse(before), Module::parse(after));
    let old_imports: BTreeSet<String> = bindings(&old).map(|binding| binding.statement()).collect();
    let guessed: Vec<Binding> = bindings(&new)
        .filter(|binding| !binding.module.is_empty() && !old_imports.contains(&binding.statement()))
        .collect();
    for guess in guessed {
        if !repository.may_be_wrong(&guess) {
            continue;
        }
        let Some(module) = repository.module_of(&guess.name) else {
            continue;
        };
        let right = Binding {
            module,
            ..guess.clone()
        };
        let parsed = Module::parse(text.as_str());
        let changed =
            import_edit::replace_binding(&parsed, &guess, &right, &|name| repository.is_own(name));
        if let Some(changed) = changed {
            text = changed;
            let (wrong, right) = (guess.statement(), right.statement());
            done.push(format!("`{wrong}` is `{right}`"));
        }
    }
    let now = Module::parse(text.clone());
    for name in new_undefined_names(Some(&old), &now) {
        let Some(module) = repository.module_of(&name.name) else {
            continue;
        };
        let statement = format!("from {module} import {}", name.name);
        let Ok(imports) = import_edit::read_imports(std::slice::from_ref(&statement)) else {
            continue;
        };
        let module = Module::parse(text.clone());
        if let Ok(added) =
            import_edit::add_imports(&module, &imports, &|name| repository.is_own(name))
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
    /// Returns the path of a module's file, if the repository has it.
    fn file_of(&self, module: &str) -> Option<String> {
        let path = module.replace('.', "/");
        let names = [format!("{path}.py"), format!("{path}/__init__.py")];
        let roots = ["", "src/", "lib/"];
        let mut paths = roots
            .iter()
            .flat_map(|root| names.iter().map(move |name| format!("{root}{name}")));
        paths.find(|path| self.paths.contains(path))
    }

    /// Returns whether an import is neither in the repository nor apparently installed. Imports that the
    /// repository uses itself count as installed.
    fn may_be_wrong(&self, guess: &Binding) -> bool {
        if guess.name == "*" || guess.module.starts_with('.') {
            return false;
        }
        let is_known_module = || {
            is_standard_library(&guess.module)
                || top(&guess.module) == "pytest"
                || self.is_used(&guess.module)
        };
        match self.is_own(&guess.module) {
            true => !self.defines(&guess.module, &guess.name),
            false => !is_known_module(),
        }
    }

    /// Returns whether a file of the repository imports from the module's package.
    fn is_used(&self, module: &str) -> bool {
        let package = regex::escape(top(module));
        let Ok(import) = Regex::new(&format!(r"(?m)^[ \t]*(from|import)[ \t]+{package}\b")) else {
            return false;
        };
        let mut files = self.paths.iter().filter(|path| path.ends_with(".py"));
        files.any(|path| self.text(path).is_some_and(|text| import.is_match(&text)))
    }

    /// Returns whether the module belongs to a package of the repository.
    fn is_own(&self, module: &str) -> bool {
        self.file_of(top(module)).is_some()
    }

    fn defines(&self, module: &str, name: &str) -> bool {
        let submodule = format!("{module}.{name}");
        if self.file_of(&submodule).is_some() {
            return true;
        }
        let text = self.file_of(module).and_then(|path| self.text(&path));
        text.is_some_and(|text| binds(&text, name))
    }

    /// Returns the module that defines a name at its top level; the shortest if there are several.
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

/// Returns the top-level package of a module.
fn top(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// Returns whether a file binds this name, by a definition or by an import.
fn binds(text: &str, name: &str) -> bool {
    let module = Module::parse(text);
    let is_defined = (module.outline().iter()).any(|definition| definition.name == name);
    let mut targets = (module.assignments().into_iter()).flat_map(|assignment| assignment.names);
    let is_assigned = targets.any(|target| target == name);
    // A star import may bind any name.
    let is_imported = |binding: Binding| binding.local == name || binding.name == "*";
    is_defined || is_assigned || bindings(&module).any(is_imported)
}

/// Returns the module's name; `None` for a file that nothing imports.
fn module_name(path: &str) -> Option<String> {
    let inside = ["src/", "lib/"]
        .iter()
        .find_map(|root| path.strip_prefix(root));
    let path = inside.unwrap_or(path);
    let path = path.strip_suffix(".py")?;
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    path.split('/').all(is_name).then(|| path.replace('/', "."))
}

#[cfg(test)]
mod tests;
