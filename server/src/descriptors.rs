//! Limits on open files: how many this process may open, and how many of these are for clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for the process itself: the database, listeners, logs, and model services.
const RESERVE: u64 = 96;
/// Descriptors for a run, or for a client's sandbox.
const PER_SANDBOX: u64 = 40;

/// Raises the soft limit on open files to the hard limit and returns it. Sandboxes have their own limit.
pub fn raise_limit() -> u64 {
    let rlimit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: rlimit.maximum,
        maximum: rlimit.maximum,
    };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(error) => {
            tracing::warn!(%error, "could not raise the limit on open files");
            rlimit.current
        }
    };
    limit.unwrap_or(u64::MAX)
}

/// Returns the number of client connections: the wanted number, or fewer if jobs would lack descriptors.
pub fn connections(limit: u64, sandboxes: usize, max_connections: usize) -> usize {
    let reserve = PER_SANDBOX
        .saturating_mul(sandboxes as u64)
        .saturating_add(RESERVE);
    let spare_descriptors = limit.saturating_sub(reserve).max(limit / 4);
    let connections = max_connections.min(usize::try_from(spare_descriptors).unwrap_or(usize::MAX));
    if connections < max_connections {
        tracing::warn!(
            limit,
            connections,
            "the limit on open files allows fewer connections than --max-connections"
        );
    }
    connections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_reserve_descriptors() {
        assert_eq!(connections(65_536, 8, 1024), 1024);
        assert_eq!(connections(1024, 8, 1024), 1024 - 96 - 320);
        assert_eq!(connections(256, 5, 1024), 64);
    }
}
