//! Environments: a recipe applied to the old code, built once and cached by content.
//!
//! Two states are saved. `deps-…` contains Python, system packages and requirements; commits with the same requirements
//! share it. `env-…` builds on it and adds the code, its install steps, bytecode and the base archive.
//!
//! An environment counts as built once its record is in the cache. The record is written last, so an interrupted build
//! is repeated. Any backend works, through its trait alone. If all environments together exceed their limit, the least
//! recently used are removed.

mod amendments;
mod base_image;
mod before_tests;
mod build;
mod build_isolation;
mod build_sandbox;
mod cache_keys;
mod editable;
mod eviction;
mod failure_hints;
mod fetched;
mod import_folders;
mod install;
mod install_attempt;
mod install_targets;
mod layers;
mod lease;
mod log;
mod metadata;
mod missing;
mod module_packages;
mod omissions;
mod partial_install;
mod project_tests;
mod python_choice;
mod python_fallback;
mod records;
mod removed_features;
mod repair;
mod requirements;
mod rust;
mod scm_version;
mod services;
mod sharing;
mod smoke_test;
mod steps;
mod surroundings;
mod test_sample;
mod trial;
mod uninstalled;
mod verify;
mod without_build;

pub use amendments::{Amendments, Draft, amended_recipe};
pub use base_image::{BaseImage, build_base_image};
pub use eviction::prune;
pub use records::cached_bytes;
pub use sharing::{BuildClaim, SharedEnvironments};
pub use smoke_test::Test as SampledTest;
pub(crate) use steps::secret;
pub use test_sample::{SampleSettings, TestSample, sample_tests};
pub use uninstalled::{NamedPackages, uninstalled};

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::recipe::Recipe;
use crate::repository::{self, Source};
use crate::sandbox::{Backend, Limits, Paths, Result, SandboxSource, Spec};
use build::{BuildInput, Findings};
use cache_keys::Plan;
use lease::Lease;
use sharing::{FetchOutcome, Sharing};

/// A prepared environment: a saved state of a backend, and the facts needed to run tests in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name of the saved state that sandboxes start from.
    pub saved: String,
    /// Recipe that the environment was built from.
    pub recipe: Recipe,
    /// Origin of the recipe: `built-in NAME`, `testwright.toml`, or `detected from …`.
    pub origin: String,
    /// Repository that it was built for, as `owner/name` or the name of a folder. Equal code shares an environment.
    #[serde(default)]
    pub repository: String,
    /// Commit that it was built for.
    #[serde(default)]
    pub commit: Option<String>,
    /// Path of the interpreter inside the sandbox.
    pub python: PathBuf,
    /// Version that the interpreter reports, `X.Y`; known for images too.
    pub python_version: String,
    /// Path of the base archive inside the sandbox (a tar of the tracked files at the base commit).
    pub base_archive: PathBuf,
    /// Environment variables for every process.
    pub env: BTreeMap<String, String>,
    /// Log of the build, on the host.
    pub log: PathBuf,
    /// Whether the environment came from the local cache.
    pub cached: bool,
    /// Whether another machine built it.
    #[serde(skip)]
    pub fetched: bool,
    /// Seconds that the original build took, even if the environment came from a cache.
    pub seconds: f64,
    /// Installed packages, as `name==version`, sorted.
    pub packages: Vec<String>,
    /// Notes for the user, e.g. about a missing system package.
    pub notes: Vec<String>,
    /// Paths inside the sandbox in which it was built.
    pub paths: Paths,
    /// Size on disk in bytes, without the state that `dependencies` names.
    pub bytes: u64,
    /// Name of the saved state that contains its requirements.
    pub dependencies: String,
    /// Name of the backend that stores it.
    pub backend: String,
    /// Lease that prevents its removal while this value, or a clone of it, exists.
    #[serde(skip)]
    lease: Option<Lease>,
}

impl Environment {
    /// Returns the spec of a sandbox for tools: without network, not as root.
    pub fn tool_spec(&self, limits: Limits, purpose: &str) -> Spec {
        Spec {
            limits,
            env: self.env.clone(),
            ..Spec::new(SandboxSource::Saved(self.saved.clone()), purpose)
        }
    }

    /// Returns the interpreter in a sandbox started from this environment. Without its own root file system, every
    /// sandbox has different paths.
    pub fn python_in(&self, paths: &Paths) -> PathBuf {
        relocate(&self.python, &self.paths.environment, &paths.environment)
    }

    /// Returns the base archive in a sandbox started from this environment.
    pub fn base_archive_in(&self, paths: &Paths) -> PathBuf {
        relocate(&self.base_archive, &self.paths.store, &paths.store)
    }
}

fn relocate(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) => to.join(rest),
        Err(_) => path.to_owned(),
    }
}

