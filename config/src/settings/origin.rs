//! The origin of a value.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// The place that sets a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The program's default.
    Default,
    /// A settings file: its path as the user would write it, and the line.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(String),
    /// A flag of the command line, by its name, or a request to a server.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(f, "default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(f, "{name}"),
            Origin::Flag(name) => write!(f, "{name}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
