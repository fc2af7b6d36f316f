//! Creates a running session from the settings: backend, old code, environment and sandbox. The commands
//! share this.

mod commit;
mod harness;
mod has_code;
mod model;
mod overrides;
mod repair;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use testwright_evals::cases::CaseEnvironment;
use testwright_sandboxes::coverage;
use testwright_sandboxes::environment::{
    self, BuildEvent, BuildSettings, Draft, Environment, SampleSettings, SharedEnvironments,
    TestSample,
};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe::{self, Overrides, PreferredPython, Recipe};
use testwright_sandboxes::repository::{self, OpenOptions, Source, Token};
use testwright_sandboxes::{Backend, SandboxError};

use crate::agent::Progress;
use crate::backends::{self, ca_bundle, proxies};
use crate::environment_repair::RepairModel;
use crate::issues::{self, Issue};
use crate::session::{Session, SessionSettings, WantedCoverage, toolbox};
use crate::trajectory::EnvironmentRepair;
use testwright_config::error::{Error, Result};
use testwright_config::settings::{RedactedUrl, Settings};

pub use commit::UnsuitableCommit;
pub use harness::{HarnessArgs, harness, instance_at};
pub use model::{check_service, model};

/// The location of the old code.
#[derive(Debug, Clone)]
pub struct RepositoryLocation {
    /// Folder or URL.
    pub location: String,
    /// Commit, tag or branch; `None` for HEAD or the files as they are.
    pub revision: Option<String>,
}

/// A check that rejects unsuitable old code before anything is built for it.
pub type SourceCheck = Box<dyn Fn(&Source) -> Result<()> + Send + Sync>;

/// Finds the lines that tests are wanted for, by file; none for an issue.
pub type WantedLines =
    Box<dyn Fn(&Source) -> Result<BTreeMap<String, BTreeSet<u32>>> + Send + Sync>;

/// A backend that is ready to build environments and to start sessions.
pub struct Setup<'a> {
    settings: &'a Settings,
    backend: Arc<dyn Backend>,
    progress: Arc<dyn Progress>,
    /// Store of environments that other machines also use.
    shared: Option<Arc<dyn SharedEnvironments>>,
    /// Id of this process's sandboxes.
    run: String,
    /// Whether to build environments even if they exist.
    pub rebuild: bool,
    /// Whether to ignore the recipes that come with the program.
    pub no_built_in: bool,
    preferred_python: Option<PreferredPython>,
    subject: Option<String>,
    /// Paths that the task is about. Before the issue, they decide between projects of one repository.
    pub paths: Vec<String>,
    /// Check of the old code before anything is built.
    pub source_check: Option<SourceCheck>,
    /// Lines of the old code that tests are wanted for.
    pub wanted_lines: Option<WantedLines>,
    /// Model that may repair the environment if it cannot be built.
    pub repair_model: Option<RepairModel>,
    /// Recipe of a recorded run whose environment was repaired.
    repaired_recipe: Option<Recipe>,
    repair: OnceLock<EnvironmentRepair>,
}

impl<'a> Setup<'a> {
    /// Connects to the backend, and removes the remains of killed runs.
    ///
    /// # Errors
    ///
    /// Fails if the backend is not available.
    pub async fn new(
        settings: &'a Settings,
        shared: Option<Arc<dyn SharedEnvironments>>,
        progress: Arc<dyn Progress>,
    ) -> Result<Self> {
        let backend: Arc<dyn Backend> = Arc::from(backends::connect(settings).await?);
        for note in backends::clean(backend.as_ref()).await {
            progress.note(&note);
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Setup {
            settings,
            backend,
            shared,
            progress,
            run: format!("{:x}-{:x}", now.as_secs(), std::process::id()),
            rebuild: false,
            no_built_in: false,
            preferred_python: None,
            subject: None,
            paths: Vec::new(),
            source_check: None,
            wanted_lines: None,
            repair_model: None,
            repaired_recipe: None,
            repair: OnceLock::new(),
        })
    }

    /// Sets the issue. It can name a Python version, and its text decides between projects of one repository.
    pub fn for_issue(mut self, issue: Option<&Issue>) -> Self {
        self.preferred_python = issue.and_then(Issue::named_python);
        self.subject = issue.map(Issue::text);
        self
    }

    /// Prepares the old code and its environment, and runs a sample of its tests if requested. An interrupt
    /// leaves nothing running.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be read, the environment cannot be built, or an interrupt arrives.
    pub async fn prepare_environment(
        &self,
        place: &RepositoryLocation,
        sample: Option<&SampleSettings>,
    ) -> Result<(Source, Environment, Option<TestSample>)> {
        let prepared = async {
            let source = self.source(place).await?;
            let environment = self.environment(&source, &place.location).await?;
            let sampled = match sample {
                Some(sample) => self.sample(&source, &environment, sample).await?,
                None => None,
            };
            Ok((source, environment, sampled))
        };
        or_interrupted(&*self.backend, prepared).await
    }

