//! Ties a container to this process: its first process reads standard input and ends with it, and the engine closes that
//! when our connection goes away, however we died. What is left then runs nothing, and is for the reaper.

use std::sync::Mutex;

use bollard::container::AttachContainerResults;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::AttachContainerOptions;

use super::engine::Engine;
use super::error::explain;
use crate::sandbox::Result;

/// The connection. Nothing is written to it or read from it.
pub(super) struct Lifeline {
    /// Behind a lock only because it cannot be shared without.
    _connection: Mutex<AttachContainerResults>,
}

/// The first process of a container, as part of its settings.
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

/// To be called before the container starts: from its first moment on it has somebody to outlive.
pub(super) async fn tie(engine: &Engine, container: &str) -> Result<Lifeline> {
    let options = AttachContainerOptions {
        stream: true,
        stdin: true,
        ..AttachContainerOptions::default()
    };
    let connection = engine.api.attach_container(container, Some(options)).await;
    Ok(Lifeline {
        _connection: Mutex::new(connection.map_err(|e| explain("attach to a container", e))?),
    })
}
