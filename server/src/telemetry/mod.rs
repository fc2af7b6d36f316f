//! Monitoring of the server: metrics for Prometheus, logs and spans.
//!
//! Runs are observed through the events that they store; their code contains no telemetry.

mod collector;
mod http;
mod metrics;
mod process;
mod run;
mod traces;

use std::sync::Arc;

pub(crate) use http::{Listener, observe_request};
pub(crate) use metrics::{CONTENT_TYPE, Metrics};
pub(crate) use run::RunObserver;
pub(crate) use traces::RequestSpan;
use traces::Traces;

use testwright_config::error::Result;

/// The telemetry of a process.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Metrics,
    traces: Option<Traces>,
}

impl Telemetry {
    /// Starts telemetry, as configured by environment variables.
    ///
    /// # Errors
    ///
    /// Fails if the settings for traces are invalid.
    pub fn start() -> Result<Arc<Self>> {
        Ok(Arc::new(Telemetry {
            metrics: Metrics::default(),
            traces: Traces::from_environment()?,
        }))
    }

    /// Sends the remaining spans.
    pub async fn stop(&self) {
        if let Some(traces) = &self.traces {
            traces.shut_down().await;
        }
    }
}