    /// Returns the code and its environment, to run cases in.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be read, the environment cannot be built, or an interrupt arrives.
    pub async fn case_place(&self, place: &RepositoryLocation) -> Result<CaseEnvironment> {
        let (source, environment, _) = self.prepare_environment(place, None).await?;
        Ok(CaseEnvironment {
            backend: self.backend.clone(),
            source,
            environment,
            build: build_settings(self.settings),
            limits: self.settings.limits.sandbox(),
            toolbox: toolbox()?.to_owned(),
            purpose: self.run.clone(),
        })
    }

    async fn sample(
        &self,
        source: &Source,
        environment: &Environment,
        settings: &SampleSettings,
    ) -> Result<Option<TestSample>> {
        let backend = self.backend.as_ref();
        let build = build_settings(self.settings);
        let report = self.build_progress();
        let sampled =
            environment::sample_tests(backend, environment, source, &build, settings, &report)
                .await?;
        if sampled.is_none() {
            let kind = &environment.recipe.runner.kind;
            let note = format!("no sample of tests was run, because they are run by {kind}");
            self.progress.note(&note);
        }
        Ok(sampled)
    }

    /// Returns the old code, its environment and a session in a sandbox of it. An interrupt leaves nothing
    /// running.
    ///
    /// `digest` is that of the code on which a run was recorded; other code is refused.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be read or differs from the recorded code, if the environment or the sandbox
    /// fails, or if an interrupt arrives.
    pub async fn start_session(
        &self,
        place: &RepositoryLocation,
        digest: Option<&str>,
    ) -> Result<(Source, Environment, Session)> {
        let prepared = async {
            let source = self.source(place).await?;
            if let Some(recorded) = digest.filter(|digest| **digest != source.digest) {
                return Err(Error::usage("resume that run on this code")
                    .cause(format!(
                        "it was recorded on files with digest {recorded}, but these have {}",
                        source.digest
                    ))
                    .hint("pass the recorded repository and commit with --repo and --commit"));
            }
            if let Some(check) = &self.source_check {
                check(&source)?;
            }
            let lines = match &self.wanted_lines {
                Some(find_lines) => find_lines(&source)?,
                None => BTreeMap::new(),
            };
            let environment = self.environment(&source, &place.location).await?;
            let session = self.session(&environment, lines).await?;
            Ok((source, environment, session))
        };
        or_interrupted(&*self.backend, prepared).await
    }

    /// Starts another session in a sandbox of a prepared environment. An interrupt leaves nothing running.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox fails, or an interrupt arrives.
    pub async fn session_in(&self, environment: &Environment) -> Result<Session> {
        or_interrupted(&*self.backend, self.session(environment, BTreeMap::new())).await
    }

    /// Opens the old code.
    async fn source(&self, place: &RepositoryLocation) -> Result<Source> {
        let source = open_source(self.settings, place).await?;
        has_code::check(&source, &place.location)?;
        for note in &source.notes {
            self.progress.note(note);
        }
        let commit = source
            .commit
            .as_deref()
            .map_or("no commit", |commit| &commit[..commit.len().min(12)]);
        self.progress
            .phase("repository", &format!("{} at {commit}", source.name));
        Ok(source)
    }

    /// Returns the environment of the old code, from the cache or newly built.
    async fn environment(
        &self,
        source: &Source,
        location: &str,
    ) -> std::result::Result<Environment, SandboxError> {
        let (overrides, _base) = self.overrides(source, location).await?;
        if let Some(note) = recipe::image_left_out(source, &overrides)? {
            self.progress.note(&note);
        }
        let draft = Arc::new(Draft::default());
        let (mut recipe, mut origin) = self.recipe(source, &overrides)?;
        let mut built = self.build(source, &recipe, &origin, &draft).await;
        if let Err(error) = &built
            && error.kind == ErrorKind::Build
            && overrides.preferred_python.is_some()
        {
            // Try the version known to suit the code, if it is another one.
            let plain = Overrides {
                preferred_python: None,
                ..overrides.clone()
            };
            let other = self.recipe(source, &plain)?;
            if other.0.python != recipe.python {
                self.progress.note(&format!(
                    "failed to build an environment with the Python that the issue names: {}",
                    error.message
                ));
                (recipe, origin) = other;
                built = self.build(source, &recipe, &origin, &draft).await;
            }
        }
        let built = match built {
            Err(error) if error.kind == ErrorKind::Build => {
                let repaired = self.repair(source, &recipe, &origin, error, &overrides, draft);
                repaired.await?
            }
            built => {
                draft
                    .finish(self.backend.as_ref(), &build_settings(self.settings))
                    .await?;
                built?
            }
        };
        // Those of the source were printed when it was opened.
        let is_new = |note: &&String| !source.notes.contains(note);
        for note in built.notes.iter().filter(is_new) {
            self.progress.note(note);
        }
        let how = if built.fetched {
            "built by another machine, from the artifact store".to_owned()
        } else if built.cached {
            "from the cache".to_owned()
        } else {
            format!(
                "built in {:.0} s, log in {}",
                built.seconds,
                built.log.display()
            )
        };
        self.progress.phase("environment", &how);
        Ok(built)
    }

