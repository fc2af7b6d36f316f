//! Attacks on the program by a repository, an issue, a model or an endpoint. Each of these tests failed before its
//! protection was added.

mod current_folder;
mod files;
mod gate;
mod secrets;
mod terminal;
