//! What keeps a stranger's code apart from this machine, and which of it holds here: one row a promise.

use testwright_sandboxes::docker::EngineSecurity;
use testwright_sandboxes::local::Isolation;

use super::finding::{Finding, State};

/// Whether a promise holds, and what that means.
type Holds = (State, &'static str);

/// A promise of the local sandbox, by the isolation that this machine allows.
struct Local {
    what: &'static str,
    namespaces: Holds,
    landlock: Holds,
    none: Holds,
}

use State::{Missing, Note, Ok};

const LOCAL: [Local; 6] = [
    Local {
        what: "files",
        namespaces: (Ok, "the host's files are absent, or read-only"),
        landlock: (
            Note,
            "the host's files cannot be opened, but what belongs to the same user may get another mode or other times",
        ),
        none: (Missing, "all that you can read and write"),
    },
    Local {
        what: "network",
        namespaces: (Ok, "none while tools run"),
        landlock: (Ok, "no sockets of networks while tools run"),
        none: (Missing, "open"),
    },
    Local {
        what: "processes",
        namespaces: (Ok, "the host's are out of sight and reach"),
        landlock: (
            Note,
            "the host's are in sight; signals do not reach them on newer kernels",
        ),
        none: (Missing, "those of the same user can be ended and read"),
    },
    Local {
        what: "system calls",
        namespaces: (Ok, "those that tests do not need are refused"),
        landlock: (Ok, "those that tests do not need are refused"),
        none: (Missing, "all"),
    },
    Local {
        what: "rights",
        namespaces: (Ok, "no capabilities, no way to new ones"),
        landlock: (Ok, "no capabilities, no way to new ones"),
        none: (Missing, "those of the user that runs testwright"),
    },
    Local {
        what: "settings",
        namespaces: (Ok, REPOSITORY),
        landlock: (Ok, REPOSITORY),
        none: (Ok, REPOSITORY),
    },
];

const REPOSITORY: &str = "a repository says how it is built and lowers limits, nothing else";

/// A promise of the Docker sandbox.
struct Engine {
    what: &'static str,
    holds: fn(&EngineSecurity) -> bool,
    yes: &'static str,
    no: Holds,
}

const ENGINE: [Engine; 5] = [
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
        what: "user",
        holds: |engine| engine.own_users,
        yes: "root in a container is not root of this machine",
        no: (
            Note,
            "root in a container that builds has the number of this machine's root; a rootless engine, or userns-remap, keeps them apart",
        ),
    },
];

pub fn of_local(isolation: Isolation) -> Vec<Finding> {
    const AREA: &str = "promises of local";
    LOCAL
        .iter()
        .map(|promise| {
            let (state, text) = match isolation {
                Isolation::Namespaces => promise.namespaces,
                Isolation::Landlock => promise.landlock,
                Isolation::None => promise.none,
            };
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
        assert!(
            states(of_local(Isolation::Namespaces))
                .iter()
                .all(|s| *s == Ok)
        );
        assert!(states(of_local(Isolation::Landlock)).contains(&Note));
        assert!(states(of_local(Isolation::None)).contains(&Missing));
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
