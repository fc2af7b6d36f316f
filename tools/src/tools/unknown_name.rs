//! Explains that a file does not define a name.

use crate::python::{Module, flatten};
use crate::tool::{ToolError, refusal};

/// Returns the refusal for a name that a file does not define.
pub(super) fn unknown(module: &Module, path: &str, name: &str) -> ToolError {
    let outline = module.outline();
    let all = flatten(&outline);
    let near = nearest(all.iter().map(|d| d.qualified.as_str()), name);
    if !near.is_empty() {
        return refusal!(
            "{path} defines no `{name}`. The nearest are: {}.",
            near.join(", ")
        );
    }
    let outer = name.rsplit_once('.').map_or("", |(outer, _)| outer);
    let mut others: Vec<&str> = all
        .iter()
        .map(|d| d.qualified.as_str())
        .filter(|q| q.rsplit_once('.').map_or("", |(outer, _)| outer) == outer)
        .collect();
    others.truncate(5);
    ToolError::Refused(match others.as_slice() {
        [] => format!("{path} defines no `{name}`."),
        some => format!(
            "{path} defines no `{name}`; it defines {} …",
            some.join(", ")
        ),
    })
}

fn nearest<'a>(names: impl Iterator<Item = &'a str>, target: &str) -> Vec<String> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let target_last = last(target);
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| {
            let same = f64::from(u8::from(last(name) == target_last));
            let score = strsim::jaro_winkler(&last(name), &target_last);
            (
                score + same + strsim::normalized_levenshtein(name, target) / 4.0,
                name,
            )
        })
        .filter(|(score, _)| *score > 0.85)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, name)| *name);
    scored
        .into_iter()
        .take(5)
        .map(|(_, name)| name.to_owned())
        .collect()
}
