//! `handshake`: which toolbox this is. The host compares it with the one that it sent.

use crate::digest::DIGEST;
use crate::process::confinement;
use crate::tool::{Answer, Audience, Context, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub struct Handshake;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

impl Tool for Handshake {
    type Args = Args;
    const NAME: &'static str = "handshake";
    const DESCRIPTION: &'static str =
        "The toolbox's version, the SHA-256 of its sources, and what keeps programs from it.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, _: &mut Context<'_>, _: Args) -> Result<Answer, ToolError> {
        let version = env!("CARGO_PKG_VERSION");
        Answer::with_data(
            format!("testwright-toolbox {version} {DIGEST}"),
            &json!({ "version": version, "digest": DIGEST, "layers": confinement::layers() }),
        )
    }
}
