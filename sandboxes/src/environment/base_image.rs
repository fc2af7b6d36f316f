//! Base images built from a Dockerfile or a devcontainer of the repository, if the user asks for that.
//!
//! The steps of the Dockerfile have the network and the limits of a build. The image is cached like a layer of
//! requirements, by its Dockerfile and the files that it may copy.

mod devcontainer;
mod dockerfile;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::lease::Lease;
use super::log::{Log, LogLines};
use super::records::{self, Layer};
use super::steps::{self, failure, keep_end};
use super::{BuildEvent, BuildSettings, Progress, lock, locked};
use crate::egress::{Egress, Host};
use crate::error::{ErrorKind, SandboxError};
use crate::hex::hex;
use crate::pattern::Pattern;
use crate::repository::{Source, Tree};
use crate::sandbox::{Backend, ImageBuild, Result, Sandbox, SandboxSource, Spec};
use crate::starting::retry_start;
use dockerfile::References;

/// Version of the cache key.
const FORMAT: u32 = 1;

/// Path of a Dockerfile that is not part of its context.
const OUTSIDE: &str = ".testwright.Dockerfile";

/// Hosts of PyPI. The steps reach them through the proxy, because the address of the package index changes with each
/// build, and the engine would run all steps again.
const PYPI: [&str; 2] = ["pypi.org", "files.pythonhosted.org"];

/// An image that was built from a Dockerfile. It is not evicted while this value exists.
#[derive(Debug)]
pub struct BaseImage {
    /// Name of the image, for [`crate::recipe::Overrides::image`].
    pub name: String,
    _lease: Lease,
}

/// A Dockerfile of the repository, and how to build it.
#[derive(Debug, Default, PartialEq)]
struct ImageSource {
    /// Text of the Dockerfile.
    dockerfile: String,
    /// Path of the Dockerfile in the repository; `None` if it is not a file there.
    path: Option<String>,
    /// Folder of the files that it may copy; empty for the root of the repository.
    context: String,
    args: BTreeMap<String, String>,
    target: Option<String>,
}

/// Builds the image of a Dockerfile or a `devcontainer.json` of the repository, or finds it in the cache. `pythons` are
/// the versions that the backend has, see [`crate::recipe::available_pythons`].
///
/// # Errors
///
/// Kind `Input` if the backend has no images, the file is missing or invalid, or it uses something that it may not use.
/// Kind `Build` if an instruction fails; the message has its last lines of output and the log.
pub async fn build_base_image(
    backend: &dyn Backend,
    source: &Source,
    file: &str,
    pythons: &[String],
    settings: &BuildSettings,
    progress: Progress<'_>,
) -> Result<BaseImage> {
    let image = ImageSource::find(&source.tree()?, file)?;
    let references = dockerfile::references(&image.dockerfile, &image.args)?;
    let state = image.state_name(backend, source, &references);
    let name = backend.image_name(&state)?;
    let folder = settings.cache.join("environments");
    crate::private::create_closed(&folder)?;
    let record = records::path(&folder, &state);
    let _lock = lock(&folder.join(format!("{state}.lock")), progress).await?;
    let is_cached = !settings.rebuild
        && records::read::<Layer>(&record).await.is_some()
        && backend.has_saved(&state).await?;
    if !is_cached {
        let build = BaseImageBuild {
            backend,
            archive: &source.archive,
            image: &image,
            references: &references,
            state: &state,
            settings,
        };
        let step = format!("build the image of {file}");
        let begun = Instant::now();
        progress(BuildEvent::Started { step: step.clone() });
        build.run(&step, pythons).await?;
        let seconds = begun.elapsed().as_secs_f64();
        progress(BuildEvent::Finished { step, seconds });
        let layer = Layer {
            notes: Vec::new(),
            bytes: backend.saved_bytes(&state).await?,
            backend: backend.name().to_owned(),
        };
        records::write(&record, &layer).await?;
    }
    Ok(BaseImage {
        name,
        _lease: Lease::take(&folder, &state)?,
    })
}

