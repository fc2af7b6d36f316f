//! JSON that this server writes and reads again. Errors are failures of the server, not of a client.

use serde::Serialize;
use serde::de::DeserializeOwned;

use testwright_config::error::{Error, Result};

/// Encodes a value; `what` follows "failed to".
pub(crate) fn encode(value: &impl Serialize, what: &str) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::infrastructure(what).cause(error))
}

/// Decodes a value; `what` follows "failed to".
pub(crate) fn decode<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::infrastructure(what).cause(error))
}
