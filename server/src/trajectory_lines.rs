//! Reads trajectories from the store.

use crate::store::{JobId, Store};
use testwright_config::error::Result;

/// Number of events read at a time.
const PAGE: u32 = 500;

/// Returns the trajectory of a run in the format of `trajectory.jsonl`.
pub(crate) async fn trajectory_lines(store: &Store, id: &JobId) -> Result<String> {
    let mut lines = String::new();
    let mut last = 0;
    loop {
        let page = store.events(id, last, PAGE).await?;
        let Some(end) = page.last() else {
            return Ok(lines);
        };
        last = end.number;
        for event in &page {
            lines.push_str(&event.line);
            lines.push('\n');
        }
    }
}
