//! Whose work it is that no token asked for. Owners share the workers evenly, so no token may take the name of one of these.

/// Of a daemon that asks nobody.
pub const LOCAL: &str = "local";
/// Of `testwright compare --database`.
pub const COMPARE: &str = "compare";
/// Of `testwright eval --database`.
pub const EVAL: &str = "eval";
/// What is asked for on GitHub, before the repository's name.
pub const GITHUB: &str = "github";

pub const RESERVED: [&str; 4] = [LOCAL, COMPARE, EVAL, GITHUB];
