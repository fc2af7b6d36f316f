//! Images: base images, saved states and forks. Finds, pulls and removes them.

use bollard::models::ImageInspect;
use bollard::query_parameters::{CreateImageOptions, RemoveImageOptions, TagImageOptions};
use futures::StreamExt;
use sha2::{Digest, Sha256};

use super::engine::Engine;
use super::error::{EngineResult, to_sandbox_error};
use super::registry_answers::{self, RegistryAnswer};
use super::settings::Pull;
use crate::error::{ErrorKind, SandboxError};
use crate::hex::hex;
use crate::sandbox::Result;

/// An image that a container starts from.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub name: String,
    /// Whether the image was not made by testwright, so that its users may write to unknown folders.
    pub foreign: bool,
    /// Whether it is the saved state of a sandbox, which contains testwright's folders already.
    pub state: bool,
}

/// Repository of states that are being saved.
pub(super) const UNFINISHED: &str = "testwright/unfinished";

/// Repository of images that were built from Dockerfiles, and the start of the names of such states.
const BUILT: &str = "testwright/dockerfile";
const BUILT_STATE: &str = "dockerfile-";

/// Returns the tag of a saved state. If the name is not a valid tag, its digest replaces it.
pub(super) fn state_tag(name: &str) -> String {
    if let Some(key) = name.strip_prefix(BUILT_STATE) {
        return format!("{BUILT}:{key}");
    }
    let tag = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if tag && starts && name.len() <= 128 {
        return format!("testwright/state:{name}");
    }
    let digest = Sha256::digest(name.as_bytes());
    format!("testwright/state:{}", hex(&digest))
}

pub(super) async fn present(engine: &Engine, name: &str) -> Result<bool> {
    Ok(id(engine, name).await?.is_some())
}

/// Returns the digest of an image if it exists.
pub(super) async fn id(engine: &Engine, name: &str) -> Result<Option<String>> {
    let image = inspect(engine, name).await?;
    Ok(image.map(|image| image.id.unwrap_or_default()))
}

pub(super) async fn inspect(engine: &Engine, name: &str) -> Result<Option<ImageInspect>> {
    let image = engine.api.inspect_image(name).await;
    image.if_exists(&format!("look for image {name}"))
}

