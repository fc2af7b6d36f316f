//! From settings to a running session: backend, old code, environment, sandbox. What the commands share.

mod harness;
mod model;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use testwright_sandboxes::Backend;
use testwright_sandboxes::docker::{Docker, DockerSettings};
use testwright_sandboxes::environment::{self, BuildSettings, Environment, Event};
use testwright_sandboxes::local::{Local, LocalSettings};
use testwright_sandboxes::recipe::{self, Overrides, Recipe};
use testwright_sandboxes::repository::{self, OpenOptions, Source, Token};

use crate::agent::Progress;
use crate::error::{Error, Result};
use crate::issues;
use crate::session::{Session, SessionSettings};
use crate::settings::{Pull, RedactedUrl, SandboxKind, Settings};

pub use harness::{HarnessArgs, harness};
pub use model::model;

/// The hidden command that is the entry point of a jail; `main` answers to it before anything else.
pub const JAIL: &str = "__jail";

/// Where the old code is.
#[derive(Debug, Clone)]
pub struct RepositoryLocation {
    /// A folder or a URL.
    pub location: String,
    pub revision: Option<String>,
}

/// A backend, ready to build environments and to start sessions.
pub struct Setup<'a> {
    settings: &'a Settings,
    backend: Arc<dyn Backend>,
    progress: Arc<dyn Progress>,
    /// Id of this process's sandboxes.
    run: String,
}

impl<'a> Setup<'a> {
    /// Connects to the backend, and removes what killed runs left behind.
    pub async fn new(settings: &'a Settings, progress: Arc<dyn Progress>) -> Result<Self> {
        let backend: Arc<dyn Backend> = Arc::from(backend(settings).await?);
        match backend.clean().await {
            Ok(removed) => {
                for line in removed {
                    progress.note(&format!("removed what a killed run left behind: {line}"));
                }
            }
            // Old remains are a nuisance, and no reason not to work.
            Err(error) => progress.note(&format!("failed to clean up after killed runs: {error}")),
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Setup {
            settings,
            backend,
            progress,
            run: format!("{:x}-{:x}", now.as_secs(), std::process::id()),
        })
    }

    /// The old code, its environment and a sandbox of it. An interrupt on the way leaves nothing running.
    ///
    /// `digest` is that of the code on which a run was recorded: other code is refused.
    pub async fn start_session(
        &self,
        place: &RepositoryLocation,
        digest: Option<&str>,
    ) -> Result<(Source, Environment, Session)> {
        let prepared = async {
            let source = self.source(place).await?;
            if let Some(recorded) = digest.filter(|digest| **digest != source.digest) {
                return Err(Error::usage("go on with that run on this code")
                    .cause(format!(
                        "it was recorded on files with digest {recorded}, these have {}",
                        source.digest
                    ))
                    .hint("name the recorded repository and commit with --repo and --commit"));
            }
            let environment = self.environment(&source, &place.location).await?;
            let session = self.session(&environment).await?;
            Ok((source, environment, session))
        };
        tokio::select! {
            prepared = prepared => prepared,
            () = interrupted() => {
                self.backend.abandon().await?;
                Err(Error::interrupted("go on: interrupted while the sandbox was prepared"))
            }
        }
    }

