//! Which instances of a dataset are meant: ids, or globs of ids.

use globset::{GlobBuilder, GlobMatcher};

use super::Dataset;
use crate::foreign_text::excerpt;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("choose instances: {}", excerpt(&.problems.join("; "), 2_000))]
pub struct SelectionError {
    /// Everything that is wrong, one sentence each.
    pub problems: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum SelectorError {
    #[error("there is no `{0}`")]
    Unknown(String),
    #[error("there is no `{id}`; the nearest is `{nearest}`")]
    Misspelt { id: String, nearest: String },
    #[error("`{}` is not a glob: {}", .0.glob().unwrap_or_default(), .0.kind())]
    Glob(#[source] globset::Error),
    #[error("no instance fits `{0}`")]
    NoMatch(String),
}

enum Selector {
    Id(String),
    Glob(Box<GlobMatcher>),
}

impl Dataset {
    /// The instances that fit any of the ids or globs, which commas part; in the order of the dataset. An id that is not
    /// there, and a glob that fits nothing, is an error.
    pub fn select(&self, pattern: &str) -> Result<Dataset, SelectionError> {
        let mut problems = Vec::new();
        let mut selectors = Vec::new();
        for part in parts(pattern) {
            match self.selector(&part) {
                Ok(one) => selectors.push(one),
                Err(error) => problems.push(error.to_string()),
            }
        }
        if selectors.is_empty() && problems.is_empty() {
            problems.push("there is no id".to_owned());
        }
        if !problems.is_empty() {
            return Err(SelectionError { problems });
        }
        let instances = self.instances.iter().filter(|instance| {
            let id = &instance.instance_id;
            selectors.iter().any(|one| match one {
                Selector::Id(wanted) => wanted == id,
                Selector::Glob(glob) => glob.is_match(id),
            })
        });
        Ok(Dataset {
            path: self.path.clone(),
            instances: instances.cloned().collect(),
        })
    }

    fn selector(&self, part: &str) -> Result<Selector, SelectorError> {
        if self.get(part).is_some() {
            return Ok(Selector::Id(part.to_owned()));
        }
        if !part.contains(['*', '?', '[', '{']) {
            return Err(match self.nearest(part) {
                Some(nearest) => SelectorError::Misspelt {
                    id: part.to_owned(),
                    nearest: nearest.to_owned(),
                },
                None => SelectorError::Unknown(part.to_owned()),
            });
        }
        let glob = GlobBuilder::new(part)
            .literal_separator(false)
            .build()
            .map_err(SelectorError::Glob)?
            .compile_matcher();
        let mut ids = self.instances.iter().map(|i| i.instance_id.as_str());
        if ids.any(|id| glob.is_match(id)) {
            Ok(Selector::Glob(Box::new(glob)))
        } else {
            Err(SelectorError::NoMatch(part.to_owned()))
        }
    }

    fn nearest(&self, id: &str) -> Option<&str> {
        let ids = self.instances.iter().map(|i| i.instance_id.as_str());
        ids.min_by_key(|other| strsim::damerau_levenshtein(id, other))
    }
}

/// Commas part, but not those between braces: `{a,b}-*` is one glob.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn dataset() -> Dataset {
        let ids = [
            "sympy__sympy-1",
            "sympy__sympy-12",
            "psf__requests-1",
            "pallets__flask-7",
        ];
        let instances = ids.map(|id| {
            serde_json::from_value(json!({
                "instance_id": id, "repo": "a/b", "base_commit": "0123abc", "problem_statement": "It"
            }))
            .unwrap()
        });
        Dataset {
            path: PathBuf::new(),
            instances: instances.into(),
        }
    }

    fn chosen(pattern: &str) -> Result<Vec<String>, String> {
        let chosen = dataset().select(pattern).map_err(|e| e.to_string())?;
        Ok(chosen
            .instances
            .into_iter()
            .map(|i| i.instance_id)
            .collect())
    }

    #[test]
    fn ids_and_globs_in_the_order_of_the_dataset() {
        assert_eq!(
            chosen("psf__requests-1, sympy__sympy-1,").unwrap(),
            ["sympy__sympy-1", "psf__requests-1"]
        );
        assert_eq!(
            chosen("sympy*,sympy__sympy-12").unwrap(),
            ["sympy__sympy-1", "sympy__sympy-12"]
        );
        assert_eq!(
            chosen("{psf,pallets}__*-?").unwrap(),
            ["psf__requests-1", "pallets__flask-7"]
        );
        assert_eq!(chosen("*").unwrap().len(), 4);
    }

    #[test]
    fn what_is_not_there_is_told_with_the_nearest() {
        assert_eq!(
            chosen("psf__request-1,*zzz*,sympy__sympy-1").unwrap_err(),
            "choose instances: there is no `psf__request-1`; the nearest is `psf__requests-1`; no instance fits `*zzz*`"
        );
        assert!(chosen("a[").unwrap_err().contains("`a[` is not a glob"));
        assert_eq!(
            chosen(" , ").unwrap_err(),
            "choose instances: there is no id"
        );
    }
}
