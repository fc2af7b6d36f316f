//! Choices that depend on a seed.

use super::NUMBER;
use crate::split_mix::SplitMix;

pub(super) struct Random(SplitMix);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(SplitMix(seed))
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    pub(super) fn is_one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick(&mut self, texts: &[&'static str]) -> &'static str {
        let at = self.below(texts.len());
        texts.get(at).copied().unwrap_or_default()
    }

    /// Replaces all [`NUMBER`]s in a text with one random number.
    pub(super) fn numbered(&mut self, text: &str) -> String {
        let number = 1001 + self.below(8999);
        text.replace(NUMBER, &number.to_string())
    }
}
