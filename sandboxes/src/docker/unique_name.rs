//! Names of what this process makes in an engine.

use std::sync::atomic::{AtomicU64, Ordering};

/// A name that no other process, here or on another machine, is likely to take at the same moment.
pub(super) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map(|d| d.as_micros()).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{now:x}-{count}", std::process::id())
}
