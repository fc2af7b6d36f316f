//! How a run ended. It is data, not an exception.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::Shortage;

use crate::gate::Evidence;

/// What a step gives, or how the run ends with it: `?` ends the run.
pub type Flow<T = ()> = std::result::Result<T, Outcome>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schemars(rename = "RunOutcome")]
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
    /// Less speaks for the test than the user wants: it is not handed over.
    Withheld {
        patch: String,
        /// Of a test that the gate accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
        /// What the gate found, of a test that it did not accept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<String>,
        /// The confidence that was asked for.
        minimum: f64,
    },
    /// The model says that the issue cannot fail in this environment, and why.
    Abstained {
        reason: String,
        /// Version of the Python there.
        python: String,
        /// What it ran, with a line of each answer.
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
        /// What the machine ran out of, if that is the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortage: Option<Shortage>,
    },
    /// Ctrl-C or a signal to end.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// A failure of the machine or of a service that it needs.
    pub fn of_error(error: testwright_config::error::Error) -> Self {
        Outcome::Infrastructure {
            message: error.with_cause(),
            shortage: error.kind.shortage(),
            hint: error.hint,
        }
    }

    /// What the machine ran out of, if that ended the run.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Outcome::Infrastructure { shortage, .. } => *shortage,
            _ => None,
        }
    }

    /// What failed that says nothing about the approach: the model service or the machine.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Outcome::ModelFailed { message, .. } | Outcome::Infrastructure { message, .. } => {
                Some(message)
            }
            _ => None,
        }
    }

    /// What was handed in, accepted or not.
    pub fn patch(&self) -> Option<&str> {
        match self {
            Outcome::Accepted { patch, .. } | Outcome::Refused { patch, .. } => Some(patch),
            _ => None,
        }
    }

    /// The test that was written, handed in or withheld, for people to look at.
    pub fn written_patch(&self) -> Option<&str> {
        match self {
            Outcome::Withheld { patch, .. } => Some(patch),
            other => other.patch(),
        }
    }

    /// Of a test; 0 for one in which the gate found fault.
    pub fn confidence(&self) -> Option<f64> {
        match self {
            Outcome::Accepted { evidence, .. } => Some(evidence.confidence()),
            Outcome::Withheld { evidence, .. } => {
                Some(evidence.as_ref().map_or(0.0, |found| found.confidence()))
            }
            Outcome::Refused { .. } => Some(0.0),
            _ => None,
        }
    }

    /// A test for which less speaks than this is not handed over.
    pub fn with_minimum(self, minimum: f64) -> Outcome {
        let is_enough = (self.confidence()).is_none_or(|confidence| confidence >= minimum);
        match self {
            Outcome::Accepted { patch, evidence } if !is_enough => Outcome::Withheld {
                patch,
                evidence: Some(evidence),
                findings: Vec::new(),
                minimum,
            },
            Outcome::Refused { patch, findings } if !is_enough => Outcome::Withheld {
                patch,
                evidence: None,
                findings,
                minimum,
            },
            other => other,
        }
    }

    /// Exit code of the command line.
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

    /// One line for people.
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
                let (confidence, doubts) = match evidence {
                    Some(evidence) => (evidence.confidence(), evidence.doubts()),
                    None => (0.0, findings.clone()),
                };
                format!(
                    "withheld: the confidence of {confidence:.2} is below {minimum}: {}",
                    doubts.join("; ")
                )
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Outcome {
        Outcome::Refused {
            patch: "p".to_owned(),
            findings: vec!["the test passes".to_owned()],
        }
    }

    #[test]
    fn a_test_in_which_the_gate_found_fault_is_withheld_before_one_that_it_accepts() {
        let accepted = Outcome::Accepted {
            patch: "p".to_owned(),
            evidence: Box::default(),
        };
        assert_eq!(refused().with_minimum(0.0), refused());
        assert_eq!(accepted.clone().with_minimum(0.5), accepted);
        for outcome in [refused().with_minimum(0.1), accepted.with_minimum(0.6)] {
            assert!(matches!(outcome, Outcome::Withheld { .. }), "{outcome:?}");
            assert_eq!(outcome.patch(), None);
            assert_eq!(outcome.written_patch(), Some("p"));
        }
        let unchecked = Outcome::Accepted {
            patch: "p".to_owned(),
            evidence: Box::default(),
        };
        assert_eq!(
            unchecked.with_minimum(0.6).summary(),
            "withheld: the confidence of 0.50 is below 0.6: no candidate fix was tried on it; no reviewer read it"
        );
        let withheld = refused().with_minimum(0.1);
        assert_eq!(withheld.confidence(), Some(0.0));
        assert_eq!(
            withheld.summary(),
            "withheld: the confidence of 0.00 is below 0.1: the test passes"
        );
    }
}
