//! What the daemon tells those who run it: numbers for Prometheus, lines of the log, spans.
//!
//! Runs are seen through the events that they store: nothing inside of a run knows of it.

mod collector;
mod http;
mod metrics;
mod process;
mod run;
mod traces;

use std::sync::Arc;

pub use http::{Listener, observe_request};
pub use metrics::{CONTENT_TYPE, Metrics};
pub use run::RunObserver;
pub use traces::RequestSpan;
use traces::Traces;

use testwright_config::error::Result;

/// Of one process.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Metrics,
    traces: Option<Traces>,
}

impl Telemetry {
    /// As the environment asks for it.
    pub fn start() -> Result<Arc<Self>> {
        Ok(Arc::new(Telemetry {
            metrics: Metrics::default(),
            traces: Traces::from_environment()?,
        }))
    }

    /// Sends what was not sent yet.
    pub async fn stop(&self) {
        if let Some(traces) = &self.traces {
            traces.shut_down().await;
        }
    }
}
