//! One file a tool; the list of them is in [`crate::registry`].

pub mod contribution;
pub mod create_file;
pub mod describe;
pub mod edit_lines;
mod editing;
pub mod find_file;
pub mod handshake;
pub mod insert_function;
mod line_numbers;
pub mod open_file;
pub mod outline;
pub mod read_function;
pub mod revert;
pub mod rewrite_function;
pub mod run_pytest;
pub mod run_python;
pub mod search;
pub mod shell;
pub mod show_patch;
pub mod state;
pub mod submission;
pub mod submit;
pub mod test_patch;
pub mod try_fix;
