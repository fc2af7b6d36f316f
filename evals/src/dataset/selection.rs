//! Selects instances of a dataset by ids or globs.

use globset::{GlobBuilder, GlobMatcher};

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
    #[error("unknown instance `{0}`")]
    Unknown(String),
    #[error("unknown instance `{id}`; did you mean `{nearest}`?")]
    Misspelt { id: String, nearest: String },
    #[error("`{}` is not a glob: {}", .0.glob().unwrap_or_default(), .0.kind())]
    Glob(#[source] globset::Error),
    #[error("no instance matches `{0}`")]
    NoMatch(String),
}

enum Selector {
    Id(String),
    Glob(Box<GlobMatcher>),
}

impl Dataset {
    /// Selects the instances that match any of the comma-separated ids or globs, in the order of the dataset.
    ///
    /// # Errors
    ///
    /// Fails if an id is unknown, a glob is invalid or matches nothing, or the selection is empty.
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
            problems.push("the selection is empty".to_owned());
        }
        if !problems.is_empty() {
            return Err(SelectionError { problems });
        }
        let instances = self.instances.iter().filter(|instance| {
            let id = &instance.instance_id;
            selectors.iter().any(|one| match one {
                Selector::Id(exact_id) => exact_id == id,
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
    fn selection_keeps_the_order_of_the_dataset() {
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
    fn unknown_id_suggests_the_nearest() {
        assert_eq!(
            chosen("psf__request-1,*zzz*,sympy__sympy-1").unwrap_err(),
            "invalid instance selection: unknown instance `psf__request-1`; did you mean `psf__requests-1`?; no instance matches `*zzz*`"
        );
        assert!(chosen("a[").unwrap_err().contains("`a[` is not a glob"));
        assert_eq!(
            chosen(" , ").unwrap_err(),
            "invalid instance selection: the selection is empty"
        );
    }
}
