//! Copies of a container's present state: saved under a name (`save`), or running beside it (`fork`).

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerConfig;
use bollard::query_parameters::CommitContainerOptions;

use super::archive::Ids;
use super::container::{Container, tool_user};
use super::container_config::WRITABLE;
use super::error::EngineResult;
use super::images::{self, Image};
use super::incremental_fork;
use super::owner;
use super::size;
use super::stop_processes;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Result, Sandbox, output, unique_id};

/// Saves the state as an image. It gets its name last, so an interrupted save leaves no state.
pub(super) async fn save(container: &Container, name: &str) -> Result<()> {
    stop_processes::end_processes(container).await?;
    chown_workspace(container).await?;
    let engine = &container.engine;
    let tag = images::state_tag(name);
    let unfinished = format!("{}:{}", images::UNFINISHED, unique_id());
    let mut labels = owner::labels("state", "", container.image.foreign);
    labels.insert("testwright.state".to_owned(), name.to_owned());
    let below = size::steps(engine, &container.image_id).await?;
    labels.insert(owner::BASE_STEPS.to_owned(), below.to_string());
    let work = async {
        let first = commit(container, &unfinished, labels.clone()).await?;
        let id = match repaired(container, &unfinished, labels).await? {
            Some(second) => {
                images::discard(engine, &first).await;
                second
            }
            None => first,
        };
        let before = images::id(engine, &tag).await?;
        images::tag(engine, &id, &tag).await?;
        if let Some(before) = before.filter(|before| *before != id) {
            // A sandbox may still run from the replaced state.
            images::discard(engine, &before).await;
        }
        Ok(())
    };
    let result = work.await;
    images::discard(engine, &unfinished).await;
    result
}

/// Checks a commit of an engine whose commits may be wrong. Repairs it by a second commit if needed, and returns the id
/// of that.
async fn repaired(
    container: &Container,
    image: &str,
    labels: HashMap<String, String>,
) -> Result<Option<String>> {
    if !container.engine.has_unreliable_commits().await? {
        return Ok(None);
    }
    let start = Image {
        name: image.to_owned(),
        foreign: container.image.foreign,
        state: true,
    };
    let copy = Container::start(&container.engine, container.spec.clone(), start, None).await?;
    let mended = match incremental_fork::repair(container, &copy).await {
        Ok(true) => commit(&copy, image, labels).await.map(Some),
        Ok(false) => Ok(None),
        Err(e) if e.kind == ErrorKind::System => {
            tracing::warn!(error = %e, "a saved state could not be compared with its original");
            Ok(None)
        }
        Err(e) => Err(e),
    };
    copy.stop().await?;
    mended
}

async fn commit(
    container: &Container,
    image: &str,
    labels: HashMap<String, String>,
) -> Result<String> {
    let (repo, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
    let options = CommitContainerOptions {
        container: Some(container.id().to_owned()),
        repo: Some(repo.to_owned()),
        tag: Some(tag.to_owned()),
        // Files must not change while they are read.
        pause: true,
        ..CommitContainerOptions::default()
    };
    let config = ContainerConfig {
        labels: Some(labels),
        ..ContainerConfig::default()
    };
    let api = container.engine.long_timeout();
    let committed = api.commit_container(options, config).await;
    Ok(committed
        .doing(&format!("commit the container as {image}"))?
        .id)
}

/// Gives the files that root built to the tools' user, in folders that tools write.
async fn chown_workspace(container: &Container) -> Result<()> {
    let Ids { uid, gid } = tool_user(&container.engine)?;
    if container.user != Ids::ROOT || uid == 0 {
        return Ok(());
    }
    let script = format!(
        "find {} ! -user {uid} -exec chown -h {uid}:{gid} {{}} +",
        WRITABLE[0]
    );
    let mut command = Command::shell(script);
    command.directory = Some("/".into());
    let result = output(container, &command, Duration::from_secs(600)).await?;
    if result.code == 0 {
        return Ok(());
    }
    Err(SandboxError::system(format!(
        "give the workspace to user {uid}: {}",
        String::from_utf8_lossy(&result.stderr).trim()
    )))
}

/// Forks a container. Copies only the changes if they are known to be complete, and commits otherwise.
pub(super) async fn fork(container: &Container) -> Result<Box<dyn Sandbox>> {
    if !container.image.foreign && container.user != Ids::ROOT {
        match incremental_fork::fork(container).await {
            Ok(fork) => return Ok(Box::new(fork)),
            Err(e) if matches!(e.kind, ErrorKind::Dead | ErrorKind::Unavailable) => return Err(e),
            Err(error) => tracing::debug!(%error, "forking by a commit"),
        }
    }
    let image = format!("testwright/fork:{}", unique_id());
    let labels = owner::labels("fork", &container.spec.purpose, container.image.foreign);
    commit(container, &image, labels).await?;
    let start = Image {
        name: image.clone(),
        foreign: container.image.foreign,
        state: true,
    };
    let copy = Container::start(
        &container.engine,
        container.spec.clone(),
        start,
        Some(image),
    )
    .await?;
    if container.engine.has_unreliable_commits().await? {
        incremental_fork::repair(container, &copy).await?;
    }
    Ok(Box::new(copy))
}
