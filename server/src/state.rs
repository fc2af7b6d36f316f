//! State that request handlers share.

use std::sync::Arc;

use axum::extract::FromRef;
use testwright_config::settings::Settings;
use testwright_config::stop_signal::StopSignal;
use tokio::sync::broadcast;

use crate::access::Access;
use crate::allow_list::AllowList;
use crate::artifacts::Artifacts;
use crate::probes::Probes;
use crate::sandbox_limits::SandboxLimits;
use crate::store::{JobId, Store};
use crate::telemetry::Telemetry;

/// State of the API. Cheap to clone.
pub type ApiState = Arc<ApiParts>;

/// The parts of the state.
pub struct ApiParts {
    /// Database with all jobs.
    pub store: Store,
    /// Store for the files of runs, if files are kept.
    pub artifacts: Option<Artifacts>,
    /// Settings of the server.
    pub settings: Settings,
    /// Repositories that clients may name.
    pub allowed: AllowList,
    /// Names of the server, and whether clients must send a token.
    pub access: Access,
    /// Limits on the sandboxes of clients.
    pub sandboxes: Arc<SandboxLimits>,
    /// Publishes the ids of runs that have changed.
    pub changes: broadcast::Sender<JobId>,
    /// Signals streams that this process is shutting down.
    pub stop: StopSignal,
    /// Metrics and traces.
    pub telemetry: Arc<Telemetry>,
    /// Checks of the health of this process.
    pub probes: Probes,
}

impl FromRef<ApiState> for Probes {
    fn from_ref(state: &ApiState) -> Self {
        state.probes.clone()
    }
}
