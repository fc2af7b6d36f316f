//! Copies of a container's present state: kept under a name (`save`), or running beside it (`fork`).

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerConfig;
use bollard::query_parameters::CommitContainerOptions;

use super::archive::Ids;
use super::container::{Container, WRITABLE};
use super::error::explain;
use super::images::{self, Image};
use super::owner;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Result, Sandbox, output};

/// Keeps the state as an image.
pub(super) async fn save(container: &Container, name: &str) -> Result<()> {
    hand_over(container).await?;
    let tag = images::state_tag(name);
    let before = container
        .engine
        .api
        .inspect_image(&tag)
        .await
        .ok()
        .and_then(|image| image.id);
    let mut labels = HashMap::from([
        (owner::KIND.to_owned(), "state".to_owned()),
        (owner::OWNER.to_owned(), String::new()),
        (owner::RUN.to_owned(), String::new()),
        ("testwright.state".to_owned(), name.to_owned()),
    ]);
    if container.image.foreign {
        labels.insert(owner::FOREIGN.to_owned(), "1".to_owned());
    }
    // The engine sets the tag last, so a commit that is cut short leaves no state.
    let now = commit(container, &tag, labels).await?;
    if let Some(before) = before.filter(|before| *before != now) {
        // A sandbox may still run from the state that is replaced.
        if let Err(error) = images::remove(&container.engine, &before).await {
            tracing::debug!(%error, "a replaced state stays while it is in use");
        }
    }
    Ok(())
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
        pause: false,
        ..CommitContainerOptions::default()
    };
    let config = ContainerConfig {
        labels: Some(labels),
        ..ContainerConfig::default()
    };
    let committed = container
        .engine
        .patient()
        .commit_container(options, config)
        .await;
    let id = committed
        .map_err(|e| explain(&format!("commit the container as {image}"), e))?
        .id;
    Ok(id)
}

/// What root built becomes the property of the user that tools run as, where tools write.
async fn hand_over(container: &Container) -> Result<()> {
    let Ids { uid, gid } = container.tool_user()?;
    if container.user() != Ids::ROOT || uid == 0 {
        return Ok(());
    }
    let script = format!(
        "find {} ! -user {uid} -exec chown -h {uid}:{gid} {{}} +",
        WRITABLE[0]
    );
    let mut command = Command::shell(script);
    command.directory = Some("/".into());
    let done = output(container, &command, Duration::from_secs(600)).await?;
    if done.code == 0 {
        return Ok(());
    }
    Err(SandboxError::new(
        ErrorKind::System,
        format!(
            "give the workspace to user {uid}: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        ),
    ))
}

pub(super) async fn fork(container: &Container) -> Result<Box<dyn Sandbox>> {
    let image = format!("testwright/fork:{}", super::container::unique());
    let mut labels = owner::labels("fork", &container.spec.purpose);
    if container.image.foreign {
        labels.insert(owner::FOREIGN.to_owned(), "1".to_owned());
    }
    commit(container, &image, labels).await?;
    let start = Image {
        name: image.clone(),
        foreign: container.image.foreign,
    };
    let copy = Container::start(
        &container.engine,
        container.spec.clone(),
        start,
        Some(image),
    )
    .await?;
    Ok(Box::new(copy))
}
