//! Concurrent work with models: whether it was interrupted, how often each model failed, and what was skipped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use testwright_models::spending_limit::SpendingLimit;

/// Number of consecutive failures after which a model is no longer used.
pub(crate) const MAX_FAILURES: u32 = 3;

/// State that concurrent tasks share.
#[derive(Default)]
pub(crate) struct ModelWork {
    interrupted: AtomicBool,
    /// Consecutive failures by model name.
    failures: Mutex<BTreeMap<String, u32>>,
    /// Number of skipped tasks, and the reason of the first.
    skipped: Mutex<Option<(usize, String)>>,
}

impl ModelWork {
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
    }

    /// Records whether the last use of a model failed.
    pub(crate) fn note(&self, model: &str, has_failed: bool) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let times = failures.entry(model.to_owned()).or_default();
        *times = if has_failed { *times + 1 } else { 0 };
    }

    /// Returns why a model must not be used any more. `times` describes [`MAX_FAILURES`].
    pub(crate) fn blocked_reason(
        &self,
        model: &str,
        ceiling: Option<&SpendingLimit>,
        times: &str,
    ) -> Option<String> {
        if ceiling.is_some_and(SpendingLimit::is_reached) {
            return Some("the --max-dollars budget is used up".to_owned());
        }
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let has_failed = failures.get(model).is_some_and(|n| *n >= MAX_FAILURES);
        has_failed.then(|| format!("the model {model} failed {times} in a row"))
    }

    pub(crate) fn skip(&self, reason: String) {
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.get_or_insert((0, reason)).0 += 1;
    }

    /// Returns the number of skipped tasks, and the reason of the first.
    pub(crate) fn skipped(&self) -> Option<(usize, String)> {
        let skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.clone()
    }
}
