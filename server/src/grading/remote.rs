//! Delegates gradings to the workers of a database, waits for them, and fetches results and logs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use testwright_evals::harness::{
    Harness, Job, PortableResult, Progress, Step, grading_key, ungraded_result,
};
use testwright_evals::result::Infrastructure;

use super::request::{GradingRequest, GradingSettings};
use super::work::read;
use crate::batch::Batch;
use crate::json::encode;
use crate::store::{JobId, JobKind, JobStatus, NewGrading, StoredGrading};
use testwright_comparisons::grading::{GradingRun, RemoteGrading, ResultSink};
use testwright_config::error::{Error, Result};
use testwright_config::hex::hex;

/// Interval for checking which gradings have ended.
const POLL: Duration = Duration::from_secs(1);

/// Delegates gradings to the workers of a store.
pub struct StoreGradings {
    batch: Batch,
    settings: GradingSettings,
}

impl StoreGradings {
    /// Delegates a grading to the workers of the batch's database.
    pub fn new(batch: Batch, grading: &GradingRun) -> Self {
        StoreGradings {
            batch,
            settings: GradingSettings::from_grading(grading),
        }
    }

    /// Cancels the gradings, whose results are no longer needed.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cancel(&self) -> Result<()> {
        let Batch { store, id, .. } = &self.batch;
        store.cancel_gradings(id.as_str()).await.map(drop)
    }

    /// Returns the grading of a job, and queues it if it has no results.
    async fn ask(&self, harness: &Harness, job: &Job<'_>) -> Result<JobId> {
        let Batch {
            store, owner, id, ..
        } = &self.batch;
        let predictions = job.predictions.iter();
        let keys = predictions.map(|&prediction| grading_key(harness, job.instance, prediction));
        let keys: Vec<String> = keys.collect();
        let mut digest = Sha256::new();
        for (prediction, key) in job.predictions.iter().zip(&keys) {
            digest.update(format!("{:?} {key}\n", prediction.model_name_or_path));
        }
        let digest = hex(&digest.finalize()[..16]);
        let request = GradingRequest {
            instance: job.instance.clone(),
            predictions: job.predictions.iter().copied().cloned().collect(),
            keys,
            settings: self.settings.clone(),
        };
        let new = NewGrading {
            request: encode(&request, "store the grading")?,
            owner: owner.clone(),
            batch: id.to_string(),
            idempotency_key: format!("{id}/{}/{digest}", job.instance.instance_id),
        };
        let grading = store.add_grading(&new).await?;
        if grading.status.may_be_retried() {
            store.requeue(JobKind::Grading, &grading.id).await?;
        }
        Ok(grading.id)
    }

    async fn check_not_cancelled(&self) -> Result<()> {
        // An evaluation is not stored as a comparison.
        match self.batch.store.cancel_late_jobs(&self.batch.id).await {
            Ok(true) => Err(cancelled()),
            // If the database fails, the next check decides.
            _ => Ok(()),
        }
    }

    /// Passes on the results of a grading that has ended; predictions without a result count as not graded.
    async fn bring_back(
        &self,
        harness: &Harness,
        job: &Job<'_>,
        grading: &StoredGrading,
        add: ResultSink<'_>,
    ) -> Result<()> {
        let mut results: BTreeMap<String, PortableResult> = BTreeMap::new();
        for text in self.batch.store.graded(&grading.id).await? {
            let packed = read(&text)?;
            results.insert(packed.result.prediction.clone(), packed);
        }
        for &prediction in &job.predictions {
            let stored_result = results.remove(&prediction.model_name_or_path);
            let stored_result = stored_result.filter(|packed| {
                let key = grading_key(harness, job.instance, prediction);
                packed.result.instance_id == job.instance.instance_id && packed.result.key == key
            });
            let lost = || {
                let cause = grading.message.clone();
                let cause = cause.unwrap_or_else(|| "a worker returned no result".to_owned());
                let failed = Infrastructure {
                    stage: "worker".to_owned(),
                    cause,
                    log: None,
                    shortage: None,
                };
                PortableResult {
                    result: ungraded_result(harness, job.instance, prediction, failed),
                    logs: BTreeMap::new(),
                }
            };
            add(stored_result.unwrap_or_else(lost))?;
        }
        Ok(())
    }
}

#[async_trait]
impl RemoteGrading for StoreGradings {
    async fn grade(
        &self,
        harness: &Harness,
        jobs: &[Job<'_>],
        progress: Progress<'_>,
        add: ResultSink<'_>,
    ) -> Result<()> {
        self.check_not_cancelled().await?;
        let mut waiting: BTreeMap<JobId, &Job<'_>> = BTreeMap::new();
        for job in jobs {
            waiting.insert(self.ask(harness, job).await?, job);
        }
        while !waiting.is_empty() {
            tokio::time::sleep(POLL).await;
            self.check_not_cancelled().await?;
            // If the database fails, the next check decides.
            let Ok(gradings) = self.batch.store.gradings(self.batch.id.as_str()).await else {
                continue;
            };
            let there: BTreeSet<&JobId> = gradings.iter().map(|grading| &grading.id).collect();
            if let Some(missing_id) = waiting.keys().find(|id| !there.contains(id)) {
                let error = Error::infrastructure(format!("wait for the grading {missing_id}"));
                return Err(error.cause("the grading is no longer in the database"));
            }
            for grading in &gradings {
                let Some(&job) = waiting.get(&grading.id) else {
                    continue;
                };
                match grading.status {
                    JobStatus::Cancelled => return Err(cancelled()),
                    JobStatus::Running => progress(Step::Building {
                        instance: job.instance.instance_id.clone(),
                        step: "being graded by a worker".to_owned(),
                    }),
                    status if status.has_ended() => {
                        self.bring_back(harness, job, grading, &mut *add).await?;
                        waiting.remove(&grading.id);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn forget(&self) -> Result<()> {
        self.batch
            .store
            .delete_gradings(self.batch.id.as_str())
            .await
    }
}

fn cancelled() -> Error {
    Error::cancelled("the grading was cancelled on the server")
        .hint("run the same command again to continue")
}
