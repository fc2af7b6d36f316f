//! Owners of jobs that no token requested. Owners share the workers evenly, so tokens cannot use these names.

/// Owner on a server without authentication.
pub const LOCAL: &str = "local";
/// Owner for `testwright compare --database`.
pub const COMPARE: &str = "compare";
/// Owner for `testwright eval --database`.
pub const EVAL: &str = "eval";
/// Prefix of owners for requests on GitHub; the repository's name follows.
pub const GITHUB: &str = "github";

/// Names that tokens cannot have as owners.
pub const RESERVED: [&str; 4] = [LOCAL, COMPARE, EVAL, GITHUB];
