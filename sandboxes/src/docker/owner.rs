//! The process that started a container, recorded in its labels, so that leftovers of killed processes can be
//! distinguished from containers in use.

use std::collections::HashMap;
use std::fs;

/// Label with the owner, [`Owner`] as text.
pub(super) const OWNER: &str = "testwright.owner";
/// Label with the purpose (`Spec::purpose`).
pub(super) const RUN: &str = "testwright.run";
/// Label with the kind: `sandbox`, `fork` (an image that a fork started from) or `state` (a saved state).
pub(super) const KIND: &str = "testwright.kind";
/// Label of containers and images that descend from an image not made by testwright, in which more than the usual
/// folders may be writable.
pub(super) const FOREIGN: &str = "testwright.foreign";
/// Label of a state with the number of history steps that belong to its base image.
pub(super) const BASE_STEPS: &str = "testwright.below";

/// A process on some machine, distinguished from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    host: String,
    /// Boot and process namespace, within which the other two fields have a meaning.
    boot: String,
    namespace: String,
    pid: u32,
    started: String,
}

impl Owner {
    pub(super) fn this() -> Owner {
        let read = |path: &str| {
            fs::read_to_string(path)
                .map(|s| s.trim().to_owned())
                .unwrap_or_default()
        };
        let host = read("/proc/sys/kernel/hostname");
        let boot = read("/proc/sys/kernel/random/boot_id");
        let namespace = fs::read_link("/proc/self/ns/pid")
            .map(|p| p.display().to_string())
            .unwrap_or_default();
        let pid = std::process::id();
        Owner {
            host,
            boot,
            namespace,
            pid,
            started: started(pid).unwrap_or_default(),
        }
    }

    pub(super) fn parse(text: &str) -> Option<Owner> {
        let parts: Vec<String> = text.split('/').map(str::to_owned).collect();
        let [host, boot, namespace, pid, started] = <[String; 5]>::try_from(parts).ok()?;
        let pid = pid.parse().ok()?;
        Some(Owner {
            host,
            boot,
            namespace,
            pid,
            started,
        })
    }

    /// Returns whether the process has certainly ended, which is known only for this machine and namespace. After a
    /// reboot, what still runs (`in_use`) must belong to another process, so its owner does not count as gone.
    pub(super) fn is_gone(&self, in_use: bool) -> bool {
        let here = Owner::this();
        if here.started.is_empty() || here.boot.is_empty() || self.host != here.host {
            return false;
        }
        if self.boot != here.boot {
            return !in_use;
        }
        self.namespace == here.namespace && started(self.pid).as_deref() != Some(&self.started)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Owner {
            host,
            boot,
            namespace,
            pid,
            started,
        } = self;
        write!(f, "{host}/{boot}/{namespace}/{pid}/{started}")
    }
}

/// Returns the start time of a process, in clock ticks since boot. `None` if it does not exist, or is a zombie.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

pub(super) fn labels(kind: &str, purpose: &str, foreign: bool) -> HashMap<String, String> {
    let mut labels = HashMap::from([
        (OWNER.to_owned(), Owner::this().to_string()),
        (RUN.to_owned(), purpose.to_owned()),
        (KIND.to_owned(), kind.to_owned()),
    ]);
    labels.extend(foreign.then(|| (FOREIGN.to_owned(), "1".to_owned())));
    labels
}

#[cfg(test)]
mod tests;
