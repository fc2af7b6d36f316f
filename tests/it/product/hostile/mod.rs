//! Attacks on the program as a user runs it: by a repository, an issue, a model, an endpoint. Each of these tests was seen
//! to fail on the program as it was before its guard.

mod current_folder;
mod files;
mod gate;
mod secrets;
mod terminal;
