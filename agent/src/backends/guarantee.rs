//! The report of a backend on its machine, for `testwright doctor`.

use testwright_sandboxes::Backend;

/// A backend and its report.
pub struct Examination {
    /// Connection to the backend.
    pub backend: Box<dyn Backend>,
    /// Short description: the version of an engine, the kind of isolation.
    pub summary: String,
    /// Guarantees of the backend on this machine.
    pub guarantees: Vec<Guarantee>,
}

/// A guarantee about the separation of untrusted code from this machine, and whether it holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantee {
    /// Subject, in a word or two.
    pub what: &'static str,
    /// Whether it holds here.
    pub holds: GuaranteeStatus,
    /// Details for this machine.
    pub text: &'static str,
}

impl Guarantee {
    /// Returns whether a guarantee holds here, with the details.
    pub(super) fn new(what: &'static str, status: (GuaranteeStatus, &'static str)) -> Guarantee {
        let (holds, text) = status;
        Guarantee { what, holds, text }
    }
}

/// Whether a guarantee holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuaranteeStatus {
    /// The guarantee holds.
    Yes,
    /// The guarantee holds only in part.
    Partly,
    /// The guarantee does not hold.
    No,
}

/// Hosts that a build can reach.
pub(super) const PACKAGE_INDEX_ONLY: &str =
    "only the package index, through the host; other hosts with build.allowed-hosts";
