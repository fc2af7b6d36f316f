//! Builds images from Dockerfiles with the builder of the engine.
//!
//! The steps share the network of a sandbox, whose only connection is the relay of a build. The builder limits nothing
//! but memory and processors, so the limits of builds are set on the container of each step as soon as it exists.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use bollard::errors::Error;
use bollard::models::ContainerUpdateBody;
use bollard::query_parameters::BuildImageOptions;
use futures::StreamExt;

use super::archive::{self, Ids};
use super::disk::DiskWatch;
use super::engine::Engine;
use super::error::to_sandbox_error;
use super::{images, owner, size};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{ImageBuild, Result};

pub(super) async fn build(engine: &Engine, build: &ImageBuild<'_>) -> Result<()> {
    if engine.podman {
        let message = "build an image: Podman cannot limit the network of the build";
        return Err(SandboxError::input(message)
            .hint("build it with `podman build`, and name it with --image"));
    }
    for name in build.images {
        images::check_reference(engine, name).await?;
    }
    let below = match build.base {
        Some(name) => size::steps(engine, name).await?,
        None => 0,
    };
    // The image has no owner, so that the reaper leaves it alone.
    let labels = HashMap::from([
        (owner::KIND.to_owned(), "dockerfile".to_owned()),
        (owner::BASE_STEPS.to_owned(), below.to_string()),
    ]);
    let memory = i32::try_from(build.limits.memory).unwrap_or(i32::MAX);
    let options = BuildImageOptions {
        dockerfile: build.dockerfile.to_owned(),
        t: Some(images::state_tag(build.state)),
        nocache: build.rebuild,
        forcerm: true,
        memory: Some(memory),
        memswap: Some(memory),
        buildargs: Some(build.args.clone().into_iter().collect()),
        labels: Some(labels),
        networkmode: Some(network_mode(build)),
        target: build.target.unwrap_or_default().to_owned(),
        ..BuildImageOptions::default()
    };
    let context = archive::owned(build.context, PathBuf::new(), Ids::ROOT);
    let context = bollard::body_try_stream(context);
    let api = engine.long_timeout();
    let mut events = std::pin::pin!(api.build_image(options, None, Some(context)));
    let mut watch: Option<Arc<DiskWatch>> = None;
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| failed(error, watch.as_deref()))?;
        let Some(text) = event.stream else { continue };
        (build.log)(&text);
        if let Some(container) = text.trim().strip_prefix("---> Running in ") {
            watch = limit_step(engine, build, container).await?.or(watch);
        }
    }
    Ok(())
}

fn network_mode(build: &ImageBuild<'_>) -> String {
    format!("container:{}", build.network.id)
}

/// Limits the container of a step. Returns `None` if it is gone, as after an instruction that runs nothing.
async fn limit_step(
    engine: &Engine,
    build: &ImageBuild<'_>,
    container: &str,
) -> Result<Option<Arc<DiskWatch>>> {
    // The output of a step can name any container, but only steps of this build have its network.
    let is_step = inspect(engine, container).await.is_some_and(|state| {
        let mode = state.host_config.and_then(|host| host.network_mode);
        mode.as_deref() == Some(&*network_mode(build))
    });
    if !is_step {
        return Ok(None);
    }
    let limits = build.limits;
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let update = ContainerUpdateBody {
        memory: Some(whole(limits.memory)),
        memory_swap: Some(whole(limits.memory)),
        pids_limit: Some(whole(limits.processes)),
        nano_cpus: Some((limits.cpus * 1e9) as i64),
        ..ContainerUpdateBody::default()
    };
    if let Err(error) = engine.api.update_container(container, update).await {
        let state = inspect(engine, container).await.and_then(|it| it.state);
        return match state.and_then(|state| state.running) {
            Some(true) => Err(to_sandbox_error("limit a step of the build", error)),
            _ => Ok(None),
        };
    }
    Ok(Some(DiskWatch::start(engine, container, limits, true)))
}

async fn inspect(
    engine: &Engine,
    container: &str,
) -> Option<bollard::models::ContainerInspectResponse> {
    engine.api.inspect_container(container, None).await.ok()
}

/// Converts the error of a build. An error that is not about the connection or the machine is that of an instruction.
fn failed(error: Error, watch: Option<&DiskWatch>) -> SandboxError {
    let mut failed = to_sandbox_error("build the image", error);
    if let Some(why) = watch.and_then(DiskWatch::why) {
        failed.message.push_str(&format!("; it was ended: {why}"));
    }
    if !matches!(
        failed.kind,
        ErrorKind::Unavailable | ErrorKind::Exhausted(_)
    ) {
        failed.kind = ErrorKind::Build;
    }
    failed
}
