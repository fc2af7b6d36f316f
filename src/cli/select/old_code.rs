//! The code that `--repo` names, as a dataset of one instance without golden patches.

use std::path::PathBuf;

use testwright_evals::dataset::{Dataset, Instance};

use crate::cli::eval::GradeArgs;
use crate::cli::headings::ISSUE;
use crate::cli::repository_args::{load_settings, with_repository};
use testwright_agent::issues;
use testwright_agent::setup::{RepositoryLocation, instance_at};
use testwright_comparisons::grading::{GradingOptions, GradingRun};
use testwright_config::error::Result;
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;

/// The code to patch, without a dataset.
#[derive(Debug, clap::Args)]
pub(super) struct OldCodeArgs {
    /// Repository of the code to patch, instead of a dataset: a folder or a URL
    #[arg(
        long, help_heading = ISSUE,
        value_name = "PATH|URL",
        conflicts_with_all = ["dataset", "instances", "repositories"]
    )]
    repo: Option<String>,
    /// Commit, tag or branch of the code to patch [default: HEAD]
    #[arg(long, help_heading = ISSUE, value_name = "REV", requires = "repo")]
    commit: Option<String>,
    /// Issue that the patches should fix: a URL, a file, or `-` for standard input. Verdicts do not
    /// depend on it: selection.md shows its title
    #[arg(long, help_heading = ISSUE, value_name = "ISSUE", requires = "repo")]
    issue: Option<String>,
}

impl OldCodeArgs {
    /// Returns the instances to try patches on: those of the dataset, or the code of the repository.
    pub(super) async fn grading_run(&self, grade: &GradeArgs) -> Result<GradingRun> {
        let sources = with_repository(grade.sandbox.sources(|_| {}), self.repo.as_deref());
        let mut settings = load_settings(&sources)?;
        let (Some(repo), Some(out)) = (&self.repo, &grade.out) else {
            return grade.grading_run(settings);
        };
        if settings.named_environment().is_none() && settings.environment_of(repo).is_some() {
            // The harness reads the repository's own recipe from the commit.
            settings.environment = None;
        }
        let instance = self.instance(repo, &mut settings).await?;
        let dataset = Dataset {
            path: PathBuf::from(&instance.repo),
            sha256: None,
            instances: vec![instance],
        };
        Ok(GradingRun {
            options: GradingOptions {
                repositories: repo.clone(),
                test_seconds: grade.test_seconds,
                workers: grade.workers,
            },
            whole: dataset.clone(),
            dataset,
            out: out.clone(),
            shared: shared_environments(&settings)?,
            settings,
        })
    }

    /// Reads the issue and the code. Adds their notes to the settings.
    async fn instance(&self, repo: &str, settings: &mut Settings) -> Result<Instance> {
        let mut text = String::new();
        if let Some(issue) = &self.issue {
            let options = issues::Options::from_settings(settings, false);
            let issue = issues::load(issue, &options).await?;
            text = issue.text();
            settings.notes.extend(issue.notes);
        }
        let place = RepositoryLocation {
            location: repo.to_owned(),
            revision: self.commit.clone(),
        };
        let (instance, notes) = instance_at(settings, &place, text).await?;
        settings.notes.extend(notes);
        Ok(instance)
    }

    /// Returns the subject of the selection, for the head of its report.
    pub(super) fn facts(&self, dataset: &Dataset) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        match (&self.repo, dataset.instances.first()) {
            (Some(_), Some(instance)) => {
                let title = instance.problem_statement.lines().next();
                facts.push(("Repository", instance.repo.clone()));
                facts.push(("Commit", instance.base_commit.clone()));
                facts.push(("Issue", title.unwrap_or_default().to_owned()));
            }
            _ => facts.push(("Dataset", dataset.path.display().to_string())),
        }
        // A plain folder has no commit, and the issue is optional.
        facts.retain(|(_, value)| !value.is_empty());
        facts
    }
}