/// Default limit for all environments of one backend, in bytes: 50 GiB.
pub const CACHE_SIZE: u64 = 50 << 30;

/// Settings for building environments.
#[derive(Debug, Clone)]
pub struct BuildSettings {
    /// Folder for records, logs and downloads.
    pub cache: PathBuf,
    /// The `uv` program. Default: see [`crate::uv::find`].
    pub uv: Option<PathBuf>,
    /// Package index to use instead of PyPI. Its user and password never reach a log.
    pub index_url: Option<String>,
    /// Additional package indexes.
    pub extra_index_urls: Vec<String>,
    /// Proxies to reach package indexes (`http_proxy` etc.). Sandboxes never see them, nor any credentials.
    pub proxies: BTreeMap<String, String>,
    /// Certificates to trust, for builds only.
    pub ca_bundle: Option<PathBuf>,
    /// Use only packages that are in the cache.
    pub offline: bool,
    /// Hosts that a build may reach besides the package indexes, such as `github.com` or `*.example.org`.
    pub allowed_hosts: Vec<String>,
    /// Skip requirements of a detected recipe that cannot be installed, with a note, instead of failing.
    pub keep_going: bool,
    /// Maximum bytes for all environments of one backend and their downloads, which may take at most a tenth of it. The
    /// least recently used environments are removed to make room for a new one, unless they are in use.
    pub cache_size: u64,
    /// Build even if the environment is in the cache.
    pub rebuild: bool,
    /// Keeps what a failed build made, for [`Amendments`]. Its owner calls [`Draft::finish`] at the end.
    pub draft: Option<Arc<Draft>>,
    /// Storage that shares environments with other machines.
    pub shared: Option<Arc<dyn SharedEnvironments>>,
    /// Resource limits of the sandboxes that build the environment.
    pub limits: Limits,
    /// Time limit for one step of a build.
    pub step_deadline: Duration,
    /// Time limit for trying a few tests.
    pub trial_deadline: Duration,
}

impl BuildSettings {
    /// Returns the default settings, with proxies and certificates from the host's environment.
    pub fn new(cache: impl Into<PathBuf>) -> BuildSettings {
        let names = ["http_proxy", "https_proxy", "no_proxy", "all_proxy"];
        let proxies = names
            .into_iter()
            .flat_map(|name| [name.to_owned(), name.to_uppercase()])
            .filter_map(|name| Some((name.clone(), std::env::var(&name).ok()?)))
            .collect();
        let ca_bundle = std::env::var_os("SSL_CERT_FILE")
            .map(PathBuf::from)
            .filter(|p| p.is_file());
        BuildSettings {
            cache: cache.into(),
            uv: None,
            index_url: None,
            extra_index_urls: Vec::new(),
            proxies,
            ca_bundle,
            offline: false,
            allowed_hosts: Vec::new(),
            keep_going: true,
            cache_size: CACHE_SIZE,
            rebuild: false,
            draft: None,
            shared: None,
            limits: Limits {
                memory: 8 << 30,
                processes: 2048,
                file_size: 8 << 30,
                ..Limits::default()
            },
            step_deadline: Duration::from_secs(1800),
            trial_deadline: Duration::from_secs(90),
        }
    }
}

/// Progress of a build.
#[derive(Debug, Clone, PartialEq)]
pub enum BuildEvent {
    /// Another process is building the same environment.
    Waiting,
    /// A step started, e.g. `install requirements`.
    Started {
        /// Name of the step.
        step: String,
    },
    /// A step succeeded.
    Finished {
        /// Name of the step, as in [`BuildEvent::Started`].
        step: String,
        /// Duration of the step, in seconds.
        seconds: f64,
    },
}

/// Callback for events, called from the task that builds.
pub type Progress<'a> = &'a (dyn Fn(BuildEvent) + Send + Sync);

