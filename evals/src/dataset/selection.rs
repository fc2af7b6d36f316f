//! Selects instances of a dataset: by ids or globs, as a random sample, or as one of several shards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use sha2::{Digest as _, Sha256};
use testwright_sandboxes::plain_file;

use super::Dataset;
use crate::untrusted_text::excerpt;

/// An invalid selection of instances.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid instance selection: {}", excerpt(&.problems.join("; "), 2_000))]
pub struct SelectionError {
    /// All problems, one sentence each.
    pub problems: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum SelectorError {
    #[error("unknown instance `{id}`{}", suggestion(.nearest))]
    Unknown { id: String, nearest: Option<String> },
    #[error("`{}` is not a glob: {}", .0.glob().unwrap_or_default(), .0.kind())]
    Glob(#[source] globset::Error),
    #[error("no instance matches `{glob}`{}", suggestion(.nearest))]
    NoMatch {
        glob: String,
        nearest: Option<String>,
    },
    #[error("read {path}: {source}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
}

fn suggestion(nearest: &Option<String>) -> String {
    let nearest = nearest.as_ref();
    nearest.map_or_else(String::new, |id| format!("; did you mean `{id}`?"))
}

enum Selector {
    Id(String),
    Glob(Box<GlobMatcher>),
}

/// The instances of a dataset to use. The parts apply in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Patterns of the instances to use: ids, globs or `@FILE`, separated by commas; `None` uses all.
    pub instances: Option<String>,
    /// Patterns of the instances to leave out.
    pub exclude: Option<String>,
    /// Number of instances to draw at random; all if there are fewer.
    pub sample: Option<usize>,
    /// Seed of the sample. It depends on the ids, not on the order of the dataset.
    pub seed: u64,
    /// The only shard to use.
    pub shard: Option<Shard>,
}

/// One of several shards of a dataset. Every instance is in exactly one, which depends only on its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 1.
    number: u64,
    /// Number of shards.
    count: u64,
}

/// A text that does not name a shard.
#[derive(Debug, thiserror::Error)]
#[error("write it as K/N, with K from 1 to N")]
pub struct ShardError;

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let (number, count) = text.split_once('/').ok_or(ShardError)?;
        let parse = |part: &str| part.parse::<u64>().map_err(|_| ShardError);
        let (number, count) = (parse(number)?, parse(count)?);
        match (1..=count).contains(&number) {
            true => Ok(Shard { number, count }),
            false => Err(ShardError),
        }
    }
}

impl Shard {
    fn contains(self, id: &str) -> bool {
        let digest = Sha256::digest(id);
        let hash = digest[..8]
            .iter()
            .fold(0, |hash: u64, byte| (hash << 8) | u64::from(*byte));
        hash % self.count == self.number - 1
    }
}

/// Patterns for the ids of instances.
pub(crate) struct Patterns(Vec<Selector>);

impl Patterns {
    /// Parses patterns, each of which must match one of `ids`.
    pub(crate) fn parse(text: &str, ids: &[&str]) -> Result<Patterns, SelectionError> {
        let mut problems = Vec::new();
        let mut selectors = Vec::new();
        let mut add = |part: &str| match selector(part, ids) {
            Ok(one) => selectors.push(one),
            Err(error) => problems.push(error.to_string()),
        };
        let mut unreadable = Vec::new();
        for part in parts(text) {
            match part.strip_prefix('@').map(read_patterns) {
                None => add(&part),
                Some(Ok(lines)) => lines.iter().for_each(|line| add(line)),
                Some(Err(error)) => unreadable.push(error.to_string()),
            }
        }
        problems.extend(unreadable);
        if selectors.is_empty() && problems.is_empty() {
            problems.push("the selection is empty".to_owned());
        }
        match problems.is_empty() {
            true => Ok(Patterns(selectors)),
            false => Err(SelectionError { problems }),
        }
    }