    async fn build(
        &self,
        source: &Source,
        recipe: &Recipe,
        origin: &str,
        draft: &Arc<Draft>,
    ) -> std::result::Result<Environment, SandboxError> {
        self.progress
            .phase("recipe", &self.describe(recipe, origin));
        let settings = self.build_settings(draft);
        let (backend, report) = (self.backend.as_ref(), self.build_progress());
        environment::prepare(backend, source, recipe, origin, &settings, &report).await
    }

    fn build_settings(&self, draft: &Arc<Draft>) -> BuildSettings {
        BuildSettings {
            rebuild: self.rebuild,
            shared: self.shared.clone(),
            draft: self.repair_model.is_some().then(|| draft.clone()),
            ..build_settings(self.settings)
        }
    }

    fn build_progress(&self) -> impl Fn(BuildEvent) + Send + Sync + use<> {
        let progress = self.progress.clone();
        move |event: BuildEvent| match event {
            BuildEvent::Waiting => progress.build_step("waiting: another process is building it"),
            BuildEvent::Started { step } => progress.build_step(&step),
            BuildEvent::Finished { .. } => {}
        }
    }

    /// Starts a session in a sandbox of the environment.
    async fn session(
        &self,
        environment: &Environment,
        lines: BTreeMap<String, BTreeSet<u32>>,
    ) -> Result<Session> {
        let wanted_coverage = match lines.is_empty() {
            true => None,
            false => {
                let (python, build) = (&environment.python_version, build_settings(self.settings));
                let package = coverage::package(python, &build).await?;
                Some(WantedCoverage { package, lines })
            }
        };
        let settings = SessionSettings {
            limits: self.settings.limits.sandbox(),
            test_seconds: self.settings.limits.test_seconds,
            processors: None,
            run: self.run.clone(),
            wanted: wanted_coverage,
        };
        let session = Session::start(self.backend.clone(), environment, &settings).await?;
        self.progress
            .sandbox(self.backend.name(), &session.info().isolation);
        Ok(session)
    }
}

fn build_settings(settings: &Settings) -> BuildSettings {
    let build = &settings.build;
    let text = |address: &RedactedUrl| address.reveal().to_owned();
    let mut defaults = BuildSettings::new(&settings.cache);
    defaults.limits.disk = settings.limits.disk.bytes();
    defaults.limits.files = settings.limits.files;
    BuildSettings {
        index_url: build.index_url.as_ref().map(text),
        extra_index_urls: build.extra_index_urls.iter().map(text).collect(),
        proxies: proxies(settings),
        ca_bundle: ca_bundle(settings),
        offline: build.offline,
        allowed_hosts: build.allowed_hosts.clone(),
        cache_size: build.cache_size.bytes(),
        ..defaults
    }
}

/// Opens the code of a repository.
async fn open_source(settings: &Settings, place: &RepositoryLocation) -> Result<Source> {
    let (cache, options) = (settings.cache.clone(), open_options(settings));
    let RepositoryLocation { location, revision } = place.clone();
    let opened = tokio::task::spawn_blocking(move || {
        repository::open(&location, revision.as_deref(), &cache, &options)?.source()
    })
    .await
    .map_err(|error| Error::infrastructure("read the repository").cause(error))?;
    opened.map_err(|error| {
        Error::from(error).doing(format!("read the repository {}", place.location))
    })
}

/// Returns the options to open repositories. The token is sent only to the server it is for.
pub fn open_options(settings: &Settings) -> OpenOptions {
    let host = match &settings.github.base_url {
        Some(url) => issues::server_of(url.reveal()),
        None => "github.com".to_owned(),
    };
    let token = settings.github_token();
    OpenOptions {
        token: token.map(|token| Token::new(&host, token.reveal())),
        offline: settings.build.offline,
    }
}

/// Completes the work, unless an interrupt arrives, which leaves nothing running.
///
/// # Errors
///
/// Fails if the work fails, or an interrupt arrives.
pub async fn or_interrupted<T>(
    backend: &dyn Backend,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        done = work => done,
        () = interrupted() => {
            backend.abandon().await?;
            Err(Error::interrupted())
        }
    }
}

/// Completes when the user interrupts (Ctrl-C) or the system asks the process to terminate.
pub async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
