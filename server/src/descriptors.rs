//! How many files this process may have open, and how many of them its clients may take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the process itself needs: the database, listeners, logs, models' services.
const RESERVE: u64 = 96;
/// What a run or a sandbox of a client needs.
const PER_SANDBOX: u64 = 40;

/// Raises the soft limit of open files to the hard one; the limit then. Sandboxes have one of their own.
pub fn raise_limit() -> u64 {
    let known = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: known.maximum,
        maximum: known.maximum,
    };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            known.current
        }
    };
    limit.unwrap_or(u64::MAX)
}

/// Connections that clients may have: as many as are wanted, unless work would lack descriptors then.
pub fn connections(limit: u64, sandboxes: usize, wanted: usize) -> usize {
    let reserve = PER_SANDBOX
        .saturating_mul(sandboxes as u64)
        .saturating_add(RESERVE);
    let left = limit.saturating_sub(reserve).max(limit / 4);
    let connections = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
    if connections < wanted {
        tracing::warn!(
            limit,
            connections,
            "fewer connections are accepted than --max-connections allows: the limit of open files is low"
        );
    }
    connections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_descriptors_for_work() {
        assert_eq!(connections(65_536, 8, 1024), 1024);
        assert_eq!(connections(1024, 8, 1024), 1024 - 96 - 320);
        assert_eq!(connections(256, 5, 1024), 64);
    }
}
