//! Limits of local sandboxes: enforced by the kernel, monitored by the sandbox's supervisor, or neither.

use testwright_sandboxes::local::Isolation::{self, Landlock, Namespaces};
use testwright_sandboxes::local::LocalSecurity;

use super::Guarantee;
use super::GuaranteeStatus::{self, No, Partly, Yes};

pub(super) fn limits(local: &LocalSecurity) -> [Guarantee; 4] {
    let is_isolated = local.isolation != Isolation::None;
    let monitored = match is_isolated {
        true => (
            Yes,
            "monitored: a sandbox that exceeds it is stopped within seconds, or later if it has very many files",
        ),
        false => (No, "monitored only in the folders of the sandbox"),
    };
    [
        Guarantee::new("memory", memory(local)),
        Guarantee::new("disk", monitored),
        Guarantee::new("number of files", monitored),
        Guarantee::new(
            "number of processes",
            match (local.isolation, local.own_user) {
                (Namespaces, _) | (Landlock, true) => (Yes, "enforced by the kernel"),
                (Landlock, false) | (Isolation::None, _) => (
                    Partly,
                    "enforced by the kernel together with the user's other processes, for users other than root",
                ),
            },
        ),
    ]
}

fn memory(local: &LocalSecurity) -> (GuaranteeStatus, &'static str) {
    match (local.isolation, local.memory_is_counted) {
        (Isolation::None, _) => (No, "neither: only limited per process"),
        (_, true) => (
            Yes,
            "enforced by a control group, for processes and their kernel memory",
        ),
        (Namespaces, false) => (
            Partly,
            "monitored, because control groups are not available: processes, sockets and System V objects, but not shared memory that is mostly unmapped",
        ),
        (Landlock, false) => (
            Partly,
            "monitored, because control groups are not available: processes, and sockets by number, but not shared memory that is mostly unmapped, nor Landlock's own rules",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_states_enforcement() {
        for isolation in [Namespaces, Landlock, Isolation::None] {
            for (own_user, memory_is_counted) in [(true, true), (false, false)] {
                let local = LocalSecurity {
                    isolation,
                    own_user,
                    memory_is_counted,
                };
                for limit in limits(&local) {
                    let ways = ["enforced", "monitored", "neither"];
                    assert!(ways.iter().any(|way| limit.text.starts_with(way)));
                    let is_enforced = isolation != Isolation::None && memory_is_counted;
                    assert!(!is_enforced || limit.holds == Yes, "{}", limit.text);
                }
            }
        }
    }
}
