//! The report of a backend on its machine, for `testwright doctor`.

use testwright_sandboxes::Backend;

/// A backend and its report.
pub struct Examination {
    pub backend: Box<dyn Backend>,
    /// Short description: the version of an engine, the kind of isolation.
    pub summary: String,
    pub promises: Vec<Promise>,
}

/// A guarantee that separates untrusted code from this machine, and whether it holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// Subject, in a word or two.
    pub what: &'static str,
    pub holds: Holds,
    /// Details for this machine.
    pub text: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Yes,
    /// The guarantee holds only in part.
    Partly,
    No,
}

/// Hosts that a build can reach.
pub(super) const INDEX_ALONE: &str =
    "only the package index, through the host; other hosts with build.allowed-hosts";
