//! `--sandbox docker`: any Docker-compatible engine, and its guarantees.

use async_trait::async_trait;
use testwright_sandboxes::Backend;
use testwright_sandboxes::docker::{Docker, DockerSettings, EngineSecurity};

use super::GuaranteeStatus::{No, Partly, Yes};
use super::guarantee::PACKAGE_INDEX_ONLY;
use super::{Connector, Examination, Guarantee};
use testwright_config::error::Result;
use testwright_config::settings::Settings;

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
            guarantees: guarantees(&docker.security().await?).into(),
            backend: Box::new(docker),
        })
    }
}

async fn docker(settings: &Settings) -> Result<Docker> {
    let defaults = DockerSettings::default();
    let connected = Docker::connect(DockerSettings {
        host: settings.docker.host.clone(),
        base: settings.docker.base.clone(),
        pull: settings.docker.pull,
        user: settings.docker.user.clone().unwrap_or(defaults.user),
        registry_answers: Some(settings.cache.join("registry-answers.json")),
    })
    .await?;
    Ok(connected)
}

fn guarantees(engine: &EngineSecurity) -> [Guarantee; 8] {
    let always = |what, text| Guarantee::new(what, (Yes, text));
    let if_able = |what, is_able, yes, no| match is_able {
        true => Guarantee::new(what, (Yes, yes)),
        false => Guarantee::new(what, no),
    };
    let disk = "monitored: a container that exceeds it is stopped. Not counted: open files that were deleted, and the number of files if the engine's folder is not visible";
    let user = "root in a build container has the user id of this machine's root; a rootless engine or userns-remap separates them";
    [
        always("network", "none while tools run"),
        always("network of builds", PACKAGE_INDEX_ONLY),
        always(
            "rights",
            "no capabilities while tools run, and none can be gained",
        ),
        if_able(
            "system calls",
            engine.seccomp,
            "filtered",
            (No, "the engine cannot filter system calls"),
        ),
        if_able(
            "memory",
            engine.memory,
            "enforced by the engine, for all processes together",
            (No, "unlimited: the engine cannot limit memory"),
        ),
        if_able(
            "number of processes",
            engine.processes,
            "enforced by the engine",
            (No, "unlimited: the engine cannot limit processes"),
        ),
        Guarantee::new("disk", (Partly, disk)),
        if_able(
            "user",
            engine.own_users,
            "root in a container is not root on this machine",
            (Partly, user),
        ),
    ]
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
