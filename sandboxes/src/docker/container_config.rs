//! Settings of a container: limits, capabilities, network, folders.

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};

use super::engine::Engine;
use super::images::Image;
use super::parent_death::first_process;
use super::{owner, seccomp};
use crate::sandbox::{Result, Spec};

pub(super) const WORKSPACE: &str = "/testbed";
pub(super) const STORE: &str = "/opt/testwright";

/// Folders that tools can write in testwright's images: their own, and those that Debian opens to all users.
pub(super) const WRITABLE: [&str; 5] = [WORKSPACE, "/tmp", "/var/tmp", "/home", "/run/lock"];

/// Capabilities that installing packages as root needs: changing the owner of files, and access to such files. Not
/// included are device nodes, raw sockets, changing the root, other users for processes, and capabilities of files.
const CAPABILITIES_OF_BUILDS: [&str; 5] = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL"];

pub(super) fn container_config(
    engine: &Engine,
    spec: &Spec,
    image: &Image,
) -> Result<ContainerCreateBody> {
    let limits = &spec.limits;
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    // Engines allow a million open files or more, over which old Pythons loop at each process start.
    let mut ulimits = vec![
        ulimit("fsize", whole(limits.file_size)),
        // With 0, the kernel would still start a collector behind a pipe on the host.
        ulimit("core", 1),
        ulimit("nofile", 16384),
    ];
    if engine.podman {
        // By default Podman requests a million, which may fail if Podman itself is confined.
        ulimits.push(ulimit("nproc", 16384));
    }
    let host = HostConfig {
        network_mode: Some("none".to_owned()),
        memory: Some(whole(limits.memory)),
        memory_swap: Some(whole(limits.memory)),
        pids_limit: Some(whole(limits.processes)),
        nano_cpus: Some((limits.cpus * 1e9) as i64),
        ulimits: Some(ulimits),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: spec
            .root
            .then(|| CAPABILITIES_OF_BUILDS.map(str::to_owned).to_vec()),
        security_opt: Some(
            std::iter::once("no-new-privileges".to_owned())
                .chain(seccomp::option(engine))
                .collect(),
        ),
        init: Some(true),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        mounts: if engine.local { mounts(spec)? } else { None },
        ..HostConfig::default()
    };
    Ok(first_process(ContainerCreateBody {
        image: Some(image.name.clone()),
        labels: Some(owner::labels("sandbox", &spec.purpose, image.foreign)),
        // The first process runs as root without capabilities, because the tools' user could end its own processes.
        user: Some("0:0".to_owned()),
        working_dir: Some(WORKSPACE.to_owned()),
        // The engine names the host after the container's random id, so code cannot know the name beforehand.
        hostname: None,
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }))
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    }
}

fn mounts(spec: &Spec) -> Result<Option<Vec<Mount>>> {
    let mut list = Vec::new();
    for mount in &spec.mounts {
        list.push(Mount {
            typ: Some(MountType::BIND),
            source: Some(std::path::absolute(&mount.host)?.display().to_string()),
            target: Some(mount.inside.display().to_string()),
            read_only: Some(true),
            ..Mount::default()
        });
    }
    Ok((!list.is_empty()).then_some(list))
}
