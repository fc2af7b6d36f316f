//! Ranks names by how well they match a mistyped one.

/// Returns the names with a score above `min_score`, best first. Of equal scores, the earlier name comes first.
pub(crate) fn ranked<T: AsRef<str>>(
    names: impl IntoIterator<Item = T>,
    score: impl Fn(&str) -> f64,
    min_score: f64,
) -> impl Iterator<Item = T> {
    let names = names.into_iter().map(|name| (score(name.as_ref()), name));
    let mut scored: Vec<(f64, T)> = names.filter(|(score, _)| *score > min_score).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, name)| name)
}

/// Returns the three names that are spelled most like `target`, best first.
pub(crate) fn most_similar<T: AsRef<str>>(
    names: impl IntoIterator<Item = T>,
    target: &str,
) -> Vec<T> {
    let score = |name: &str| strsim::jaro_winkler(target, name);
    ranked(names, score, f64::NEG_INFINITY).take(3).collect()
}
