//! Concurrent work with models: what it costs, whether it was interrupted, how often each model failed, and what was
//! skipped.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;
use testwright_models::spending_limit::{self, SpendingLimit};

/// Ledger of a folder: the costs of all calls, in dollars.
pub(crate) const SPENDING: &str = "spending.jsonl";

/// Number of consecutive failures after which a model is no longer used.
pub(crate) const MAX_FAILURES: u32 = 3;

/// Opens the ledger of a folder.
pub(crate) fn open_ledger(folder: &Path, max_dollars: Option<f64>) -> Result<Arc<SpendingLimit>> {
    let path = folder.join(SPENDING);
    let opened = SpendingLimit::open(&path, max_dollars);
    let opened = opened.map_err(|e| Error::io(format!("open {}", path.display()), &e))?;
    Ok(Arc::new(opened))
}

/// Returns the total cost of all calls in a folder, in dollars; `None` without a call.
pub(crate) fn spent_dollars(folder: &Path) -> Result<Option<f64>> {
    let path = folder.join(SPENDING);
    spending_limit::spent(&path).map_err(|e| Error::io(format!("read {}", path.display()), &e))
}

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
        let mut failures = lock(&self.failures);
        let times = failures.entry(model.to_owned()).or_default();
        *times = if has_failed { *times + 1 } else { 0 };
    }

    /// Skips a task if its model must not be used any more, and returns whether it does. `times` describes
    /// [`MAX_FAILURES`].
    pub(crate) fn skip_if_blocked(
        &self,
        model: &str,
        ceiling: Option<&SpendingLimit>,
        times: &str,
    ) -> bool {
        let failures = lock(&self.failures);
        let reason = if ceiling.is_some_and(SpendingLimit::is_reached) {
            "the --max-dollars budget is used up".to_owned()
        } else if failures.get(model).is_some_and(|n| *n >= MAX_FAILURES) {
            format!("the model {model} failed {times} in a row")
        } else {
            return false;
        };
        self.skip(reason);
        true
    }

    pub(crate) fn skip(&self, reason: String) {
        lock(&self.skipped).get_or_insert((0, reason)).0 += 1;
    }

    /// Returns the number of skipped tasks, and the reason of the first.
    pub(crate) fn skipped(&self) -> Option<(usize, String)> {
        lock(&self.skipped).clone()
    }
}