pub(super) async fn tag(engine: &Engine, id: &str, name: &str) -> Result<()> {
    let (repo, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    let options = TagImageOptions {
        repo: Some(repo.to_owned()),
        tag: Some(tag.to_owned()),
    };
    let result = engine.api.tag_image(id, Some(options)).await;
    result.doing(&format!("name an image {name}"))
}

/// Removes an image if possible.
pub(super) async fn discard(engine: &Engine, name: &str) {
    if let Err(error) = remove(engine, name).await {
        tracing::debug!(%error, "an image stays while it is in use");
    }
}

/// Returns the names of the images with CPython `version`, the preferred first.
fn bases(engine: &Engine, version: &str) -> Vec<String> {
    match &engine.settings.base {
        Some(template) => vec![template.replace("{python}", version)],
        None => vec![
            format!("testwright/python:{version}"),
            format!("python:{version}-bookworm"),
            format!("python:{version}"),
        ],
    }
}

/// Returns whether a registry may have an image of this name; those of testwright are made on this machine.
fn is_pullable(name: &str) -> bool {
    !name.starts_with("testwright/")
}

/// Returns the name of an image that the engine has, or that a registry has: it is pulled from there, or only asked for.
async fn find_base(engine: &Engine, version: &str, pulls: bool) -> Result<String> {
    let names = bases(engine, version);
    for name in &names {
        if present(engine, name).await? {
            if pulls {
                refresh(engine, name).await?;
            }
            return Ok(name.clone());
        }
    }
    let mut why = String::new();
    if engine.settings.pull != Pull::Never {
        for name in names.iter().filter(|name| is_pullable(name)) {
            let refused = match pulls {
                true => pull(engine, name).await.err().map(|e| e.to_string()),
                false => ask_registry(engine, name).await.refused,
            };
            match refused {
                None => return Ok(name.clone()),
                Some(refused) => why = format!("; {refused}"),
            }
        }
    }
    let names = names.join(" or ");
    let what = format!(
        "there is no base image for Python {version}: the engine does not have {names}{why}"
    );
    Err(SandboxError::not_found(what).hint(format!(
        "run `docker pull python:{version}-bookworm`, or without a registry `sandboxes/base-images/make-base-image --python {version}`"
    )))
}

pub(super) async fn python(engine: &Engine, version: &str) -> Result<Image> {
    Ok(Image {
        name: find_base(engine, version, true).await?,
        foreign: engine.settings.base.is_some(),
        state: false,
    })
}

/// Checks like [`python`], but asks the registry instead of pulling from it.
pub(super) async fn check_python(engine: &Engine, version: &str) -> Result<()> {
    find_base(engine, version, false).await.map(drop)
}

async fn ask_registry(engine: &Engine, name: &str) -> RegistryAnswer {
    let file = engine.settings.registry_answers.as_deref();
    if let Some(answer) = file.and_then(|file| registry_answers::find(file, name)) {
        return answer;
    }
    let api = engine.short_timeout();
    let response = api.inspect_registry_image(name, None).await;
    let response = response.doing(&format!("ask the registry for {name}"));
    let refused = response.err().map(|error| error.to_string());
    let answer = RegistryAnswer::now(refused);
    if let Some(file) = file {
        registry_answers::store(file, name, answer.clone());
    }
    answer
}

/// Repositories of copies of sandboxes, which contain the code of their sandbox.
const COPY_REPOSITORIES: [&str; 3] = ["testwright/state", UNFINISHED, "testwright/fork"];

/// Returns whether an image belongs to one of these repositories by its name, in any registry.
fn is_in(name: &str, repositories: &[&str]) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    let repository = match name.rsplit_once(':') {
        // A colon before a path separates a port.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    };
    repositories.iter().any(|own| {
        let before = repository.strip_suffix(own);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

/// Returns whether an image belongs to one of these repositories, even if it is given by its id or by another name.
async fn belongs_to(engine: &Engine, name: &str, repositories: &[&str]) -> bool {
    let image = engine.api.inspect_image(name).await.ok();
    let tags = image.and_then(|image| image.repo_tags).unwrap_or_default();
    is_in(name, repositories) || tags.iter().any(|tag| is_in(tag, repositories))
}

/// Refuses copies of sandboxes. A copy contains the code of its repository, which no other repository may read.
async fn refuse_copy(engine: &Engine, name: &str) -> Result<()> {
    if !belongs_to(engine, name, &COPY_REPOSITORIES).await {
        return Ok(());
    }
    let message = format!("the image {name} is the saved state of a sandbox");
    Err(SandboxError::input(message).hint("omit --image to use the environment of the repository"))
}

/// Checks an image that a repository's Dockerfile names, and pulls it if needed.
pub(super) async fn check_reference(engine: &Engine, name: &str) -> Result<()> {
    let refused = |why: &str| {
        SandboxError::input(format!("the image {name} cannot be used: {why}"))
            .hint("name another image in the Dockerfile")
    };
    // The image may contain the code of another repository.
    if belongs_to(engine, name, &[BUILT]).await {
        return Err(refused("testwright built it from a Dockerfile"));
    }
    named(engine, name).await?;
    let image = engine.api.inspect_image(name).await;
    let image = image.doing(&format!("look for image {name}"))?;
    let triggers = image.config.and_then(|config| config.on_build);
    match triggers.is_none_or(|lines| lines.is_empty()) {
        true => Ok(()),
        false => Err(refused("its ONBUILD instructions cannot be checked")),
    }
}

/// Returns an image that the user named.
pub(super) async fn named(engine: &Engine, name: &str) -> Result<Image> {
    refuse_copy(engine, name).await?;
    if present(engine, name).await? {
        refresh(engine, name).await?;
    } else if engine.settings.pull == Pull::Never {
        return Err(
            SandboxError::not_found(format!("the engine does not have the image {name}"))
                .hint(format!("run `docker pull {name}`, or allow pulling")),
        );
    } else {
        pull(engine, name).await?;
    }
    Ok(Image {
        name: name.to_owned(),
        foreign: true,
        state: false,
    })
}

pub(super) async fn saved(engine: &Engine, name: &str) -> Result<Image> {
    let tag = state_tag(name);
    if present(engine, &tag).await? {
        return Ok(Image {
            name: tag,
            foreign: false,
            state: true,
        });
    }
    Err(absent(name, &tag))
}

pub(super) fn absent(name: &str, tag: &str) -> SandboxError {
    SandboxError::not_found(format!(
        "the saved state {name} is missing: the engine has no image {tag}"
    ))
    .hint("build the environment again")
}

/// Pulls an image that the engine has, if the settings ask for it before each use.
async fn refresh(engine: &Engine, name: &str) -> Result<()> {
    match engine.settings.pull == Pull::Always && is_pullable(name) {
        true => pull(engine, name).await,
        false => Ok(()),
    }
}

async fn pull(engine: &Engine, name: &str) -> Result<()> {
    let doing = format!("pull image {name}");
    let last = name.rsplit('/').next().unwrap_or(name);
    let options = CreateImageOptions {
        from_image: Some(name.to_owned()),
        tag: (!last.contains([':', '@'])).then(|| "latest".to_owned()),
        ..CreateImageOptions::default()
    };
    let api = engine.long_timeout();
    let mut progress = std::pin::pin!(api.create_image(Some(options), None, None));
    while let Some(step) = progress.next().await {
        step.map_err(|e| {
            let mut error = to_sandbox_error(&doing, e);
            if error.kind == ErrorKind::System {
                error.kind = ErrorKind::NotFound;
            }
            error.hint("check the name of the image, and that the engine can reach the registry")
        })?;
    }
    Ok(())
}

/// Removes an image by name or id; a missing one is not an error.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<()> {
    let options = RemoveImageOptions {
        force: true,
        ..RemoveImageOptions::default()
    };
    let removed = engine.api.remove_image(name, Some(options), None).await;
    removed.if_exists(&format!("remove image {name}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_copies_are_recognized_by_name() {
        for name in [
            "testwright/state:env-1",
            "testwright/state",
            "testwright/state@sha256:00",
            "testwright/state:env-1@sha256:00",
            "docker.io/testwright/state:env-1",
            "localhost:5000/testwright/state",
            "testwright/unfinished:1",
            "localhost/testwright/fork:1",
        ] {
            assert!(is_in(name, &COPY_REPOSITORIES), "{name}");
        }
        for name in [
            "testwright/python:3.11",
            "testwright/statement:1",
            "mytestwright/state:1",
            "python:3.11",
            "sha256:00",
        ] {
            assert!(!is_in(name, &COPY_REPOSITORIES), "{name}");
        }
    }

    #[test]
    fn state_tags_are_valid() {
        assert_eq!(state_tag("env-0a1b.2"), "testwright/state:env-0a1b.2");
        let odd = state_tag("an odd/name");
        assert!(
            odd.starts_with("testwright/state:") && odd.len() == "testwright/state:".len() + 64
        );
        assert_ne!(odd, state_tag("an odd_name "));
        assert_ne!(state_tag(".x"), "testwright/state:.x");
        assert_eq!(state_tag("dockerfile-0a"), "testwright/dockerfile:0a");
    }
}
