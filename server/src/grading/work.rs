//! Executes a queued grading, from the beginning or from its stored results.

use std::collections::BTreeSet;
use std::path::PathBuf;

use testwright_evals::harness::{Harness, Job, PortableResult, grade_job};
use testwright_evals::predictions::Prediction;
use tokio::sync::mpsc;

use super::request::GradingRequest;
use crate::attempt::AttemptEnd;
use crate::harnesses::HarnessCache;
use crate::json::{decode, encode};
use crate::store::{Attempt, Store};
use testwright_config::error::{Error, Result};

/// The inputs for executing gradings.
pub struct GradingWork<'w> {
    /// Database with the gradings.
    pub store: &'w Store,
    /// Harnesses, which grade predictions.
    pub harnesses: &'w HarnessCache,
    /// Folder for logs during grading.
    pub folder: PathBuf,
}

impl GradingWork<'_> {
    /// Grades the predictions that have no result yet.
    ///
    /// # Errors
    ///
    /// Fails if the request is invalid, this worker would grade differently, or the database or the machine fails.
    pub async fn process_attempt(&self, attempt: &Attempt) -> Result<AttemptEnd> {
        let text = self.store.grading_request(&attempt.id).await?;
        let request: GradingRequest = decode(&text, "read the request")?;
        let harness = request.harness(self.harnesses, self.folder.clone()).await?;
        let graded_names = self.graded_predictions(attempt).await?;
        let is_missing = |p: &&Prediction| !graded_names.contains(&p.model_name_or_path);
        let job = Job {
            instance: &request.instance,
            predictions: request.predictions.iter().filter(is_missing).collect(),
        };
        self.grade(&harness, &job, attempt).await?;
        Ok(AttemptEnd::of_failures(Vec::new()))
    }

    /// Returns predictions with a result from an earlier attempt; results that failed because of the machine are graded
    /// again.
    async fn graded_predictions(&self, attempt: &Attempt) -> Result<BTreeSet<String>> {
        let results = self.store.graded(&attempt.id).await?;
        let results = results.iter().map(|text| read(text));
        let results: Vec<PortableResult> = results.collect::<Result<_>>()?;
        let judged = results.into_iter().map(|packed| packed.result);
        let judged = judged.filter(|result| result.infrastructure.is_none());
        Ok(judged.map(|result| result.prediction).collect())
    }

    /// Grades a job and stores each result as soon as it is available.
    async fn grade(&self, harness: &Harness, job: &Job<'_>, attempt: &Attempt) -> Result<()> {
        let (sender, mut results) = mpsc::unbounded_channel();
        let grading = async move {
            let add = |result| {
                let _ = sender.send(PortableResult::pack(&harness.out, result));
                Ok(())
            };
            let graded = grade_job(harness, job, &|_| {}, &add).await;
            graded.map_err(testwright_comparisons::grading::storing)
        };
        let storing = async {
            while let Some(packed) = results.recv().await {
                if let Some(failed) = &packed.result.infrastructure
                    && let Some(shortage) = failed.shortage
                {
                    return Err(Error::exhausted(shortage, "grade a prediction").cause(failed));
                }
                let text = encode(&packed, "encode a result")?;
                let name = &packed.result.prediction;
                self.store.add_graded(attempt, name, &text).await?;
            }
            Ok(())
        };
        // If a result cannot be stored, grading stops.
        tokio::try_join!(grading, storing)?;
        Ok(())
    }
}

/// Parses a result from the store.
///
/// # Errors
///
/// Fails if the text is not a valid result.
pub fn read(text: &str) -> Result<PortableResult> {
    decode(text, "read a result of the grading")
}
