//! Shared test code.

#[path = "../../sandboxes/tests/it/base_image.rs"]
pub(crate) mod base_image;
pub(crate) mod program;
pub(crate) mod server;
