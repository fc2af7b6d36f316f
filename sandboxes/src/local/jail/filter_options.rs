//! Options of the system call filter, and the form of its rules.

use std::collections::BTreeMap;

use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::super::protocol::Isolation;

/// Rules by the number of the call; a call without rules always matches.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns a rule for calls that fulfil all conditions, each on the lower 32 bits of the argument with this index.
pub(super) fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.iter().map(|(index, op, value)| {
        SeccompCondition::new(*index, SeccompCmpArgLen::Dword, op.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Options that determine the system call filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterOptions {
    pub isolation: Isolation,
    /// Whether processes may connect to a relay on the host (in place only).
    pub relay: bool,
    /// Whether sandboxed processes run as a separate user (in place only).
    pub own_user: bool,
    /// Whether Landlock controls truncation by path (in place only).
    pub landlock_truncates: bool,
    /// Whether the kernel counts the memory of all processes together, including what no process has mapped.
    pub memory_is_counted: bool,
}
