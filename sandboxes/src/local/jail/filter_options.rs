//! Inputs of the filter of system calls, and the form of its rules.

use std::collections::BTreeMap;

use seccompiler::SeccompRule;

use super::super::protocol::Isolation;

/// Rules by the number of the call; a call without rules always matches.
pub type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What the filter of system calls depends on.
#[derive(Debug, Clone, Copy)]
pub struct FilterOptions {
    pub isolation: Isolation,
    /// In place: a relay of the host may be connected to.
    pub relay: bool,
    /// In place: what runs inside is a user of its own.
    pub own_user: bool,
    /// In place: Landlock knows truncation by a path.
    pub landlock_truncates: bool,
    /// The kernel counts the memory of all processes together, also what no process has mapped.
    pub memory_is_counted: bool,
}
