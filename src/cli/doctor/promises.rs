//! What keeps a stranger's code apart from this machine, and which of it holds here: one row a promise.

use testwright_sandboxes::docker::EngineSecurity;
use testwright_sandboxes::local::{Isolation, LocalSecurity};

use super::finding::{Finding, State};

/// Whether a promise holds, and what that means.
type Holds = (State, &'static str);

/// A promise of the local sandbox: what the isolation that this machine allows makes of it.
struct Local {
    what: &'static str,
    holds: fn(&LocalSecurity) -> Holds,
}

use Isolation::{Landlock, Namespaces};
use State::{Missing, Note, Ok};

const LOCAL: [Local; 9] = [
    Local {
        what: "files",
        holds: |local| match (local.isolation, local.own_user) {
            (Namespaces, _) => (Ok, "the host's files are absent, or read-only"),
            (Landlock, true) => (
                Ok,
                "the host's files cannot be opened, and belong to another user; that a path exists can be seen",
            ),
            (Landlock, false) => (
                Note,
                "the host's files cannot be opened, but what belongs to the same user may get another mode or other times",
            ),
            (Isolation::None, _) => (Missing, "all that you can read and write"),
        },
    },
    Local {
        what: "network",
        holds: |local| match local.isolation {
            Namespaces => (Ok, "none while tools run"),
            Landlock => (Ok, "no sockets of networks while tools run"),
            Isolation::None => (Missing, "open"),
        },
    },
    Local {
        what: "network of builds",
        holds: |local| match local.isolation {
            Namespaces | Landlock => (Ok, INDEX),
            Isolation::None => (Missing, "open"),
        },
    },
    Local {
        what: "processes",
        holds: |local| match (local.isolation, local.own_user) {
            (Namespaces, _) => (Ok, "the host's are out of sight and reach"),
            (Landlock, true) => (Ok, "the host's are in sight, and belong to another user"),
            (Landlock, false) => (
                Note,
                "the host's are in sight; signals do not reach them on newer kernels",
            ),
            (Isolation::None, _) => (Missing, "those of the same user can be ended and read"),
        },
    },
    Local {
        what: "system calls",
        holds: |local| match local.isolation {
            Namespaces | Landlock => (Ok, "those that tests do not need are refused"),
            Isolation::None => (Missing, "all"),
        },
    },
    Local {
        what: "rights",
        holds: |local| match (local.isolation, local.own_user) {
            (Landlock, true) => (
                Ok,
                "no capabilities but that of passing through folders, no way to new ones",
            ),
            (Namespaces | Landlock, _) => (Ok, "no capabilities, no way to new ones"),
            (Isolation::None, _) => (Missing, "those of the user that runs testwright"),
        },
    },
    Local {
        what: "memory",
        holds: |local| match (local.isolation, local.memory_is_counted) {
            (Isolation::None, _) => (Missing, "limited for each process by itself"),
            (_, true) => (Ok, "limited by the kernel for all processes together"),
            (_, false) => (
                Note,
                "watched for all processes together, since no control group can be made here",
            ),
        },
    },
    Local {
        what: "disk",
        holds: |local| match local.isolation {
            Namespaces | Landlock => (Ok, "bytes and files are watched, for all that is written"),
            Isolation::None => (Missing, "watched in the folders of the sandbox alone"),
        },
    },
    Local {
        what: "settings",
        holds: |_| (Ok, REPOSITORY),
    },
];

const REPOSITORY: &str = "a repository says how it is built and lowers limits, nothing else";
const INDEX: &str =
    "the package index alone, asked by the host; other hosts by build.allowed-hosts";

/// A promise of the Docker sandbox.
struct Engine {
    what: &'static str,
    holds: fn(&EngineSecurity) -> bool,
    yes: &'static str,
    no: Holds,
}

const ENGINE: [Engine; 8] = [
    Engine {
        what: "network",
        holds: |_| true,
        yes: "none while tools run",
        no: (Missing, ""),
    },
    Engine {
        what: "network of builds",
        holds: |_| true,
        yes: INDEX,
        no: (Missing, ""),
    },
    Engine {
        what: "rights",
        holds: |_| true,
        yes: "no capabilities while tools run, no way to new ones",
        no: (Missing, ""),
    },
    Engine {
        what: "system calls",
        holds: |engine| engine.seccomp,
        yes: "filtered",
        no: (Missing, "the engine cannot filter system calls"),
    },
    Engine {
        what: "memory",
        holds: |engine| engine.memory,
        yes: "limited for all processes together",
        no: (Missing, "the engine cannot limit memory"),
    },
    Engine {
        what: "processes",
        holds: |engine| engine.processes,
        yes: "limited in number",
        no: (Missing, "the engine cannot limit processes"),
    },
    Engine {
        what: "disk",
        holds: |_| true,
        yes: "bytes and files are watched, for all that is written",
        no: (Missing, ""),
    },
    Engine {
        what: "user",
        holds: |engine| engine.own_users,
        yes: "root in a container is not root of this machine",
        no: (
            Note,
            "root in a container that builds has the number of this machine's root; a rootless engine, or userns-remap, keeps them apart",
        ),
    },
];

pub fn of_local(local: &LocalSecurity) -> Vec<Finding> {
    const AREA: &str = "promises of local";
    LOCAL
        .iter()
        .map(|promise| {
            let (state, text) = (promise.holds)(local);
            finding(AREA, promise.what, state, text)
        })
        .collect()
}

pub fn of_engine(engine: &EngineSecurity) -> Vec<Finding> {
    const AREA: &str = "promises of docker";
    ENGINE
        .iter()
        .map(|promise| {
            let (state, text) = if (promise.holds)(engine) {
                (Ok, promise.yes)
            } else {
                promise.no
            };
            finding(AREA, promise.what, state, text)
        })
        .collect()
}

fn finding(area: &'static str, what: &'static str, state: State, text: &str) -> Finding {
    Finding {
        state,
        ..Finding::ok(area, what, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_does_not_hold_is_told_as_such() {
        let states =
            |findings: Vec<Finding>| findings.into_iter().map(|f| f.state).collect::<Vec<_>>();
        let local = |isolation, own_user, memory_is_counted| {
            states(of_local(&LocalSecurity {
                isolation,
                own_user,
                memory_is_counted,
            }))
        };
        for (isolation, own_user) in [(Namespaces, true), (Namespaces, false), (Landlock, true)] {
            assert!(local(isolation, own_user, true).iter().all(|s| *s == Ok));
            let watched = local(isolation, own_user, false);
            assert_eq!(watched.iter().filter(|s| **s == Note).count(), 1);
        }
        assert!(local(Landlock, false, true).contains(&Note));
        assert!(local(Isolation::None, false, false).contains(&Missing));
        let all = EngineSecurity {
            seccomp: true,
            own_users: true,
            memory: true,
            processes: true,
        };
        assert!(states(of_engine(&all)).iter().all(|s| *s == Ok));
        let weak = [
            EngineSecurity {
                seccomp: false,
                ..all
            },
            EngineSecurity {
                own_users: false,
                ..all
            },
            EngineSecurity {
                memory: false,
                ..all
            },
            EngineSecurity {
                processes: false,
                ..all
            },
        ];
        for weak in weak {
            let worse = states(of_engine(&weak))
                .into_iter()
                .filter(|s| *s != Ok)
                .count();
            assert_eq!(worse, 1, "{weak:?}");
        }
    }
}
