//! `--sandbox local`: Linux namespaces, and the guarantees of any isolation on this machine.

use async_trait::async_trait;
use testwright_sandboxes::Backend;
use testwright_sandboxes::local::Isolation::{self, Landlock, Namespaces};
use testwright_sandboxes::local::{Local, LocalSecurity, LocalSettings, in_container};

use super::GuaranteeStatus::{No, Partly, Yes};
use super::guarantee::PACKAGE_INDEX_ONLY;
use super::limits::limits;
use super::{Connector, Examination, Guarantee, JAIL};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Isolation by this machine's kernel.
pub(super) struct LocalConnector {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Isolation to use; `None` for the best that is available.
    pub(super) force: Option<Isolation>,
}

pub(super) static LOCAL: LocalConnector = LocalConnector {
    name: "local",
    description: "Linux namespaces; needs nothing else",
    force: None,
};

#[async_trait]
impl Connector for LocalConnector {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn requirement(&self) -> &'static str {
        "isolation"
    }

    async fn connect(&self, settings: &Settings) -> Result<Box<dyn Backend>> {
        Ok(Box::new(local(settings, self.force)?))
    }

    async fn examine(&self, settings: &Settings) -> Result<Examination> {
        let (settings, force) = (settings.clone(), self.force);
        let local = tokio::task::spawn_blocking(move || local(&settings, force))
            .await
            .map_err(|e| Error::infrastructure("look for isolation").cause(e))??;
        Ok(Examination {
            summary: format!("{:?}", local.isolation()).to_lowercase(),
            guarantees: guarantees(&local.security()),
            backend: Box::new(local),
        })
    }
}

fn local(settings: &Settings, force: Option<Isolation>) -> Result<Local> {
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

fn guarantees(local: &LocalSecurity) -> Vec<Guarantee> {
    let settings = "a repository can only say how it is built, and reduce limits";
    let guarantees = [
        Guarantee::new(
            "files",
            match local.isolation {
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
        ),
        Guarantee::new(
            "shared names",
            match local.isolation {
                Namespaces => (
                    Yes,
                    "System V objects and message queues are the sandbox's own",
                ),
                Landlock => (Yes, "System V objects and message queues are refused"),
                Isolation::None => (No, "objects of the same user can be read and removed"),
            },
        ),
        Guarantee::new(
            "network",
            match local.isolation {
                Namespaces => (Yes, "none while tools run"),
                Landlock => (Yes, "no network sockets while tools run"),
                Isolation::None => (No, "open"),
            },
        ),
        Guarantee::new(
            "network of builds",
            match local.isolation {
                Namespaces | Landlock => (Yes, PACKAGE_INDEX_ONLY),
                Isolation::None => (No, "open"),
            },
        ),
        Guarantee::new(
            "processes",
            match (local.isolation, local.own_user) {
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
        ),
        Guarantee::new(
            "system calls",
            match local.isolation {
                Namespaces | Landlock => (Yes, "calls that tests do not need are refused"),
                Isolation::None => (No, "all"),
            },
        ),
        Guarantee::new(
            "rights",
            match (local.isolation, local.own_user) {
                (Landlock, true) => (
                    Yes,
                    "no capabilities except the one to traverse folders, and none can be gained",
                ),
                (Namespaces | Landlock, _) => (Yes, "no capabilities, and none can be gained"),
                (Isolation::None, _) => (No, "the capabilities of the user that runs testwright"),
            },
        ),
        Guarantee::new("settings", (Yes, settings)),
    ];
    guarantees.into_iter().chain(limits(local)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::GuaranteeStatus;

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
