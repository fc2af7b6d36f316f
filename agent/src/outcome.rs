//! The outcome of a run, as data rather than as an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_config::error::Error;
use testwright_sandboxes::{Shortage, repository};

use crate::gate::Evidence;

/// Start of an output line that is data for an approach, not a text for people.
pub(crate) const DATA_MARK: &str = "@@probe ";

/// The result of a step, or the outcome that ends the run: `?` ends the run.
pub type Flow<T = ()> = std::result::Result<T, Outcome>;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schemars(rename = "RunOutcome")]
pub enum Outcome {
    /// The gate accepted a test.
    Accepted {
        /// Test, as a patch for `git apply`.
        patch: String,
        /// Evidence for the test.
        evidence: Box<Evidence>,
    },
    /// The gate did not accept the test that the approach submitted. Its verdict was only recorded: the approach could
    /// not react to it.
    Refused {
        /// Test, as a patch for `git apply`.
        patch: String,
        /// Findings of the gate.
        findings: Vec<String>,
    },
    /// The confidence in the test is below the minimum, so it is withheld.
    Withheld {
        /// Test, as a patch for `git apply`.
        patch: String,
        /// Evidence for a test that the gate accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
        /// Findings of the gate for a test that it did not accept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<String>,
        /// Minimum confidence that was requested.
        minimum: f64,
    },
    /// The model says that the issue cannot fail in this environment, and gives a reason.
    Abstained {
        /// Reason, in the model's words.
        reason: String,
        /// Version of the Python interpreter there.
        python: String,
        /// Calls that the model made, each with one line of its answer.
        calls: Vec<String>,
    },
    /// A budget was used up before a test was accepted.
    OutOfBudget {
        /// The limit that was reached.
        limit: Limit,
    },
    /// The approach ended without a test.
    Nothing {
        /// Reason for the lack of a test.
        reason: String,
    },
    /// The model cannot be used: a wrong key, a refused request, or no answer after all tries.
    ModelFailed {
        /// Description of the failure.
        message: String,
        /// Advice on what to change, if there is any.
        hint: Option<String>,
    },
    /// The sandbox, the disk or a limit of testwright failed; neither the model nor the approach is at fault.
    Infrastructure {
        /// Description of the failure.
        message: String,
        /// Advice on what to change, if there is any.
        hint: Option<String>,
        /// Resource that the machine ran out of, if that is the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortage: Option<Shortage>,
    },
    /// Ctrl-C, or a signal to terminate.
    Interrupted,
}

/// A limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Model calls.
    Steps,
    /// Cost in US dollars.
    Dollars,
    /// Tokens, prompts and completions together.
    Tokens,
    /// Minutes.
    Minutes,
}

impl From<Limit> for Outcome {
    fn from(limit: Limit) -> Self {
        Outcome::OutOfBudget { limit }
    }
}

impl From<Error> for Outcome {
    /// Creates the outcome for a failure of the machine or of a service that it needs.
    fn from(error: Error) -> Self {
        Outcome::Infrastructure {
            message: error.with_cause(),
            shortage: error.kind.shortage(),
            hint: error.hint,
        }
    }
}

impl Limit {
    /// Returns the flag that raises the limit.
    pub fn flag(self) -> &'static str {
        match self {
            Limit::Steps => "--max-steps",
            Limit::Dollars => "--max-dollars",
            Limit::Tokens => "--max-tokens",
            Limit::Minutes => "--max-minutes",
        }
    }
}

