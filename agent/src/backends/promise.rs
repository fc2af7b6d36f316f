//! What a backend says of the machine that it is on, for `testwright doctor`.

use testwright_sandboxes::Backend;

/// A backend, and what is good to know of it.
pub struct Examination {
    pub backend: Box<dyn Backend>,
    /// Which one it is, in a few words: the version of an engine, the kind of isolation.
    pub summary: String,
    pub promises: Vec<Promise>,
}

/// Something that keeps a stranger's code apart from this machine, and whether it holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// What it is about, in a word or two.
    pub what: &'static str,
    pub holds: Holds,
    /// What that means here.
    pub text: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Yes,
    /// Not as well as it might.
    Partly,
    No,
}

/// What a build can reach.
pub(super) const INDEX_ALONE: &str =
    "the package index alone, asked by the host; other hosts by build.allowed-hosts";
