//! `handshake`: identifies the toolbox. The host compares it with the one that it sent.

use crate::DIGEST;
use crate::process::confinement;
use crate::tool::{Audience, Context, NoArguments, Reply, Result, Tool};
use serde_json::{Value, json};

/// A tool that identifies the toolbox, for the host.
pub struct Handshake;

impl Tool for Handshake {
    type Args = NoArguments;
    type Data = Value;
    const NAME: &'static str = "handshake";
    const DESCRIPTION: &'static str = "The toolbox's version, the SHA-256 of its sources, and the layers that protect it from programs.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, _: &mut Context<'_>, _: Self::Args) -> Result<Reply<Self::Data>> {
        let version = env!("CARGO_PKG_VERSION");
        Ok(Reply::new(
            format!("testwright-toolbox {version} {DIGEST}"),
            json!({ "version": version, "digest": DIGEST, "layers": confinement::layers() }),
        ))
    }
}
