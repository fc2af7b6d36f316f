//! Finds names that are used but not defined anywhere.
//!
//! A false alarm would refuse a good test, so every doubt is resolved in favour of the code. Star imports, `exec` and
//! `globals()` silence the whole file. Annotations and strings are ignored, and so is the order of statements. Code
//! under `try … except NameError` may use any name.

mod walk;

use std::collections::HashSet;
use std::ops::Range;

use super::Module;
use super::builtins::is_builtin;
use walk::Walk;

/// A name that is used but not defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndefinedName {
    /// Name as written in the code.
    pub name: String,
    /// Line of its first use, from 1.
    pub line: usize,
}

/// Returns the undefined names of a module, each once, in order of first use.
pub fn undefined_names(module: &Module) -> Vec<UndefinedName> {
    let walk = Walk::over(module, false);
    if walk.anything_goes {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut undefined = Vec::new();
    for used in walk.uses.iter().filter(|used| !used.guarded) {
        let is_bound = walk.binder(used.name, used.scope).is_some();
        if !is_bound && !is_builtin(used.name) && seen.insert(used.name) {
            undefined.push(UndefinedName {
                name: used.name.to_owned(),
                line: used.line,
            });
        }
    }
    undefined
}

/// Names that a range of a module takes from the module level, annotations included.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OuterNames {
    /// Names bound at module level by an import, an assignment or a definition.
    pub bound: HashSet<String>,
    /// Whether it also uses an unbound name, which may come from a star import.
    pub others: bool,
}

/// Returns the names that a byte range of a module takes from outside its functions.
pub fn outer_names(module: &Module, stretch: &Range<usize>) -> OuterNames {
    let walk = Walk::over(module, true);
    let mut names = OuterNames::default();
    for used in walk.uses.iter().filter(|used| stretch.contains(&used.at)) {
        match walk.binder(used.name, used.scope) {
            Some(0) => {
                names.bound.insert(used.name.to_owned());
            }
            Some(_) => {}
            None => names.others |= !is_builtin(used.name),
        }
    }
    names
}

/// A use of a name that no enclosing function binds.
pub struct OuterUse<'m> {
    /// Name as written in the code.
    pub name: &'m str,
    /// Byte offset.
    pub at: usize,
    /// Whether a class body binds it; otherwise the module does, or nothing visible.
    pub is_member: bool,
}

/// Returns all uses of names that are not local to a function, in order of position, including those in annotations.
pub fn outer_uses(module: &Module) -> Vec<OuterUse<'_>> {
    let walk = Walk::over(module, true);
    let uses = walk.uses.iter();
    let mut outer_uses: Vec<OuterUse<'_>> = uses
        .filter_map(|used| {
            let binder = walk.binder(used.name, used.scope).unwrap_or(0);
            let is_member = binder != 0;
            (!is_member || walk.is_class(binder)).then_some(OuterUse {
                name: used.name,
                at: used.at,
                is_member,
            })
        })
        .collect();
    outer_uses.sort_by_key(|used| used.at);
    outer_uses
}

/// Returns the undefined names that `before` did not have.
pub fn new_undefined_names(before: Option<&Module>, after: &Module) -> Vec<UndefinedName> {
    let old: HashSet<String> = before
        .map(|m| undefined_names(m).into_iter().map(|u| u.name).collect())
        .unwrap_or_default();
    let mut new = undefined_names(after);
    new.retain(|u| !old.contains(&u.name));
    new
}

#[cfg(test)]
mod tests;
