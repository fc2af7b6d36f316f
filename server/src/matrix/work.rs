//! Executes a queued matrix, from the beginning or from its stored cells.

use std::path::PathBuf;
use std::time::Duration;

use testwright_evals::Instance;
use testwright_evals::harness::{self, Harness, SelectionJob};
use testwright_evals::predictions::Prediction;
use testwright_evals::selection::SelectionResult;
use tokio::sync::mpsc;

use super::request::{MatrixInput, NamedPatch};
use super::view::{input, results};
use crate::artifacts::shared_environments;
use crate::attempt::AttemptEnd;
use crate::json::encode;
use crate::store::{Attempt, Store, StoredMatrix};
use testwright_agent::setup::{HarnessArgs, RepositoryLocation, harness, instance_at};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Settings;

/// The inputs for executing matrices.
pub struct MatrixWork<'w> {
    /// Database with the matrices.
    pub store: &'w Store,
    /// Settings of the worker.
    pub settings: &'w Settings,
    /// Folder for logs during the work.
    pub folder: PathBuf,
}

impl MatrixWork<'_> {
    /// Tries the cells that have no result yet.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read, the harness cannot be set up, or the database or the machine fails.
    pub async fn process_attempt(&self, attempt: &Attempt) -> Result<AttemptEnd> {
        let stored = self.store.matrix(&attempt.id).await?;
        let stored = stored.ok_or_else(|| Error::infrastructure("read the matrix"))?;
        let input = input(&stored)?;
        let mut finished_cells = results(self.store, &stored).await?;
        // Cells that failed because of the machine are tried again.
        finished_cells.retain(|cell| cell.infrastructure.is_none());
        let missing = Missing::from_input(&input, &finished_cells);
        let args = HarnessArgs {
            repositories: input.repository.clone(),
            test_time: Duration::from_secs(self.settings.limits.test_seconds),
            out: self.folder.clone(),
            shared: shared_environments(self.settings)?,
        };
        let (harness, _) = harness(self.settings, args).await?;
        let instance = match old_code(self.settings, &input, &stored).await {
            Err(error) if error.kind == Kind::Usage => return Ok(AttemptEnd::of_request(&error)),
            instance => instance?,
        };
        // HEAD or a branch may have moved before the next attempt. A plain folder has no commit.
        if stored.base_commit.is_none() && !instance.base_commit.is_empty() {
            let commit = &instance.base_commit;
            self.store.set_base_commit(attempt, commit).await?;
        }
        let failures = self.try_all(&harness, &instance, &missing, attempt).await?;
        Ok(AttemptEnd::of_failures(failures))
    }

    /// Tries all missing cells and stores each result. Returns the failures of the machine.
    async fn try_all(
        &self,
        harness: &Harness,
        instance: &Instance,
        missing: &Missing,
        attempt: &Attempt,
    ) -> Result<Vec<String>> {
        let (sender, mut cells) = mpsc::unbounded_channel::<SelectionResult>();
        // If a cell cannot be stored, the work stops.
        let trying = async move {
            let done = |result| {
                let _ = sender.send(result);
            };
            let jobs = missing.jobs(instance);
            harness::select_all(harness, jobs, 1, &|_| {}, &done).await;
            Ok::<(), Error>(())
        };
        let storing = async {
            let mut failures = Vec::new();
            while let Some(result) = cells.recv().await {
                if let Some(shortage) = result.shortage {
                    let cause = result.infrastructure.unwrap_or_default();
                    return Err(Error::exhausted(shortage, "try a patch").cause(cause));
                }
                let text = encode(&result, "encode a cell of the matrix")?;
                let names = [result.tests.as_str(), result.patch.as_str()];
                self.store.add_cell(attempt, names, &text).await?;
                failures.extend(result.infrastructure);
            }
            Ok(failures)
        };
        let ((), failures) = tokio::try_join!(trying, storing)?;
        Ok(failures)
    }
}

/// The cells still to try: sets of tests, each with its patches.
struct Missing(Vec<(Prediction, Vec<Prediction>)>);

impl Missing {
    fn from_input(input: &MatrixInput, finished_cells: &[SelectionResult]) -> Self {
        let is_finished = |tests: &str, patch: &str| {
            let mut cells = finished_cells.iter();
            cells.any(|cell| cell.tests == tests && cell.patch == patch)
        };
        let with_patches = |tests: &NamedPatch| {
            let patches = input.patches.iter();
            let patches = patches.filter(|patch| !is_finished(&tests.name, &patch.name));
            (prediction(tests), patches.map(prediction).collect())
        };
        let all = input.tests.iter().map(with_patches);
        Missing(
            all.filter(|(_, patches): &(_, Vec<Prediction>)| !patches.is_empty())
                .collect(),
        )
    }

    fn jobs<'a>(&'a self, instance: &'a Instance) -> Vec<SelectionJob<'a>> {
        let job = |(tests, patches): &'a (Prediction, Vec<Prediction>)| SelectionJob {
            instance,
            tests: vec![tests],
            patches: patches.iter().collect(),
        };
        self.0.iter().map(job).collect()
    }
}

fn prediction(named_patch: &NamedPatch) -> Prediction {
    Prediction {
        instance_id: INSTANCE.to_owned(),
        model_name_or_path: named_patch.name.clone(),
        model_patch: Some(named_patch.patch.clone()),
    }
}

/// Id of the only instance of a matrix.
const INSTANCE: &str = "matrix";

/// Returns the old code as an instance without golden patch and tests.
async fn old_code(
    settings: &Settings,
    input: &MatrixInput,
    stored: &StoredMatrix,
) -> Result<Instance> {
    let commit = stored.base_commit.as_ref().or(input.commit.as_ref());
    let place = RepositoryLocation {
        location: input.repository.clone(),
        revision: commit.cloned(),
    };
    let issue = input.issue.clone().unwrap_or_default();
    let (instance, _) = instance_at(settings, &place, issue).await?;
    Ok(Instance {
        instance_id: INSTANCE.to_owned(),
        ..instance
    })
}
