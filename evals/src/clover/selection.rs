//! Seeded random draws, which are the same on every machine.

use crate::cases::context::digest;

/// Returns a number strictly between 0 and 1, determined by the seed and the names.
pub fn unit(seed: u64, names: &[&str]) -> f64 {
    let first = digest(seed, names).first_chunk::<8>().copied();
    let first = first.unwrap_or_default();
    let bits = u64::from_le_bytes(first) >> 11;
    (bits as f64 + 0.5) / (1u64 << 53) as f64
}

/// Returns items in a random order without replacement. The probability of each draw is proportional to the weights of
/// the remaining items (Efraimidis and Spirakis 2006).
pub fn weighted_shuffle<T>(
    seed: u64,
    items: Vec<T>,
    name: impl Fn(&T) -> String,
    weight: impl Fn(&T) -> f64,
) -> Vec<T> {
    let mut keyed: Vec<(f64, String, T)> = items
        .into_iter()
        .map(|item| {
            let name = name(&item);
            let wait = -unit(seed, &["draw", &name]).ln() / weight(&item).max(f64::MIN_POSITIVE);
            (wait, name, item)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    keyed.into_iter().map(|(_, _, item)| item).collect()
}

#[cfg(test)]
mod tests;
