//! `--sandbox landlock`: reduced isolation, for machines without namespaces and without an engine.

use async_trait::async_trait;
use testwright_sandboxes::Backend;
use testwright_sandboxes::local::Isolation;

use super::local::{examine, local};
use super::{Connector, Examination};
use testwright_config::error::Result;
use testwright_config::settings::Settings;

pub(super) struct LandlockConnector;

#[async_trait]
impl Connector for LandlockConnector {
    fn name(&self) -> &'static str {
        "landlock"
    }

    fn description(&self) -> &'static str {
        "Landlock and seccomp: reduced isolation, for machines without namespaces or an engine"
    }

    fn requirement(&self) -> &'static str {
        "isolation"
    }

    async fn connect(&self, settings: &Settings) -> Result<Box<dyn Backend>> {
        Ok(Box::new(local(settings, Some(Isolation::Landlock))?))
    }

    async fn examine(&self, settings: &Settings) -> Result<Examination> {
        examine(settings, Some(Isolation::Landlock)).await
    }
}
