//! Oracle context (CLOVER, arXiv 2502.08806): ranks the files of a repository by relevance to a test, and selects as
//! many as fit into a token budget.
//!
//! A test runs once as it is and once emptied in the same place (see [`mod@super::empty_test`]). A file is most relevant if
//! the test runs a line of it that no other test of the test file runs. It is least relevant if the empty test runs the
//! same lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{CaseCoverage, Lines};

/// Relevance of a file to a test, most relevant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextClass {
    /// Q_peer: the test runs a line of the file that no other test in the same test file runs.
    Peer,
    /// Q': the test runs different lines of the file than an empty test does.
    Other,
    /// Q_repo: an empty test in the same place runs the same lines of the file.
    Repository,
}

/// Returns the relevance of each file that the test runs. `base` is the run of the test, `empty` that of the empty
/// test, and `unique` holds the lines that no other test of the file runs.
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

/// Counts tokens.
pub trait Tokenizer: Sync {
    /// Name of the tokenizer, as recorded in the data.
    fn name(&self) -> &str;

    /// Returns the number of tokens of a text.
    fn count(&self, text: &str) -> usize;

    /// Returns the longest prefix of whole lines that takes at most `most` tokens.
    fn first<'t>(&self, text: &'t str, most: usize) -> &'t str;
}

/// A file shown in the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFile {
    /// Path in the repository.
    pub path: String,
    /// Text of the file, cut off if the budget ran out.
    pub text: String,
    /// Whether the text is the whole file.
    pub is_whole: bool,
}

/// Orders the paths to show: files that the task names first, then by class, and at random within a class. The order
/// depends only on the seed and the id.
pub fn order(
    classes: &BTreeMap<String, ContextClass>,
    named_paths: &[&str],
    seed: u64,
    id: &str,
) -> Vec<(String, Option<ContextClass>)> {
    let mut first = BTreeSet::new();
    let unique_paths = named_paths.iter().filter(|path| first.insert(**path));
    let mut ordered: Vec<_> = unique_paths
        .map(|path| ((*path).to_owned(), None))
        .collect();
    let mut rest: Vec<(ContextClass, [u8; 32], &String)> = classes
        .iter()
        .filter(|(path, _)| !first.contains(path.as_str()))
        .map(|(path, class)| (*class, digest(seed, &[id, path]), path))
        .collect();
    rest.sort();
    ordered.extend(
        rest.into_iter()
            .map(|(class, _, path)| (path.clone(), Some(class))),
    );
    ordered
}

/// Returns random bytes that depend only on a seed and on names.
pub(crate) fn digest(seed: u64, names: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    for name in names {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
    }
    hash.finalize().into()
}

/// Fills the budget with files in order, and cuts the last one at the end of a line. Each file takes the tokens of its
/// path and text, and `frame` tokens for what is around them. Files that the task names are always included in full.
/// `read` returns the text of a file; files without text are skipped.
pub fn fill(
    order: &[(String, Option<ContextClass>)],
    budget: usize,
    frame: usize,
    tokenizer: &dyn Tokenizer,
    read: &mut dyn FnMut(&str) -> Option<String>,
) -> Vec<ShownFile> {
    let mut files = Vec::new();
    let mut tokens = 0;
    for (path, class) in order {
        let Some(text) = read(path).filter(|text| !text.trim().is_empty()) else {
            continue;
        };
        tokens += frame + tokenizer.count(&format!("{path}\n"));
        let remaining_tokens = match class {
            None => Some(usize::MAX),
            Some(_) => budget.checked_sub(tokens),
        };
        let Some(room) = remaining_tokens else {
            break;
        };
        let excerpt = match tokenizer.count(&text) <= room {
            true => text.as_str(),
            false => tokenizer.first(&text, room),
        };
        if excerpt.is_empty() {
            break;
        }
        tokens += tokenizer.count(excerpt);
        let is_whole = excerpt.len() == text.len();
        files.push(ShownFile {
            path: path.clone(),
            text: excerpt.to_owned(),
            is_whole,
        });
        if !is_whole {
            break;
        }
    }
    files
}

#[cfg(test)]
mod tests;
