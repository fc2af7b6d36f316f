//! Where the old code is, where it runs, and the settings for it: flags that several commands share.

pub mod names;

use std::path::{Path, PathBuf};

use super::output;
use names::sandboxes;
use testwright_agent::backends;
use testwright_agent::issues::Issue;
use testwright_agent::own_prompts;
use testwright_agent::setup::RepositoryLocation;
use testwright_config::error::Result;
use testwright_config::settings::{Flags, Settings, Sources};

/// Where the old code is and where it runs: shared by the commands that start a sandbox.
#[derive(Debug, clap::Args)]
pub struct PlaceArgs {
    /// Repository: a folder or a URL [default: the issue's repository, or the current folder]
    #[arg(long, value_name = "PATH|URL")]
    repo: Option<String>,
    /// Old code: a commit, tag or branch [default: HEAD]
    #[arg(long, value_name = "REV")]
    commit: Option<String>,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

/// Where code of repositories runs.
#[derive(Debug, Clone, clap::Args)]
pub struct SandboxArgs {
    #[arg(
        long,
        value_name = "KIND",
        help = format!("Where tools run: {}", sandboxes().listed()),
        value_parser = sandboxes(),
        hide_possible_values = true
    )]
    sandbox: Option<String>,
    /// Use this Docker image instead of building an environment
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Python version of the environment
    #[arg(long, value_name = "X.Y")]
    python: Option<String>,
    /// Run code of the repository even if this machine offers no isolation
    #[arg(long)]
    no_isolation: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

impl SandboxArgs {
    /// What settings are read from: with these flags, and those of `more`.
    pub fn sources(&self, more: impl FnOnce(&mut Flags)) -> Sources {
        let mut flags = self.flags();
        more(&mut flags);
        Sources::of_process(flags).config(self.config.clone())
    }

    fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        flags.set("run.sandbox", self.sandbox.clone());
        flags.set("run.image", self.image.clone());
        flags.set("run.python", self.python.clone());
        flags.set("local.no-isolation", self.no_isolation.then_some(true));
        flags
    }
}

impl PlaceArgs {
    /// Where the repository is; `issue` may know it too.
    pub fn place(&self, issue: Option<&Issue>) -> RepositoryLocation {
        self.place_or(issue.and_then(|issue| issue.repository.as_deref()), None)
    }

    /// Where the repository is: as the flags say, else as given here, else the current folder.
    pub fn place_or(&self, location: Option<&str>, revision: Option<&str>) -> RepositoryLocation {
        RepositoryLocation {
            location: self.repo.as_deref().or(location).unwrap_or(".").to_owned(),
            revision: self.commit.as_deref().or(revision).map(str::to_owned),
        }
    }

    /// A repository was named.
    pub fn is_named(&self) -> bool {
        self.repo.is_some()
    }

    /// The settings with these flags, and those of `more`.
    pub fn settings(&self, more: impl FnOnce(&mut Flags)) -> Result<Settings> {
        let sources = self.sandbox.sources(more);
        let sources = match &self.repo {
            // An address with a scheme is never a folder, though there may be one called `https:`.
            Some(repo) if !repo.contains("://") && Path::new(repo).is_dir() => {
                sources.repository(repo)
            }
            _ => sources,
        };
        load(&sources)
    }
}

/// Settings as they are in force; from now on their secrets are not shown.
pub fn load(sources: &Sources) -> Result<Settings> {
    let settings = Settings::load(sources)?;
    output::hide(settings.redactor());
    if let Some(folder) = &settings.run.prompts {
        own_prompts::load(folder)?;
    }
    backends::find(&settings)?;
    Ok(settings)
}