    /// The old code.
    async fn source(&self, place: &RepositoryLocation) -> Result<Source> {
        let options = open_options(self.settings);
        let cache = self.settings.cache.clone();
        let RepositoryLocation { location, revision } = place.clone();
        let opened = tokio::task::spawn_blocking(move || {
            repository::open(&location, revision.as_deref(), &cache, &options)?.source()
        })
        .await
        .map_err(|error| Error::infrastructure("read the repository").cause(error))?;
        let source = opened.map_err(|error| {
            Error::from(error).while_doing(format!("read the repository {}", place.location))
        })?;
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

    /// The environment of the old code: from the cache, or built now.
    async fn environment(&self, source: &Source, location: &str) -> Result<Environment> {
        let run = &self.settings.run;
        let keys = self.settings.environment_of(location);
        if keys.is_none() && self.settings.environment.is_some() {
            self.progress.note("[environment] of the testwright.toml in the current folder is left out: it is for the code in that folder, not for this repository");
        }
        let overrides = Overrides {
            keys: keys.map(|recipe| (given(recipe), "testwright.toml".to_owned())),
            python: run.python.clone(),
            image: run.image.clone(),
            no_built_in: false,
            pythons: recipe::available_pythons(self.backend.as_ref()).await,
        };
        if let Some(note) = recipe::image_left_out(source, &overrides)? {
            self.progress.note(&note);
        }
        let (recipe, origin) = recipe::find(source, &overrides)?;
        self.progress.phase("recipe", &describe(&recipe, &origin));
        let progress = self.progress.clone();
        let told = move |event: Event| match event {
            Event::Waiting => progress.phase("environment", "another process builds it: waiting"),
            Event::Started { step } => progress.phase("environment", &step),
            Event::Finished { .. } => {}
        };
        let built = environment::prepare(
            self.backend.as_ref(),
            source,
            &recipe,
            &origin,
            &build_settings(self.settings),
            &told,
        )
        .await?;
        for note in &built.notes {
            self.progress.note(note);
        }
        let how = if built.cached {
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

    /// A sandbox of the environment, with the toolbox in it.
    async fn session(&self, environment: &Environment) -> Result<Session> {
        let settings = SessionSettings {
            limits: self.settings.limits.sandbox(),
            test_seconds: self.settings.limits.test_seconds,
            run: self.run.clone(),
        };
        let session = Session::start(self.backend.clone(), environment, &settings).await?;
        self.progress.phase("sandbox", &session.facts().isolation);
        Ok(session)
    }
}

/// The backend that the settings name.
pub async fn backend(settings: &Settings) -> Result<Box<dyn Backend>> {
    Ok(match settings.run.sandbox {
        SandboxKind::Docker => Box::new(docker(settings).await?),
        SandboxKind::Local => Box::new(local(settings)?),
    })
}

pub async fn docker(settings: &Settings) -> Result<Docker> {
    let defaults = DockerSettings::default();
    let connected = Docker::connect(DockerSettings {
        host: settings.docker.host.clone(),
        base: settings.docker.base.clone(),
        pull: settings.docker.pull != Pull::Never,
        user: settings.docker.user.clone().unwrap_or(defaults.user),
        ca_bundle: ca_bundle(settings),
        proxies: proxies(settings),
    })
    .await?;
    Ok(connected)
}

pub fn local(settings: &Settings) -> Result<Local> {
    let program =
        std::env::current_exe().map_err(|error| Error::io("find this program", &error))?;
    Ok(Local::new(LocalSettings {
        cache: settings.cache.join("local"),
        launcher: vec![program.into(), JAIL.into()],
        no_isolation: settings.local.no_isolation,
        force: None,
    })?)
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

/// The token goes along with the server that it is for, and to no other.
fn open_options(settings: &Settings) -> OpenOptions {
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

fn ca_bundle(settings: &Settings) -> Option<PathBuf> {
    settings
        .build
        .ca_bundle
        .clone()
        .or_else(|| BuildSettings::new(Path::new("")).ca_bundle)
}

/// Those of the host's environment, and on top those of the settings.
fn proxies(settings: &Settings) -> BTreeMap<String, String> {
    let mut proxies = BuildSettings::new(Path::new("")).proxies;
    let build = &settings.build;
    let reveal =
        |address: &Option<RedactedUrl>| address.as_ref().map(|address| address.reveal().to_owned());
    for (name, value) in [
        ("http_proxy", reveal(&build.http_proxy)),
        ("https_proxy", reveal(&build.https_proxy)),
        ("no_proxy", build.no_proxy.clone()),
    ] {
        if let Some(value) = value {
            proxies.insert(name.to_uppercase(), value.clone());
            proxies.insert(name.to_owned(), value);
        }
    }
    proxies
}

/// The keys of a recipe that say something.
fn given(recipe: &Recipe) -> toml::Table {
    let table = |recipe: &Recipe| toml::Table::try_from(recipe).unwrap_or_default();
    let defaults = table(&Recipe::default());
    table(recipe)
        .into_iter()
        .filter(|(key, value)| defaults.get(key) != Some(value))
        .collect()
}

fn describe(recipe: &Recipe, origin: &str) -> String {
    match (&recipe.image, &recipe.python) {
        (Some(image), _) => format!("image {image} ({origin})"),
        (None, Some(python)) => format!("Python {python} ({origin})"),
        (None, None) => origin.to_owned(),
    }
}

/// Ends when the user interrupts (Ctrl-C) or the system asks to end.
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
