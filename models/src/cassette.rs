//! Recording and replay of model traffic, with one JSON line per exchange.
//!
//! A request is stored as the messages it adds to the previous one, because conversations are append-only,
//! with a digest of the whole request. [`Recorder`] wraps everything else ([`super::retry`], prices), so that
//! a replay never waits and reports the same cost.

mod digest;
mod player;
mod recorder;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use testwright_tools::tool::ToolSpec;

use super::{Message, ModelError, Reply};

pub use digest::digest;
pub use player::Replayer;
pub use recorder::Recorder;

/// One line of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    /// Name of the model.
    model: String,
    /// [`mod@digest`] of the complete request.
    digest: String,
    /// Number of leading messages shared with the request on the line before.
    kept: usize,
    /// Messages after those.
    messages: Vec<Message>,
    /// All other fields of the request, if they differ from the line before.
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
