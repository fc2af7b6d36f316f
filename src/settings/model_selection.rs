//! Which approach and which model, from what is set and what is there.

use super::{Origin, Settings};
use crate::error::{Error, Result};

/// The approach and the model that need no key.
pub const SNIPPET: &str = "snippet";
const DEFAULT_MODEL: &str = "gpt-5-mini";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSelection {
    pub approach: String,
    pub model: String,
    /// What the user should know about how it came to this, in a line.
    pub note: Option<String>,
}

/// A recording is played without any service; Azure has variables of its own.
fn needs_no_key(model: &str) -> bool {
    ["replay:", "replay-by-order:", "azure/"]
        .iter()
        .any(|prefix| model.starts_with(prefix))
}

impl Settings {
    /// Without a key and without an endpoint there is still [`SNIPPET`].
    pub fn select_model(&self) -> Result<ModelSelection> {
        let approach = self.run.approach.clone();
        let approach_given = self.origin("run.approach") != Origin::Default;
        let key = self.model_key().is_some();
        let endpoint = self.model.base_url.is_some();
        let snippet = |note: Option<String>| {
            Ok(ModelSelection {
                approach: SNIPPET.to_owned(),
                model: SNIPPET.to_owned(),
                note,
            })
        };
        let missing = |what: &str| {
            Error::usage(what).cause(format!(
                "{} is not set, and no model.base-url is configured",
                self.model.api_key_env
            ))
        };
        match self.run.model.as_deref() {
            _ if approach == SNIPPET && approach_given => snippet(None),
            Some(SNIPPET) if !approach_given => snippet(None),
            Some(SNIPPET) => Err(Error::usage(format!("use the approach `{approach}`"))
                .cause(format!(
                    "the model `{SNIPPET}` follows fixed rules and knows only the approach `{SNIPPET}`"
                ))
                .hint("choose another --model, or leave --approach out")),
            Some(model) if !key && !endpoint && !needs_no_key(model) => Err(missing(&format!("reach the model `{model}`")).hint(format!(
                "set {}, or model.base-url for a server of your own, or use --model {SNIPPET}",
                self.model.api_key_env
            ))),
            Some(model) => Ok(ModelSelection {
                approach,
                model: model.to_owned(),
                note: None,
            }),
            None if endpoint => Err(Error::usage("choose a model")
                .cause("model.base-url is set, but no model is named")
                .hint("add --model NAME, or set TESTWRIGHT_MODEL")),
            None if key => Ok(ModelSelection {
                approach,
                model: DEFAULT_MODEL.to_owned(),
                note: Some(format!("no model is named: using {DEFAULT_MODEL}")),
            }),
            None if approach_given => Err(missing(&format!("use the approach `{approach}`")).hint(format!(
                "set {}, or model.base-url for a server of your own, or use --approach {SNIPPET}",
                self.model.api_key_env
            ))),
            None => snippet(Some(format!(
                "no model is configured ({} is not set): using the rules of `{SNIPPET}`",
                self.model.api_key_env
            ))),
        }
    }
}