/// Returns the environment of a source, from the cache or built now.
///
/// If the recipe's Python cannot install a pinned requirement, builds with an older one, which is remembered.
///
/// The future is boxed because otherwise every crate that awaits it would compile the whole build code again.
///
/// # Errors
///
/// Kind `Build` if a step fails; the message names the step, its last lines of output and the log. Kind `Input` if the
/// source has no Python files. Also fails if the backend does not answer or the cache cannot be written.
pub fn prepare<'a>(
    backend: &'a dyn Backend,
    source: &'a Source,
    recipe: &'a Recipe,
    origin: &'a str,
    settings: &'a BuildSettings,
    progress: Progress<'a>,
) -> BoxFuture<'a, Result<Environment>> {
    Box::pin(async move {
        require_python_files(source)?;
        let settings = &rust::with_hosts(settings, source)?;
        let mut choice = python_choice::Choice::read(backend, source, recipe, origin, settings)?;
        loop {
            let findings = Findings::default();
            let recipe = choice.recipe();
            let plan = match choice.take_plan() {
                Some(plan) => plan,
                None => make_plan(backend, source, &recipe, origin).await?,
            };
            let input = BuildInput {
                backend,
                source,
                recipe: &recipe,
                origin,
                settings,
                plan: &plan,
                sharing: None,
                progress,
                begun: Instant::now(),
                findings: &findings,
            };
            let built = cached_or_built(&input).await;
            match (built, findings.older_python()) {
                (Err(_), Some(older)) if choice.try_version(&older) => {}
                (Err(_), _) if choice.leave_out() => {}
                (Err(error), _) => return Err(error),
                (Ok(mut environment), _) => {
                    environment.notes.extend(choice.note());
                    choice.record()?;
                    return Ok(environment);
                }
            }
        }
    })
}

async fn make_plan(
    backend: &dyn Backend,
    source: &Source,
    recipe: &Recipe,
    origin: &str,
) -> Result<Plan> {
    let image = match &recipe.image {
        Some(name) => Some(backend.image_digest(name).await?),
        None => None,
    };
    cache_keys::plan(backend, source, recipe, origin, image.as_deref())
}

/// Returns the environment from the cache, from another machine, or built now. `input` has no sharing yet.
async fn cached_or_built(input: &BuildInput<'_>) -> Result<Environment> {
    let (backend, settings, plan) = (input.backend, input.settings, input.plan);
    let (recipe, progress) = (input.recipe, input.progress);
    let folder = settings.cache.join("environments");
    crate::private::create_closed(&folder)?;
    let record = records::path(&folder, &plan.environment);

    let lock = lock(&folder.join(format!("{}.lock", plan.environment)), progress).await?;
    if !settings.rebuild
        && let Some(environment) = records::read::<Environment>(&record).await
        && backend.has_saved(&environment.saved).await?
    {
        return Ok(Environment {
            recipe: surroundings::merged_recipe(recipe, &environment),
            origin: input.origin.to_owned(),
            cached: true,
            lease: Some(Lease::take(&folder, &plan.environment)?),
            ..environment
        });
    }
    // A tenth of the cache is enough for each kind.
    evict_sources(&settings.cache, settings.cache_size / 10).await;
    let sharing = Sharing::new(backend, recipe, settings, progress).await;
    let input = BuildInput {
        sharing: sharing.as_ref(),
        ..*input
    };
    let claim = match fetched::fetch_environment(&input).await {
        FetchOutcome::Fetched(environment) => return Ok(environment),
        FetchOutcome::Missing(claim) => claim,
    };
    let begun = Instant::now();
    let built = layers::build(&input).await?;
    let mut environment = Environment {
        seconds: begun.elapsed().as_secs_f64(),
        lease: Some(Lease::take(&folder, &plan.environment)?),
        ..built.environment
    };
    records::write(&record, &environment).await?;
    drop((built.layer, lock));
    if let Some(sharing) = &sharing {
        sharing.publish(&plan.environment, &environment).await;
    }
    drop(claim);
    let most = settings.cache_size.saturating_sub(built.downloads);
    let left = eviction::evict(backend, &folder, most, &built.log, progress).await;
    environment.notes.extend(left);
    Ok(environment)
}

/// Removes the least recently used code archives and clones, until each kind takes at most `most` bytes. Those in use
/// stay.
pub async fn evict_sources(cache: &Path, most: u64) {
    let cache = cache.to_owned();
    let made = tokio::task::spawn_blocking(move || {
        repository::evict_archives(&cache, most)?;
        repository::make_room_for_clones(&cache, most)
    })
    .await;
    if let Ok(Err(error)) = made {
        tracing::warn!(%error, "old archives and clones were not removed");
    }
}

/// Rejects sources without Python files: an environment could be built for them, but no test could be written in it.
fn require_python_files(source: &Source) -> Result<()> {
    if source.has_python()? {
        return Ok(());
    }
    Err(SandboxError::input(format!(
        "{} has no Python files at this commit",
        source.name
    ))
    .hint("choose a repository with Python code (--repo) or another commit (--commit)"))
}

/// Returns the time when an environment was last used, if it was recorded.
pub fn last_use(cache: &Path, environment: &str) -> Option<SystemTime> {
    lease::last_used(&cache.join("environments"), environment)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a file until the result is dropped or the process dies.
async fn lock(path: &Path, progress: Progress<'_>) -> Result<File> {
    let file = File::create(path)?;
    if file.try_lock().is_ok() {
        return Ok(file);
    }
    progress(BuildEvent::Waiting);
    Ok(tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await??)
}
