//! How a run ended. It is data, not an exception.

use serde::{Deserialize, Serialize};

use crate::gate::Evidence;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The gate accepted a test.
    Accepted {
        patch: String,
        evidence: Box<Evidence>,
    },
    /// The approach submitted, and the gate, asked for the record only, found fault.
    Refused {
        patch: String,
        findings: Vec<String>,
    },
    /// The model says that the issue cannot fail in this environment, and why.
    Abstained {
        reason: String,
        /// Version of the Python there.
        python: String,
        /// What it ran, and the first line of each answer.
        tried: Vec<String>,
    },
    /// A budget was used up before a test was accepted.
    OutOfBudget { limit: Limit },
    /// The approach came to an end without a test.
    Nothing { reason: String },
    /// The model cannot be used: a wrong key, a refused request, no answer after all tries.
    ModelFailed {
        message: String,
        hint: Option<String>,
    },
    /// The sandbox, the disk or a limit of ours failed: not the model's fault, not the approach's.
    Infrastructure {
        message: String,
        hint: Option<String>,
    },
    /// Ctrl-C or a signal to end.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Steps,
    Dollars,
    Tokens,
    Minutes,
}

impl Limit {
    /// The flag that raises it.
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
    /// The run has come to its end; else it can go on later, where it was cut short.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Outcome::ModelFailed { .. } | Outcome::Infrastructure { .. } | Outcome::Interrupted
        )
    }

    /// Exit code of the command line.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome::Accepted { .. } => 0,
            Outcome::Refused { .. }
            | Outcome::Abstained { .. }
            | Outcome::OutOfBudget { .. }
            | Outcome::Nothing { .. } => 1,
            Outcome::ModelFailed { .. } | Outcome::Infrastructure { .. } => 3,
            Outcome::Interrupted => 130,
        }
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        match self {
            Outcome::Accepted { evidence, .. } => format!("accepted: {}", evidence.headline()),
            Outcome::Refused { findings, .. } => {
                format!("submitted, but not accepted: {}", findings.join("; "))
            }
            Outcome::Abstained { reason, python, .. } => {
                format!("abstained: the issue is said not to fail here (Python {python}): {reason}")
            }
            Outcome::OutOfBudget { limit } => {
                format!(
                    "no test accepted within the budget ({} raises it)",
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
