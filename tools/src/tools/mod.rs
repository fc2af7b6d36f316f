//! One file a tool; the list of them is [`crate::list`].

pub mod create_file;
pub mod edit_lines;
mod editing;
pub mod find_file;
pub mod insert_function;
pub mod open_file;
pub mod outline;
pub mod read_function;
pub mod revert;
pub mod rewrite_function;
pub mod search;
pub mod show_patch;
pub mod submission;
mod window;
