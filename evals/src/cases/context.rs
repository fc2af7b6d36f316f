//! Oracle context (CLOVER, arXiv 2502.08806): which files of a repository tell most about a test, and as many of them as a
//! budget of tokens allows.
//!
//! A test is run as it is and, in the same place, emptied (see [`super::empty_test`]). Files with a line that of all tests of
//! the file only this one runs tell most; files that run the same lines for the empty test tell least.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use testwright_tools::outcomes::report::is_of;

use super::{CaseCoverage, Lines};

/// How much a file tells about a test; what tells most comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextClass {
    /// Q_peer: of all tests in the same file only this one runs some line of it.
    Peer,
    /// Q': the test runs other lines of it than an empty test does.
    Other,
    /// Q_repo: an empty test in the same place runs the same lines.
    Repository,
}

/// Lines that of all tests only this one runs (`path::Class::test_x`, all of its parameters together). `contexts` are those
/// of a run of all tests of the file.
pub fn unique_lines(contexts: &BTreeMap<String, Lines>, test: &str) -> Lines {
    let mut own = Lines::new();
    let mut others = Lines::new();
    for (id, lines) in contexts {
        let side = if is_of(id, test) {
            &mut own
        } else {
            &mut others
        };
        for (path, lines) in lines {
            side.entry(path.clone()).or_default().extend(lines);
        }
    }
    for (path, lines) in &mut own {
        if let Some(others) = others.get(path) {
            lines.retain(|line| !others.contains(line));
        }
    }
    own.retain(|_, lines| !lines.is_empty());
    own
}

/// The files that the test runs something of, by what they tell. `base` is the test as it is, `empty` the empty one,
/// `unique` its [`unique_lines`].
pub fn classes(
    base: &CaseCoverage,
    empty: &CaseCoverage,
    unique: &Lines,
) -> BTreeMap<String, ContextClass> {
    let class = |path: &String| {
        if unique.contains_key(path) {
            return ContextClass::Peer;
        }
        let of_empty = empty.files.get(path);
        let is_same = of_empty.is_some_and(|lines| lines.hit == base.files[path].hit);
        match is_same {
            true => ContextClass::Repository,
            false => ContextClass::Other,
        }
    };
    let files = base.files.keys().map(|path| (path.clone(), class(path)));
    files.collect()
}

/// Counts tokens. The name ends up in the data.
pub trait Tokenizer: Sync {
    fn name(&self) -> &str;

    fn count(&self, text: &str) -> usize;

    /// The whole lines from the begin of a text that take at most so many tokens.
    fn first<'t>(&self, text: &'t str, most: usize) -> &'t str;
}

/// A file as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFile {
    pub path: String,
    /// `None` of a file that the task names.
    pub class: Option<ContextClass>,
    /// Shorter than the file where the budget ended in it.
    pub text: String,
    pub is_whole: bool,
    /// Its path among them.
    pub tokens: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OracleContext {
    pub tokenizer: String,
    pub budget: usize,
    pub tokens: usize,
    pub files: Vec<ContextFile>,
}

/// Paths in the order in which they are shown: those that the task names, then class by class, within a class at random.
/// The order follows from the seed and the id alone.
pub fn order(
    classes: &BTreeMap<String, ContextClass>,
    named: &[String],
    seed: u64,
    id: &str,
) -> Vec<(String, Option<ContextClass>)> {
    let mut first = BTreeSet::new();
    let named = named.iter().filter(|path| first.insert(path.as_str()));
    let mut ordered: Vec<_> = named.map(|path| (path.clone(), None)).collect();
    let mut rest: Vec<(ContextClass, [u8; 32], &String)> = classes
        .iter()
        .filter(|(path, _)| !first.contains(path.as_str()))
        .map(|(path, class)| (*class, draw(seed, id, path), path))
        .collect();
    rest.sort();
    ordered.extend(
        rest.into_iter()
            .map(|(class, _, path)| (path.clone(), Some(class))),
    );
    ordered
}

fn draw(seed: u64, id: &str, path: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    for part in [id, path] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// As many files as take at most so many tokens together; the last one is cut at the end of a line. Files that the task
/// names are there whole, always. `read` gives a file's text; files without one are left out.
pub fn fill(
    order: &[(String, Option<ContextClass>)],
    budget: usize,
    tokenizer: &dyn Tokenizer,
    read: &mut dyn FnMut(&str) -> Option<String>,
) -> OracleContext {
    let mut context = OracleContext {
        tokenizer: tokenizer.name().to_owned(),
        budget,
        tokens: 0,
        files: Vec::new(),
    };
    for (path, class) in order {
        let Some(text) = read(path).filter(|text| !text.trim().is_empty()) else {
            continue;
        };
        let of_path = tokenizer.count(&format!("{path}\n"));
        let left = match class {
            None => Some(usize::MAX),
            Some(_) => budget.checked_sub(context.tokens + of_path),
        };
        let Some(room) = left else {
            break;
        };
        let shown = match tokenizer.count(&text) <= room {
            true => text.as_str(),
            false => tokenizer.first(&text, room),
        };
        if shown.is_empty() {
            break;
        }
        let file = ContextFile {
            path: path.clone(),
            class: *class,
            is_whole: shown.len() == text.len(),
            tokens: of_path + tokenizer.count(shown),
            text: shown.to_owned(),
        };
        context.tokens += file.tokens;
        let is_whole = file.is_whole;
        context.files.push(file);
        if !is_whole {
            break;
        }
    }
    context
}

#[cfg(test)]
mod tests;
