//! A trajectory out of the store.

use crate::store::{RunId, Store};
use testwright_config::error::Result;

/// Events that are read at one time.
const PAGE: u32 = 500;

/// As `trajectory.jsonl` has them.
pub async fn trajectory_lines(store: &Store, id: &RunId) -> Result<String> {
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
