//! `--sandbox local`: Linux namespaces, and the guarantees of any isolation on this machine.

use async_trait::async_trait;
use testwright_sandboxes::Backend;
use testwright_sandboxes::local::Isolation::{self, Landlock, Namespaces};
use testwright_sandboxes::local::{Local, LocalSecurity, LocalSettings, in_container};

use super::GuaranteeStatus::{self, No, Partly, Yes};
use super::guarantee::PACKAGE_INDEX_ONLY;
use super::limits::limits;
use super::{Connector, Examination, Guarantee, JAIL};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

pub(super) struct LocalConnector;

#[async_trait]
impl Connector for LocalConnector {
    fn name(&self) -> &'static str {
        "local"
    }

    fn description(&self) -> &'static str {
        "Linux namespaces; needs nothing else"
    }

    fn requirement(&self) -> &'static str {
        "isolation"
    }

    async fn connect(&self, settings: &Settings) -> Result<Box<dyn Backend>> {
        Ok(Box::new(local(settings, None)?))
    }

    async fn examine(&self, settings: &Settings) -> Result<Examination> {
        examine(settings, None).await
    }
}

pub(super) async fn examine(settings: &Settings, force: Option<Isolation>) -> Result<Examination> {
    let settings = settings.clone();
    let local = tokio::task::spawn_blocking(move || local(&settings, force))
        .await
        .map_err(|e| Error::infrastructure("look for isolation").cause(e))??;
    Ok(Examination {
        summary: format!("{:?}", local.isolation()).to_lowercase(),
        guarantees: guarantees(&local.security()),
        backend: Box::new(local),
    })
}

pub(super) fn local(settings: &Settings, force: Option<Isolation>) -> Result<Local> {
    let program =
        std::env::current_exe().map_err(|error| Error::io("find this program", &error))?;
    Ok(Local::new(LocalSettings {
        cache: settings.cache.join("local"),
        launcher: vec![program.into(), JAIL.into()],
        no_isolation: settings.local.no_isolation,
        force,
        in_container: in_container(),
    })?)
}

/// A guarantee, and how far this machine's isolation gives it.
struct Row {
    what: &'static str,
    holds: fn(&LocalSecurity) -> (GuaranteeStatus, &'static str),
}

const GUARANTEES: [Row; 8] = [
    Row {
        what: "files",
        holds: |local| match local.isolation {
            Namespaces => (
                Yes,
                "the host's files are absent, except the system's programs, which are read-only",
            ),
            Landlock => (
                Partly,
                "except the system's programs, the host's files cannot be opened, listed or changed; code can see which paths exist",
            ),
            Isolation::None => (No, "all files that you can read and write"),
        },
    },
    Row {
        what: "shared names",
        holds: |local| match local.isolation {
            Namespaces => (
                Yes,
                "System V objects and message queues are the sandbox's own",
            ),
            Landlock => (Yes, "System V objects and message queues are refused"),
            Isolation::None => (No, "objects of the same user can be read and removed"),
        },
    },
    Row {
        what: "network",
        holds: |local| match local.isolation {
            Namespaces => (Yes, "none while tools run"),
            Landlock => (Yes, "no network sockets while tools run"),
            Isolation::None => (No, "open"),
        },
    },
    Row {
        what: "network of builds",
        holds: |local| match local.isolation {
            Namespaces | Landlock => (Yes, PACKAGE_INDEX_ONLY),
            Isolation::None => (No, "open"),
        },
    },
    Row {
        what: "processes",
        holds: |local| match (local.isolation, local.own_user) {
            (Namespaces, _) => (Yes, "the host's processes are invisible and out of reach"),
            (Landlock, true) => (
                Partly,
                "the host's processes are visible, but belong to another user",
            ),
            (Landlock, false) => (
                Partly,
                "the host's processes are visible; before Linux 6.12 those of the same user can be killed",
            ),
            (Isolation::None, _) => (No, "processes of the same user can be killed and read"),
        },
    },
    Row {
        what: "system calls",
        holds: |local| match local.isolation {
            Namespaces | Landlock => (Yes, "calls that tests do not need are refused"),
            Isolation::None => (No, "all"),
        },
    },
    Row {
        what: "rights",
        holds: |local| match (local.isolation, local.own_user) {
            (Landlock, true) => (
                Yes,
                "no capabilities except the one to traverse folders, and none can be gained",
            ),
            (Namespaces | Landlock, _) => (Yes, "no capabilities, and none can be gained"),
            (Isolation::None, _) => (No, "the capabilities of the user that runs testwright"),
        },
    },
    Row {
        what: "settings",
        holds: |_| (Yes, REPOSITORY),
    },
];

const REPOSITORY: &str = "a repository can only say how it is built, and reduce limits";

fn guarantees(security: &LocalSecurity) -> Vec<Guarantee> {
    let guarantee = |row: &Row| {
        let (holds, text) = (row.holds)(security);
        Guarantee {
            what: row.what,
            holds,
            text,
        }
    };
    GUARANTEES
        .iter()
        .map(guarantee)
        .chain(limits(security))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_guarantees_are_reported() {
        let holds = |isolation, own_user, memory_is_counted| -> Vec<GuaranteeStatus> {
            let security = LocalSecurity {
                isolation,
                own_user,
                memory_is_counted,
            };
            guarantees(&security).iter().map(|p| p.holds).collect()
        };
        for own_user in [true, false] {
            let partly = |isolation, counted| {
                let holds = holds(isolation, own_user, counted);
                assert!(!holds.contains(&No));
                holds.iter().filter(|h| **h == Partly).count()
            };
            assert_eq!(
                (partly(Namespaces, true), partly(Namespaces, false)),
                (0, 1)
            );
            // With a user of its own, a sandbox's processes are counted separately.
            let shared = usize::from(!own_user);
            assert_eq!(
                (partly(Landlock, true), partly(Landlock, false)),
                (2 + shared, 3 + shared)
            );
        }
        assert!(holds(Isolation::None, false, false).contains(&No));
    }
}