impl ImageSource {
    fn find(tree: &Tree, file: &str) -> Result<ImageSource> {
        let missing = |path: &str| {
            let message = format!("the repository has no file {path}");
            SandboxError::input(message)
                .hint("pass a Dockerfile or a devcontainer.json, relative to the repository's root")
        };
        let read = |path: &str| tree.text(path)?.ok_or_else(|| missing(path));
        let file = crate::recipe::join_path("", file).ok_or_else(|| missing(file))?;
        let text = read(&file)?;
        if !file.ends_with(".json") {
            return Ok(ImageSource {
                dockerfile: text,
                path: Some(file),
                ..ImageSource::default()
            });
        }
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut image = devcontainer::parse(&text, folder)?;
        if let Some(path) = &image.path {
            image.dockerfile = read(path)?;
        }
        Ok(image)
    }

    fn state_name(&self, backend: &dyn Backend, source: &Source, refs: &References) -> String {
        let context = refs.copies_files.then_some((&source.digest, &self.context));
        let key = json!({
            "format": FORMAT,
            "layout": backend.layout(),
            "dockerfile": self.dockerfile,
            "args": self.args,
            "target": self.target,
            "context": context,
        });
        let digest = Sha256::digest(key.to_string().as_bytes());
        format!("{}{}", records::IMAGE, hex(&digest[..10]))
    }

    /// Returns the path of the Dockerfile in the archive of the context.
    fn path_in_context(&self, refs: &References) -> &str {
        let inside = self.path.as_deref().filter(|_| refs.copies_files);
        let inside = inside.and_then(|path| match self.context.as_str() {
            "" => Some(path),
            folder => path.strip_prefix(folder)?.strip_prefix('/'),
        });
        inside.unwrap_or(OUTSIDE)
    }
}

/// A build of a base image.
struct BaseImageBuild<'a> {
    backend: &'a dyn Backend,
    /// Archive of the repository.
    archive: &'a Path,
    image: &'a ImageSource,
    references: &'a References,
    state: &'a str,
    settings: &'a BuildSettings,
}

impl BaseImageBuild<'_> {
    /// Builds the image in the network of a sandbox that runs the relay for packages.
    async fn run(&self, step: &str, pythons: &[String]) -> Result<()> {
        let log = self.settings.log(self.state)?;
        let egress = self.settings.egress()?;
        let context = self.write_context().await?;
        let version = pythons.last().map_or("3.11", String::as_str);
        let spec = Spec {
            limits: self.settings.limits.clone(),
            ..Spec::new(SandboxSource::Python(version.to_owned()), "build")
        };
        let sandbox = retry_start(|| self.backend.start(&spec)).await?;
        let python = format!("python{version}");
        let text = Mutex::default();
        let output = BuildOutput { log: &log, text };
        log.line(&format!("== {step}"));
        let building = self.build(sandbox.as_ref(), &python, &egress, context.path(), &output);
        let deadline = self.settings.step_deadline;
        let built = match tokio::time::timeout(deadline, building).await {
            Ok(built) => built.map_err(|error| output.failure(step, &egress, error)),
            Err(_) => {
                let what = format!("`{step}` timed out after {} s", deadline.as_secs());
                Err(steps::timeout(&log, what))
            }
        };
        let stopped = sandbox.stop().await;
        tokio::task::spawn_blocking(move || egress.finish()).await?;
        built.and(stopped)
    }

    async fn build(
        &self,
        sandbox: &dyn Sandbox,
        python: &str,
        egress: &Egress,
        context: &Path,
        output: &BuildOutput<'_>,
    ) -> Result<()> {
        let gateway = egress.attach(sandbox, python).await?;
        let hosts: Result<Vec<Host>> = match self.settings.index_url {
            None => PYPI.iter().map(|host| Host::parse(host)).collect(),
            Some(_) => Ok(Vec::new()),
        };
        let _open = egress.allow_temporarily(hosts?);
        // The engine neither saves the proxies in the image nor makes them part of its cache keys.
        let proxies = egress.variables(&gateway).into_iter().filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            matches!(&*name, "http_proxy" | "https_proxy" | "no_proxy")
        });
        let mut args = self.image.args.clone();
        args.extend(proxies);
        let build = ImageBuild {
            state: self.state,
            context,
            dockerfile: self.image.path_in_context(self.references),
            images: &self.references.images,
            base: self.references.base.as_deref(),
            target: self.image.target.as_deref(),
            args: &args,
            network: sandbox.info(),
            limits: &self.settings.limits,
            rebuild: self.settings.rebuild,
            log: &|piece: &str| output.print(piece),
        };
        self.backend.build_image(&build).await
    }

    /// Writes the archive with the Dockerfile, and with the files of the context if they are used.
    async fn write_context(&self) -> Result<tempfile::NamedTempFile> {
        let file = tempfile::NamedTempFile::new_in(&self.settings.cache)?;
        let to = file.reopen()?;
        let archive = self.references.copies_files.then_some(self.archive);
        let (archive, folder) = (archive.map(Path::to_owned), self.image.context.clone());
        let path = self.image.path_in_context(self.references);
        let dockerfile = (path == OUTSIDE).then(|| self.image.dockerfile.clone());
        tokio::task::spawn_blocking(move || {
            write_context(archive.as_deref(), &folder, dockerfile.as_deref(), to)
        })
        .await??;
        Ok(file)
    }
}

