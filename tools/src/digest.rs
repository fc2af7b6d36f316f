//! Which sources the toolbox was built from.

/// SHA-256 of the sources and of the versions of all that they use: a toolbox of the same digest does the same.
pub const DIGEST: &str = env!("TOOLBOX_DIGEST");
