//! Explains that a file does not define a name.

use std::collections::BTreeSet;

use crate::python::{Module, flatten};
use crate::similarity::ranked;
use crate::tool::{ToolError, refusal};

/// Returns the refusal for a name that a file does not define.
pub(super) fn unknown(module: &Module, path: &str, name: &str) -> ToolError {
    let outline = module.outline();
    let all = flatten(&outline);
    let names: BTreeSet<&str> = all.iter().map(|d| d.qualified.as_str()).collect();
    let near = nearest(names, name);
    if !near.is_empty() {
        return refusal!(
            "{path} defines no `{name}`. The nearest are: {}.",
            near.join(", ")
        );
    }
    let outer = name.rsplit_once('.').map_or("", |(outer, _)| outer);
    let others: Vec<&str> = (all.iter().map(|d| d.qualified.as_str()))
        .filter(|q| q.rsplit_once('.').map_or("", |(outer, _)| outer) == outer)
        .take(5)
        .collect();
    if others.is_empty() {
        return refusal!("{path} defines no `{name}`.");
    }
    let others = others.join(", ");
    refusal!("{path} defines no `{name}`; it defines {others} …")
}

fn nearest<'a>(names: BTreeSet<&'a str>, target: &str) -> Vec<&'a str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let target_last = last(target);
    let score = |name: &str| {
        let same = f64::from(u8::from(last(name) == target_last));
        let spelled = strsim::jaro_winkler(&last(name), &target_last);
        spelled + same + strsim::normalized_levenshtein(name, target) / 4.0
    };
    ranked(names, score, 0.85).take(5).collect()
}
