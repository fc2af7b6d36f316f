//! Flags shared by several commands: the repository, the sandbox and the settings file.

mod gh_token;
pub(super) mod names;

use std::path::{Path, PathBuf};

use super::headings::{ENVIRONMENT, ISSUE};
use super::output;
use names::sandboxes;
use testwright_agent::backends;
use testwright_agent::custom_prompts;
use testwright_agent::issues::{self, Issue};
use testwright_agent::setup::RepositoryLocation;
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::{Flags, RecipeAdditions, Settings, Sources};
use testwright_sandboxes::repository::{WorkTree, remote_of, without_prefix};

/// Location of the old code and its sandbox, for the commands that start a sandbox.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RepositoryArgs {
    /// Repository: a folder or a URL [default: the repository of the issue or of the recorded run,
    /// otherwise the current folder]
    #[arg(long, help_heading = ISSUE, value_name = "PATH|URL")]
    repo: Option<String>,
    /// Commit, tag or branch of the code to test [default: the commit of the recorded run,
    /// otherwise HEAD]
    #[arg(long, help_heading = ISSUE, value_name = "REV")]
    commit: Option<String>,
    /// Additional requirement to install, in pip's syntax (repeatable)
    #[arg(long, help_heading = ENVIRONMENT, value_name = "REQUIREMENT")]
    requirement: Vec<String>,
    /// Extra of the package to install (repeatable)
    #[arg(long, help_heading = ENVIRONMENT, value_name = "NAME")]
    extra: Vec<String>,
    /// Set an environment variable for builds and tests (repeatable)
    #[arg(long, help_heading = ENVIRONMENT, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Use the image of this Dockerfile or devcontainer.json of the repository (selects --sandbox
    /// docker)
    #[arg(long, help_heading = ENVIRONMENT, value_name = "FILE")]
    dockerfile: Option<String>,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

/// Options of the sandbox that runs a repository's code.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SandboxArgs {
    #[arg(
        long, help_heading = ENVIRONMENT,
        value_name = "KIND",
        help = format!(
            "Sandbox that runs the repository's code: {} [default: local]",
            sandboxes().to_sentence()
        ),
        value_parser = sandboxes(),
        hide_possible_values = true
    )]
    sandbox: Option<String>,
    /// Use this Docker image instead of building an environment
    #[arg(long, help_heading = ENVIRONMENT, value_name = "NAME")]
    image: Option<String>,
    /// Python version of the environment
    #[arg(long, help_heading = ENVIRONMENT, value_name = "X.Y")]
    python: Option<String>,
    /// Folder of the one project to use, if the repository has several
    #[arg(long, help_heading = ENVIRONMENT, value_name = "FOLDER")]
    project: Option<String>,
    /// Run code of the repository even if this machine offers no isolation
    #[arg(long, help_heading = ENVIRONMENT)]
    no_isolation: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

impl SandboxArgs {
    /// Returns the sources of the settings, with these flags and those that `more` adds. The flags of the command line take
    /// precedence, because `more` may add the settings of a recorded run.
    pub(super) fn sources(&self, more: impl FnOnce(&mut Flags)) -> Sources {
        let mut flags = Flags::default();
        more(&mut flags);
        flags.set("run.sandbox", self.sandbox.clone());
        flags.set("run.image", self.image.clone());
        flags.set("run.python", self.python.clone());
        flags.set("run.project", self.project.clone());
        flags.set("local.no-isolation", self.no_isolation.then_some(true));
        Sources::of_process(flags).config(self.config.clone())
    }
}

impl RepositoryArgs {
    /// Returns the location of the repository: from the flags, or from the issue, or the current folder.
    pub(super) fn repository_location(&self, issue: Option<&Issue>) -> RepositoryLocation {
        let of_issue = issue.and_then(|issue| issue.repository.as_deref());
        RepositoryLocation {
            location: self.repo.as_deref().or(of_issue).unwrap_or(".").to_owned(),
            revision: self.commit.clone(),
        }
    }

    /// Returns these arguments with the repository and the commit of a recorded run, unless the flags name others.
    pub(super) fn or_recorded(&self, repository: Option<&str>, commit: Option<&str>) -> Self {
        let mut place = self.clone();
        place.repo = place.repo.or_else(|| repository.map(str::to_owned));
        place.commit = place.commit.or_else(|| commit.map(str::to_owned));
        place
    }

    /// Uses this folder as the repository, as `--repo` does.
    pub(super) fn set_repository(&mut self, folder: &Path) {
        self.repo = Some(folder.display().to_string());
    }

    /// Returns whether `--repo` was given.
    pub(super) fn has_repository(&self) -> bool {
        self.repo.is_some()
    }

    /// Reads an issue. Its short name, such as `12` or OWNER/NAME#12, follows from the repository's remote.
    pub(super) async fn load_issue(&self, issue: &str, options: &issues::Options) -> Result<Issue> {
        if !issues::is_reference(issue) || Path::new(issue).exists() {
            return issues::load(issue, options).await;
        }
        let repo = self.repo.as_deref().unwrap_or(".");
        let remote = match Path::new(repo).is_dir() {
            true => remote_of(Path::new(repo))?,
            false => Some(repo.to_owned()),
        };
        let page = issues::page_of(issue, remote.as_deref())?;
        let mut found = issues::load(page.as_deref().unwrap_or(issue), options).await?;
        if !issue.contains('/') {
            // The issue belongs to the code in the folder, which is not cloned again.
            found.repository = None;
        }
        Ok(found)
    }

