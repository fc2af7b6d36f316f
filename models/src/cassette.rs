//! Record and replay of model traffic: one JSON line an exchange.
//!
//! A request is stored as what it adds to the one before (conversations are append-only), with a digest of
//! the whole. [`Recorder`] goes around everything else ([`super::retry`], prices), so that a replay waits
//! for nothing and costs the same.

mod digest;
mod player;
mod recorder;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use testwright_tools::tool::ToolSpec;

use super::{Message, ModelError, Reply, Request};

pub use digest::digest;
pub use player::Replayer;
pub use recorder::Recorder;

/// One line of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    /// The model's name.
    model: String,
    /// [`digest`] of the whole request.
    digest: String,
    /// How many messages the request begins with that the one on the line before has too.
    kept: usize,
    /// The messages behind those.
    messages: Vec<Message>,
    /// Everything else of the request, where it differs from the line before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setting: Option<Setting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ModelError>,
    seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    tools: Vec<ToolSpec>,
    parallel_calls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

impl From<&Request> for Setting {
    fn from(request: &Request) -> Self {
        Setting {
            tools: request.tools.clone(),
            parallel_calls: request.parallel_calls,
            temperature: request.temperature,
            max_tokens: request.max_tokens,
        }
    }
}
