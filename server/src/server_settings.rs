//! The settings of a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::access::Access;
use super::allow_list::AllowList;
use super::mcp::SessionLimits;
use crate::artifacts::Artifacts;
use testwright_config::settings::Settings;

/// Settings of a server.
pub struct ServerSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Names of the server, and whether clients must send a token.
    pub access: Access,
    /// `sqlite:FILE` or `postgres://…`
    pub database: String,
    /// Maximum concurrent runs of this process.
    pub workers: usize,
    /// Folder for runs in progress.
    pub runs: PathBuf,
    /// Store for the files of runs.
    pub artifacts: Artifacts,
    /// Additional address for probes and Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Days to keep runs, comparisons, matrices and gradings after their end; `None` keeps them forever.
    pub keep_runs: Option<u32>,
    /// Maximum bytes of the artifact store; `None` means no limit.
    pub artifact_bytes: Option<u64>,
    /// Repositories that clients may name.
    pub allowed: AllowList,
    /// Maximum concurrent connections.
    pub connections: usize,
    /// Limits on sessions of MCP clients.
    pub sessions: SessionLimits,
    /// Settings for all runs.
    pub settings: Settings,
}
