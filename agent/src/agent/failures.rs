//! Conversion of failures that are not the test's fault into outcomes and answers.

use testwright_agent_prompts::RenderError;
use testwright_sandboxes::SandboxError;
use testwright_tools::tool::AnyTool;

use super::{Flow, Outcome};
use crate::trajectory::TrajectoryError;
use testwright_config::error::Error;
use testwright_models::ModelError;

pub(crate) fn infrastructure(error: SandboxError) -> Outcome {
    Outcome::Infrastructure {
        shortage: error.shortage(),
        message: error.message,
        hint: error.hint,
    }
}

/// Returns a prompt, or the outcome of a failure to render it.
pub(crate) fn prompt(text: Result<String, RenderError>) -> Flow<String> {
    text.map_err(|error| Outcome::Infrastructure {
        message: error.to_string(),
        hint: None,
        shortage: None,
    })
}

pub(super) fn trajectory_failed(error: TrajectoryError) -> Outcome {
    Outcome::Infrastructure {
        message: error.to_string(),
        shortage: error.shortage(),
        hint: Some("free disk space, then resume the run".to_owned()),
    }
}

pub(super) fn model_failed(error: ModelError) -> Outcome {
    let message = error.to_string();
    match error {
        ModelError::Fatal { hint, .. } => Outcome::ModelFailed { message, hint },
        ModelError::Transient { .. } | ModelError::Unreachable { .. } => Outcome::ModelFailed {
            message,
            hint: Error::from(error).hint,
        },
        // The model did not fail: it was not asked.
        ModelError::CeilingReached(_) => Outcome::Infrastructure {
            message,
            hint: Error::from(error).hint,
            shortage: None,
        },
        ModelError::ContextFull(_)
        | ModelError::Refused { .. }
        | ModelError::NotRecorded(_)
        | ModelError::TimeUp { .. } => Outcome::ModelFailed {
            message,
            hint: None,
        },
    }
}

/// Answers a call of a tool that is not available.
pub(super) fn unknown_tool(name: &str, allowed: &[&dyn AnyTool]) -> String {
    let nearest = allowed
        .iter()
        .map(|tool| (strsim::jaro_winkler(name, tool.name()), tool.name()))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let names: Vec<&str> = allowed.iter().map(|tool| tool.name()).collect();
    match nearest {
        Some((score, nearest)) if score > 0.7 => {
            format!(
                "there is no tool `{name}`; did you mean `{nearest}`? The tools are: {}",
                names.join(", ")
            )
        }
        _ => format!(
            "there is no tool `{name}`. The tools are: {}",
            names.join(", ")
        ),
    }
}
