//! Comparisons whose runs are executed and graded by all workers of a database.

mod cells;
mod files;
pub mod request;
pub mod server_task;

pub use cells::{CellRequest, CellSettings, ModelSettings, StoreRuns};
