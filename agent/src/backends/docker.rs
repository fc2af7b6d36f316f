//! `--sandbox docker`: any Docker-compatible engine, and its guarantees.

use async_trait::async_trait;
use testwright_sandboxes::Backend;
use testwright_sandboxes::docker::{Docker, DockerSettings, EngineSecurity};

use super::GuaranteeStatus::{self, No, Partly, Yes};
use super::guarantee::PACKAGE_INDEX_ONLY;
use super::{Connector, Examination, Guarantee, ca_bundle, proxies};
use testwright_config::error::Result;
use testwright_config::settings::{Pull, Settings};

pub(super) struct DockerConnector;

#[async_trait]
impl Connector for DockerConnector {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn description(&self) -> &'static str {
        "containers of any Docker-compatible engine, including Podman"
    }

    fn requirement(&self) -> &'static str {
        "engine"
    }

    async fn connect(&self, settings: &Settings) -> Result<Box<dyn Backend>> {
        Ok(Box::new(docker(settings).await?))
    }

    async fn examine(&self, settings: &Settings) -> Result<Examination> {
        let docker = docker(settings).await?;
        Ok(Examination {
            summary: docker.describe().to_owned(),
            guarantees: guarantees(&docker.security().await?),
            backend: Box::new(docker),
        })
    }
}

async fn docker(settings: &Settings) -> Result<Docker> {
    let defaults = DockerSettings::default();
    let connected = Docker::connect(DockerSettings {
        host: settings.docker.host.clone(),
        base: settings.docker.base.clone(),
        pull: settings.docker.pull != Pull::Never,
        user: settings.docker.user.clone().unwrap_or(defaults.user),
        ca_bundle: ca_bundle(settings),
        proxies: proxies(settings),
        registry_answers: Some(settings.cache.join("registry-answers.json")),
    })
    .await?;
    Ok(connected)
}

/// A guarantee, with its texts for engines that give it and engines that do not.
struct Row {
    what: &'static str,
    holds: fn(&EngineSecurity) -> bool,
    yes: &'static str,
    no: (GuaranteeStatus, &'static str),
}

const GUARANTEES: [Row; 8] = [
    Row {
        what: "network",
        holds: |_| true,
        yes: "none while tools run",
        no: (No, ""),
    },
    Row {
        what: "network of builds",
        holds: |_| true,
        yes: PACKAGE_INDEX_ONLY,
        no: (No, ""),
    },
    Row {
        what: "rights",
        holds: |_| true,
        yes: "no capabilities while tools run, and none can be gained",
        no: (No, ""),
    },
    Row {
        what: "system calls",
        holds: |engine| engine.seccomp,
        yes: "filtered",
        no: (No, "the engine cannot filter system calls"),
    },
    Row {
        what: "memory",
        holds: |engine| engine.memory,
        yes: "enforced by the engine, for all processes together",
        no: (No, "unlimited: the engine cannot limit memory"),
    },
    Row {
        what: "number of processes",
        holds: |engine| engine.processes,
        yes: "enforced by the engine",
        no: (No, "unlimited: the engine cannot limit processes"),
    },
    Row {
        what: "disk",
        holds: |_| false,
        yes: "",
        no: (
            Partly,
            "monitored: a container that exceeds it is stopped. Not counted: open files that were deleted, and the number of files if the engine's folder is not visible",
        ),
    },
    Row {
        what: "user",
        holds: |engine| engine.own_users,
        yes: "root in a container is not root on this machine",
        no: (
            Partly,
            "root in a build container has the user id of this machine's root; a rootless engine or userns-remap separates them",
        ),
    },
];

fn guarantees(engine: &EngineSecurity) -> Vec<Guarantee> {
    let guarantee = |row: &Row| {
        let (holds, text) = if (row.holds)(engine) {
            (Yes, row.yes)
        } else {
            row.no
        };
        Guarantee {
            what: row.what,
            holds,
            text,
        }
    };
    GUARANTEES.iter().map(guarantee).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_guarantees_are_reported() {
        let all = EngineSecurity {
            seccomp: true,
            own_users: true,
            memory: true,
            processes: true,
        };
        let lacking = |engine: &EngineSecurity| -> Vec<&str> {
            let guarantees = guarantees(engine).into_iter();
            guarantees
                .filter(|p| p.holds != Yes)
                .map(|p| p.what)
                .collect()
        };
        assert_eq!(lacking(&all), ["disk"]);
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
            assert_eq!(lacking(&weak).len(), 2, "{weak:?}");
        }
    }
}
