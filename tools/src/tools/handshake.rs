//! `handshake`: which toolbox this is. The host compares it with the one that it sent.

use std::io::Read;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::process::confinement;
use crate::tool::{Answer, Audience, Context, Tool, ToolError};

pub struct Handshake;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

impl Tool for Handshake {
    type Args = Args;
    const NAME: &'static str = "handshake";
    const DESCRIPTION: &'static str =
        "The toolbox's version, the SHA-256 of its executable, and what keeps programs from it.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, _: &mut Context<'_>, _: Args) -> Result<Answer, ToolError> {
        let mut program = std::fs::File::open("/proc/self/exe")?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = program.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
        }
        let digest: String = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let version = env!("CARGO_PKG_VERSION");
        Answer::with_data(
            format!("testwright-toolbox {version} {digest}"),
            &json!({ "version": version, "digest": digest, "layers": confinement::layers() }),
        )
    }
}