impl Outcome {
    /// Returns whether the run has ended; otherwise it can be resumed later.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Outcome::ModelFailed { .. } | Outcome::Infrastructure { .. } | Outcome::Interrupted
        )
    }

    /// Creates the outcome of an approach that ended without a test.
    pub(crate) fn nothing(reason: impl Into<String>) -> Self {
        Outcome::Nothing {
            reason: reason.into(),
        }
    }

    /// Creates the outcome of a failure for which there is no advice.
    pub(crate) fn infrastructure(message: impl Into<String>) -> Self {
        Outcome::Infrastructure {
            message: message.into(),
            hint: None,
            shortage: None,
        }
    }

    /// Returns the resource that the machine ran out of, if that ended the run.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Outcome::Infrastructure { shortage, .. } => *shortage,
            _ => None,
        }
    }

    /// Returns the failure of the model service or the machine, which says nothing about the approach.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Outcome::ModelFailed { message, .. } | Outcome::Infrastructure { message, .. } => {
                Some(message)
            }
            _ => None,
        }
    }

    /// Returns the submitted patch, whether accepted or not.
    pub fn patch(&self) -> Option<&str> {
        match self {
            Outcome::Accepted { patch, .. } | Outcome::Refused { patch, .. } => Some(patch),
            _ => None,
        }
    }

    /// Returns the test that was written, submitted or withheld, for people to read.
    pub fn written_patch(&self) -> Option<&str> {
        match self {
            Outcome::Withheld { patch, .. } => Some(patch),
            other => other.patch(),
        }
    }

    /// Returns the confidence in the test; 0 if the gate did not accept it.
    pub fn confidence(&self) -> Option<f64> {
        match self {
            Outcome::Accepted { evidence, .. }
            | Outcome::Withheld {
                evidence: Some(evidence),
                ..
            } => evidence.confidence(),
            Outcome::Refused { .. } | Outcome::Withheld { .. } => Some(0.0),
            _ => None,
        }
    }

    /// Withholds a test whose confidence is below the minimum.
    pub fn with_minimum(self, minimum: f64) -> Outcome {
        let is_enough = (self.confidence()).is_none_or(|confidence| confidence >= minimum);
        let (patch, evidence, findings) = match self {
            Outcome::Accepted { patch, evidence } if !is_enough => {
                (patch, Some(evidence), Vec::new())
            }
            Outcome::Refused { patch, findings } if !is_enough => (patch, None, findings),
            other => return other,
        };
        Outcome::Withheld {
            patch,
            evidence,
            findings,
            minimum,
        }
    }

    /// Makes the paths of the patch relative to the root of a repository that has the old code in a subfolder.
    /// `prefix` ends in `/`, or is empty.
    pub fn with_path_prefix(mut self, prefix: &str) -> Outcome {
        if let Outcome::Accepted { patch, .. }
        | Outcome::Refused { patch, .. }
        | Outcome::Withheld { patch, .. } = &mut self
            && !prefix.is_empty()
        {
            *patch = repository::with_prefix(patch, prefix);
        }
        self
    }

    /// Returns the exit code of the command line.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome::Accepted { .. } => 0,
            Outcome::Refused { .. }
            | Outcome::Withheld { .. }
            | Outcome::Abstained { .. }
            | Outcome::OutOfBudget { .. }
            | Outcome::Nothing { .. } => 1,
            Outcome::ModelFailed { .. } | Outcome::Infrastructure { .. } => 3,
            Outcome::Interrupted => 130,
        }
    }

    /// Returns a summary in one line, for people.
    pub fn summary(&self) -> String {
        match self {
            Outcome::Accepted { evidence, .. } => format!("accepted: {}", evidence.headline()),
            Outcome::Refused { findings, .. } => {
                format!("submitted, but not accepted: {}", findings.join("; "))
            }
            Outcome::Withheld {
                evidence,
                findings,
                minimum,
                ..
            } => {
                let confidence = self.confidence().unwrap_or_default();
                let doubts = match evidence {
                    Some(evidence) => evidence.doubts(),
                    None => findings.clone(),
                };
                format!(
                    "withheld: the confidence of {confidence:.2} is below {minimum}: {}",
                    doubts.join("; ")
                )
            }
            Outcome::Abstained { reason, python, .. } => {
                format!(
                    "abstained: the model says that the issue does not fail here (Python {python}): {reason}"
                )
            }
            Outcome::OutOfBudget { limit } => {
                format!(
                    "no test was accepted within the budget; raise it with {}",
                    limit.flag()
                )
            }
            Outcome::Nothing { reason } => format!("no test: {reason}"),
            Outcome::ModelFailed { message, .. } => format!("the model failed: {message}"),
            Outcome::Infrastructure { message, .. } => format!("infrastructure: {message}"),
            Outcome::Interrupted => "interrupted".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
