//! The checkout that the tools work on: paths that stay inside it, what the base commit held.
pub struct Workspace;