/// Writes the files of a folder in an archive, with paths relative to the folder, and the text of a Dockerfile.
fn write_context(
    archive: Option<&Path>,
    folder: &str,
    dockerfile: Option<&str>,
    to: File,
) -> io::Result<()> {
    let mut builder = tar::Builder::new(BufWriter::with_capacity(1 << 18, to));
    if let Some(archive) = archive {
        for entry in tar::Archive::new(File::open(archive)?).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let inside = path.strip_prefix(folder).map(PathBuf::from);
            let Some(path) = inside.ok().filter(|path| !path.as_os_str().is_empty()) else {
                continue;
            };
            let mut header = entry.header().clone();
            match entry.link_name()?.map(|target| target.into_owned()) {
                Some(target) => builder.append_link(&mut header, path, target)?,
                None => builder.append_data(&mut header, path, &mut entry)?,
            }
        }
    }
    if let Some(text) = dockerfile {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        builder.append_data(&mut header, OUTSIDE, text.as_bytes())?;
    }
    builder.into_inner()?.flush()
}

/// Signs of a Dockerfile that needs another builder, or is wrong.
static OTHER_BUILDER: Pattern =
    Pattern::new("BuildKit|parse error|[Uu]nknown instruction|[Uu]nknown flag");

/// The output of a build, whose end explains a failure.
struct BuildOutput<'a> {
    log: &'a Log,
    text: Mutex<(LogLines, String)>,
}

impl BuildOutput<'_> {
    fn print(&self, piece: &str) {
        let mut text = locked(&self.text);
        let (lines, text) = &mut *text;
        let whole = lines.push(piece.as_bytes());
        if !whole.is_empty() {
            self.log.line(whole.trim_end_matches('\n'));
            text.push_str(&whole);
            keep_end(text);
        }
    }

    /// Returns the error of a failed build, with the last lines of its output.
    fn failure(&self, step: &str, egress: &Egress, error: SandboxError) -> SandboxError {
        if error.kind != ErrorKind::Build {
            return error;
        }
        let reason = error.message.trim_start_matches("build the image: ");
        let notices = egress.take_notices();
        for line in notices.iter().map(String::as_str).chain([reason]) {
            self.print(&format!("\n{line}\n"));
        }
        let text = locked(&self.text);
        let mut failed = failure(self.log, format!("`{step}` failed"), &text.1);
        if OTHER_BUILDER.is_match(reason) {
            failed.hint = Some("correct the Dockerfile; if it needs BuildKit, build it with `docker build`, and name the image with --image".to_owned());
        }
        failed
    }
}

#[cfg(test)]
mod tests;
