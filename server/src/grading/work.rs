//! Works on a queued grading: from the beginning, or from the results that are stored.

use std::collections::BTreeSet;
use std::path::PathBuf;

use testwright_evals::harness::{Harness, Job, PortableResult, grade_job};
use testwright_evals::predictions::Prediction;
use tokio::sync::mpsc;

use super::request::GradingRequest;
use crate::attempt::Ending;
use crate::harnesses::Harnesses;
use crate::store::{Attempt, Store};
use testwright_config::error::{Error, Result};

pub struct GradingWork<'w> {
    pub store: &'w Store,
    pub harnesses: &'w Harnesses,
    /// Where logs are while it is worked on.
    pub folder: PathBuf,
}

impl GradingWork<'_> {
    pub async fn work(&self, taken: &Attempt) -> Result<Ending> {
        let text = self.store.grading_request(&taken.id).await?;
        let request: GradingRequest = serde_json::from_str(&text)
            .map_err(|error| Error::infrastructure("read what is to be graded").cause(error))?;
        let harness = request.harness(self.harnesses, self.folder.clone()).await?;
        let known = self.known(taken).await?;
        let is_missing = |p: &&Prediction| !known.contains(&p.model_name_or_path);
        let job = Job {
            instance: &request.instance,
            predictions: request.predictions.iter().filter(is_missing).collect(),
        };
        self.grade(&harness, &job, taken).await?;
        Ok(Ending::of_failures(Vec::new()))
    }

    /// Predictions with a result that an earlier attempt came to; what the machine failed is tried again.
    async fn known(&self, taken: &Attempt) -> Result<BTreeSet<String>> {
        let results = self.store.graded(&taken.id).await?;
        let results = results.iter().map(|text| read(text));
        let results: Vec<PortableResult> = results.collect::<Result<_>>()?;
        let judged = results.into_iter().map(|packed| packed.result);
        let judged = judged.filter(|result| result.infrastructure.is_none());
        Ok(judged.map(|result| result.prediction).collect())
    }

    /// Stores each result as it comes.
    async fn grade(&self, harness: &Harness, job: &Job<'_>, taken: &Attempt) -> Result<()> {
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
                let text = serde_json::to_string(&packed)
                    .map_err(|error| Error::infrastructure("encode a result").cause(error))?;
                let name = &packed.result.prediction;
                self.store.add_graded(taken, name, &text).await?;
            }
            Ok(())
        };
        // Where a result cannot be stored, no more are made.
        tokio::try_join!(grading, storing)?;
        Ok(())
    }
}

/// A result as the store has it.
pub fn read(text: &str) -> Result<PortableResult> {
    serde_json::from_str(text)
        .map_err(|error| Error::infrastructure("read a result of the grading").cause(error))
}
