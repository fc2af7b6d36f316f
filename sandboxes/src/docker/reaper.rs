//! Removes leftovers of killed processes: containers and fork images with testwright's labels whose owner is gone.
//! Never touches objects without these labels, with a running owner, or from another machine.

use std::collections::HashMap;

use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{ListContainersOptions, ListImagesOptions};

use super::engine::Engine;
use super::error::EngineResult;
use super::owner::{KIND, OWNER, Owner, RUN};
use super::{container_guard, images};
use crate::sandbox::Result;

/// Removes what belongs to processes that are gone. Returns one line for each removed object.
pub(super) async fn clean(engine: &Engine) -> Result<Vec<String>> {
    remove_where(engine, |owner, in_use| owner.is_gone(in_use)).await
}

/// Removes what belongs to this process.
pub(super) async fn remove_own(engine: &Engine) -> Result<()> {
    let this = Owner::this();
    remove_where(engine, |owner, _| *owner == this)
        .await
        .map(drop)
}

/// Removes the objects that `whose` selects, given the owner and whether the object still runs.
async fn remove_where(
    engine: &Engine,
    whose: impl Fn(&Owner, bool) -> bool,
) -> Result<Vec<String>> {
    let doing = "find leftovers of earlier runs";
    let mut removed = Vec::new();
    let filters = HashMap::from([("label".to_owned(), vec![OWNER.to_owned()])]);
    let options = ListContainersOptions {
        all: true,
        filters: Some(filters.clone()),
        ..ListContainersOptions::default()
    };
    let containers = engine.api.list_containers(Some(options)).await;
    let containers = containers.doing(doing)?;
    let mut removals = Vec::new();
    for container in containers {
        let running = container.state == Some(ContainerSummaryStateEnum::RUNNING);
        let labels = container.labels.unwrap_or_default();
        if let (Some(id), true) = (container.id, owned(&labels, running, &whose)) {
            let purpose = labels.get(RUN).cloned().unwrap_or_default();
            removals.push(async move {
                container_guard::remove(engine, &id).await?;
                Ok::<_, crate::SandboxError>(format!(
                    "container {} ({purpose})",
                    id.get(..12).unwrap_or(&id)
                ))
            });
        }
    }
    for line in futures::future::join_all(removals).await {
        removed.push(line?);
    }

    let options = ListImagesOptions {
        filters: Some(filters),
        ..ListImagesOptions::default()
    };
    let images = engine.api.list_images(Some(options)).await.doing(doing)?;
    for image in images {
        if !owned(&image.labels, false, &whose) {
            continue;
        }
        let fork = image.labels.get(KIND).is_some_and(|kind| kind == "fork");
        let unfinished = image
            .repo_tags
            .iter()
            .filter(|tag| tag.starts_with(images::UNFINISHED));
        // Only the tags are removed, because the same image may also be a finished state.
        for tag in unfinished {
            images::remove(engine, tag).await?;
            removed.push(format!("incomplete state {tag}"));
        }
        if fork {
            images::remove(engine, &image.id).await?;
            removed.push(format!(
                "fork image {}",
                image.id.get(..19).unwrap_or(&image.id)
            ));
        }
    }
    Ok(removed)
}

fn owned(
    labels: &HashMap<String, String>,
    in_use: bool,
    whose: &impl Fn(&Owner, bool) -> bool,
) -> bool {
    labels
        .get(OWNER)
        .and_then(|text| Owner::parse(text))
        .is_some_and(|owner| whose(&owner, in_use))
}