    /// Returns whether a pattern matches the id.
    pub(crate) fn matches(&self, id: &str) -> bool {
        self.0.iter().any(|one| match one {
            Selector::Id(exact_id) => exact_id == id,
            Selector::Glob(glob) => glob.is_match(id),
        })
    }
}

impl Dataset {
    /// Selects instances, in the order of the dataset.
    ///
    /// # Errors
    ///
    /// Fails if an id is unknown, a glob is invalid or matches nothing, a file cannot be read, or the selection is
    /// empty. A shard of a selection may be empty.
    pub fn choose(&self, selection: &Selection) -> Result<Dataset, SelectionError> {
        let ids = self.instances.iter().map(|i| i.instance_id.as_str());
        let mut ids: Vec<&str> = ids.collect();
        let patterns = |text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| Patterns::parse(text, &ids)).transpose()
        };
        let chosen = patterns(&selection.instances)?;
        let excluded = patterns(&selection.exclude)?;
        ids.retain(|id| {
            chosen.as_ref().is_none_or(|those| those.matches(id))
                && !excluded.as_ref().is_some_and(|those| those.matches(id))
        });
        if let Some(sample) = selection.sample {
            let seed = selection.seed;
            ids.sort_by_cached_key(|id| Sha256::digest(format!("{seed} {id}")));
            ids.truncate(sample);
        }
        if ids.is_empty() {
            let problems = vec!["no instance is left".to_owned()];
            return Err(SelectionError { problems });
        }
        let shard = selection.shard;
        ids.retain(|id| shard.is_none_or(|shard| shard.contains(id)));
        let ids: BTreeSet<&str> = ids.into_iter().collect();
        let instances = self.instances.iter();
        let instances = instances.filter(|instance| ids.contains(instance.instance_id.as_str()));
        Ok(Dataset {
            instances: instances.cloned().collect(),
            path: self.path.clone(),
            sha256: self.sha256.clone(),
        })
    }
}

/// Maximum bytes of a file of patterns.
const MAX_PATTERNS: u64 = 16 << 20;

/// Reads a file of patterns, one per line. Blank lines and lines that start with `#` are skipped.
fn read_patterns(path: &str) -> Result<Vec<String>, SelectorError> {
    let failed = |source| SelectorError::File {
        path: PathBuf::from(path),
        source,
    };
    let bytes = plain_file::read_user_file(Path::new(path), MAX_PATTERNS).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

fn selector(part: &str, ids: &[&str]) -> Result<Selector, SelectorError> {
    if ids.contains(&part) {
        return Ok(Selector::Id(part.to_owned()));
    }
    if !part.contains(['*', '?', '[', '{']) {
        let nearest = (ids.iter()).min_by_key(|id| strsim::damerau_levenshtein(part, id));
        return Err(SelectorError::Unknown {
            id: part.to_owned(),
            nearest: nearest.map(|id| (*id).to_owned()),
        });
    }
    let glob = GlobBuilder::new(part)
        .literal_separator(false)
        .build()
        .map_err(SelectorError::Glob)?
        .compile_matcher();
    if ids.iter().any(|id| glob.is_match(id)) {
        return Ok(Selector::Glob(Box::new(glob)));
    }
    Err(SelectorError::NoMatch {
        glob: part.to_owned(),
        nearest: near_glob(part, ids),
    })
}

/// Returns the id whose start is most like the text of a glob before its first wildcard, if any is similar.
fn near_glob(glob: &str, ids: &[&str]) -> Option<String> {
    let text = glob.split(['*', '?', '[', '{']).next()?;
    let length = text.chars().count();
    let distance = |id: &str| {
        let start: String = id.chars().take(length).collect();
        strsim::damerau_levenshtein(text, &start)
    };
    let nearest = ids.iter().min_by_key(|id| distance(id))?;
    (distance(nearest) * 3 <= length && length > 0).then(|| (*nearest).to_owned())
}

/// Splits at commas outside of braces: `{a,b}-*` is one glob.
fn parts(pattern: &str) -> Vec<String> {
    let mut depth = 0usize;
    let parted = pattern.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parted
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
