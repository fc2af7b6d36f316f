//! Steps of grading, as they are reported.

use crate::result::InstanceResult;

/// Progress of grading.
#[derive(Debug, Clone)]
pub enum Step {
    /// A step of a build has started.
    Building {
        /// Id of the instance.
        instance: String,
        /// The step, in words.
        step: String,
    },
    /// Grading of a prediction has started.
    Grading {
        /// Id of the instance.
        instance: String,
        /// Name of the prediction set (`model_name_or_path`).
        prediction: String,
    },
    /// A prediction has been graded.
    Graded {
        /// The result, which is already stored.
        result: Box<InstanceResult>,
        /// Whether the prediction was graded now; false if the result already existed.
        fresh: bool,
    },
}

/// Progress callback, which several tasks call.
pub type Progress<'a> = &'a (dyn Fn(Step) + Send + Sync);
