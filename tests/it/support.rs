//! What other tests share.

#[path = "../../sandboxes/tests/it/base_image.rs"]
pub mod base_image;
pub mod program;
pub mod server;