    /// Loads the settings, with these flags and those that `more` adds.
    pub(super) fn settings(&self, more: impl FnOnce(&mut Flags)) -> Result<Settings> {
        self.load_settings(more, |_| {})
    }

    /// Loads the settings of a run. If its issue or repository is on github.com, `gh` may provide the token.
    pub(super) fn settings_for_issue(
        &self,
        issue: Option<&str>,
        more: impl FnOnce(&mut Flags),
    ) -> Result<Settings> {
        let is_github = |text: &str| text.contains("github.com/") || issues::is_reference(text);
        let places = [issue, self.repo.as_deref()];
        let needs_token = places.into_iter().flatten().any(is_github);
        self.load_settings(more, |settings| {
            if needs_token {
                gh_token::take(settings);
            }
        })
    }

    /// Returns the sources of the settings. These flags override those that `more` adds, and drop those of a recorded run
    /// that cannot be combined with them.
    fn sources(&self, more: impl FnOnce(&mut Flags)) -> Sources {
        let SandboxArgs { sandbox, image, .. } = &self.sandbox;
        let has_no_images = sandbox.as_deref().is_some_and(|kind| kind != "docker");
        let (has_image, has_dockerfile) = (image.is_some(), self.dockerfile.is_some());
        self.sandbox.sources(|flags| {
            more(flags);
            for (key, is_dropped) in [
                ("run.sandbox", has_dockerfile),
                ("run.image", has_no_images || has_dockerfile),
                ("run.dockerfile", has_no_images || has_image),
            ] {
                if is_dropped {
                    flags.remove(key);
                }
            }
            flags.set("run.dockerfile", self.dockerfile.clone());
        })
    }

    fn load_settings(
        &self,
        more: impl FnOnce(&mut Flags),
        complete: impl FnOnce(&mut Settings),
    ) -> Result<Settings> {
        let sources = with_repository(self.sources(more), self.repo.as_deref());
        let mut settings = Settings::load(&sources)?;
        complete(&mut settings);
        check_settings(&settings)?;
        settings.additions = RecipeAdditions {
            requirements: self.requirement.clone(),
            extras: self.extra.clone(),
            env: self.env.clone(),
        };
        Ok(settings)
    }
}

/// Makes the paths of a patch relative to a folder, if they are relative to the root of its repository.
pub(super) fn patch_of_project(patch: &str, folder: &str) -> String {
    // The repository is opened later, which reports errors.
    let tree = WorkTree::find(folder).ok().flatten();
    let patch_of_folder = tree.and_then(|tree| without_prefix(patch, tree.prefix()));
    patch_of_folder.unwrap_or_else(|| patch.to_owned())
}

/// Returns the absolute path of a folder, which may be used from another folder; URLs are unchanged.
pub(super) fn absolute_location(location: &str) -> String {
    match Path::new(location).canonicalize() {
        Ok(folder) if !location.contains("://") => folder.display().to_string(),
        _ => location.to_owned(),
    }
}

/// Adds the settings file of the repository, if it is a folder.
pub(super) fn with_repository(sources: Sources, repo: Option<&str>) -> Sources {
    match repo {
        // A location with a scheme is always a URL, even if a folder named `https:` exists.
        Some(repo) if !repo.contains("://") && Path::new(repo).is_dir() => sources.repository(repo),
        _ => sources,
    }
}

/// Loads and checks the settings, and hides their secrets in all later output.
pub(super) fn load_settings(sources: &Sources) -> Result<Settings> {
    let settings = Settings::load(sources)?;
    check_settings(&settings)?;
    Ok(settings)
}

/// Loads the settings as [`load_settings`] does. For github.com, `gh` may provide the token.
pub(super) fn load_github_settings(sources: &Sources) -> Result<Settings> {
    let mut settings = Settings::load(sources)?;
    gh_token::take(&mut settings);
    check_settings(&settings)?;
    Ok(settings)
}

fn check_settings(settings: &Settings) -> Result<()> {
    output::hide_secrets(settings.redactor());
    if let Some(folder) = &settings.run.prompts {
        custom_prompts::load(folder)?;
    }
    backends::find(settings)?;
    if let Some(version) = &settings.run.python {
        check_python_version(version, &settings.origin("run.python").to_string())?;
    }
    Ok(())
}

/// Checks the form of a Python version. `origin` is the flag, variable or file that sets it.
fn check_python_version(version: &str, origin: &str) -> Result<()> {
    let numbers: Vec<Option<u32>> = version.split('.').map(|n| n.parse().ok()).collect();
    let (major, minor) = match numbers.as_slice() {
        [Some(major), Some(minor)] => (*major, *minor),
        _ => {
            let clause = format!("invalid {origin}: `{version}` is not a Python version");
            return Err(Error::clause(Kind::Usage, clause).hint("write it as X.Y, e.g. 3.11"));
        }
    };
    match (major, minor) {
        (3, 6..) => Ok(()),
        _ => {
            let clause = format!("Python {version} is not supported (3.6 or later)");
            Err(Error::clause(Kind::Usage, clause))
        }
    }
}

#[cfg(test)]
mod tests;
