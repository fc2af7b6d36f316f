//! Conversion of failures that are not the test's fault into outcomes and answers.

use testwright_agent_prompts::RenderError;
use testwright_sandboxes::SandboxError;
use testwright_tools::tool::AnyTool;

use super::Outcome;
use crate::trajectory::TrajectoryError;
use testwright_config::error::Error;
use testwright_models::ModelError;

impl From<SandboxError> for Outcome {
    fn from(error: SandboxError) -> Self {
        Outcome::Infrastructure {
            shortage: error.shortage(),
            message: error.message,
            hint: error.hint,
        }
    }
}

impl From<RenderError> for Outcome {
    fn from(error: RenderError) -> Self {
        Outcome::infrastructure(error.to_string())
    }
}

impl From<TrajectoryError> for Outcome {
    fn from(error: TrajectoryError) -> Self {
        Outcome::Infrastructure {
            message: error.to_string(),
            shortage: error.shortage(),
            hint: Some("free disk space, then resume the run".to_owned()),
        }
    }
}

impl From<ModelError> for Outcome {
    fn from(error: ModelError) -> Self {
        let message = error.to_string();
        let hint = match error {
            // The model did not fail: it was not asked.
            ModelError::CeilingReached(_) => {
                return Outcome::Infrastructure {
                    message,
                    hint: Error::from(error).hint,
                    shortage: None,
                };
            }
            ModelError::Fatal { .. }
            | ModelError::Transient { .. }
            | ModelError::Unreachable { .. } => Error::from(error).hint,
            _ => None,
        };
        Outcome::ModelFailed { message, hint }
    }
}

/// Answers a call of a tool that is not available.
pub(super) fn unknown_tool(name: &str, allowed: &[&dyn AnyTool]) -> String {
    let names: Vec<&str> = allowed.iter().map(|tool| tool.name()).collect();
    let scores = (names.iter()).map(|known| (strsim::jaro_winkler(name, known), known));
    let advice = match scores.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, nearest)) if score > 0.7 => format!("; did you mean `{nearest}`?"),
        _ => ".".to_owned(),
    };
    let names = names.join(", ");
    format!("there is no tool `{name}`{advice} The tools are: {names}")
}
