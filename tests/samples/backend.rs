//! The backend `sample`, which is the local sandbox under another name.
//!
//! `tests/it/repository/samples.rs` adds this file to a copy of the project as `agent/src/backends/sample.rs`.

use async_trait::async_trait;
use testwright_sandboxes::Backend;

use super::local::LOCAL;
use super::{Connector, Examination, Guarantee, GuaranteeStatus};
use testwright_config::error::Result;
use testwright_config::settings::Settings;

pub(super) struct SampleConnector;

#[async_trait]
impl Connector for SampleConnector {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn description(&self) -> &'static str {
        "same as local"
    }

    fn requirement(&self) -> &'static str {
        "isolation"
    }

    async fn connect(&self, settings: &Settings) -> Result<Box<dyn Backend>> {
        LOCAL.connect(settings).await
    }

    async fn examine(&self, settings: &Settings) -> Result<Examination> {
        Ok(Examination {
            backend: self.connect(settings).await?,
            summary: "a sample".to_owned(),
            guarantees: vec![Guarantee {
                what: "files",
                holds: GuaranteeStatus::Yes,
                text: "isolated as in local",
            }],
        })
    }
}
