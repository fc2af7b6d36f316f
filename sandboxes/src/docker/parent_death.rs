//! Ties a container to this process.
//!
//! The container's first process reads standard input and ends with it. The engine closes that input when this
//! process's connection closes, however this process dies. The remaining container runs nothing, and the reaper removes
//! it.

use std::sync::Mutex;

use bollard::container::AttachContainerResults;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::AttachContainerOptions;

use super::engine::Engine;
use super::error::EngineResult;
use crate::sandbox::Result;

/// A connection to a container. Nothing is written to it or read from it, and the lock only makes it shareable between
/// threads.
pub(super) type ContainerAttachment = Mutex<AttachContainerResults>;

/// Adds the first process to a container's settings.
pub(super) fn first_process(body: ContainerCreateBody) -> ContainerCreateBody {
    ContainerCreateBody {
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        entrypoint: Some(vec!["sh".to_owned(), "-c".to_owned()]),
        cmd: Some(vec!["while read -r _; do :; done".to_owned()]),
        ..body
    }
}

/// Connects to a container. Must be called before the container starts, so that it never outlives this process.
pub(super) async fn tie(engine: &Engine, container: &str) -> Result<ContainerAttachment> {
    let options = AttachContainerOptions {
        stream: true,
        stdin: true,
        ..AttachContainerOptions::default()
    };
    let connection = engine.api.attach_container(container, Some(options)).await;
    connection.doing("attach to a container").map(Mutex::new)
}
