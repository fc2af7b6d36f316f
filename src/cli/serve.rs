//! `testwright serve`: starts the server.

use std::net::SocketAddr;
use std::time::Duration;

use super::headings::{LIMITS, SERVER};
use super::output;
use super::server_options::{RunnerArgs, StoreArgs, own_artifacts};
use testwright_agent::approaches::model_selection;
use testwright_agent::setup::interrupted;
use testwright_config::error::Result;
use testwright_config::settings::Size;
use testwright_server::access::Access;
use testwright_server::allow_list::{self, AllowList};
use testwright_server::artifacts::Artifacts;
use testwright_server::descriptors;
use testwright_server::mcp::SessionLimits;
use testwright_server::server::{Server, ServerSettings};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  testwright serve\n  \
                  testwright serve --listen 0.0.0.0:8420 --host tests.example.org \\\n      \
                  --database postgres://testwright@db/testwright")]
pub(super) struct Args {
    /// Address to listen on; on a non-loopback address clients need a token (`testwright tokens`)
    #[arg(long, help_heading = SERVER, value_name = "ADDR", default_value = "127.0.0.1:8420")]
    listen: SocketAddr,
    /// Additional host name under which clients reach the server, such as that of a proxy; clients
    /// then need a token; may be repeated
    #[arg(long, help_heading = SERVER, value_name = "NAME", value_parser = parse_host)]
    host: Vec<String>,
    /// Require tokens on loopback, too
    #[arg(long, help_heading = SERVER)]
    require_tokens: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    runner: RunnerArgs,
    /// Repositories that clients may name: a glob for URLs and absolute paths; may be repeated
    #[arg(long, help_heading = SERVER, value_name = "GLOB", default_value = allow_list::DEFAULT)]
    allow_repository: Vec<String>,
    /// Let clients name recordings (`replay:FILE`) as models
    #[arg(long, help_heading = SERVER)]
    allow_recordings: bool,
    /// Maximum client connections; fewer if the limit of open files is low. At the limit, a new
    /// connection replaces an idle one, or a busy one of a client with at least two more
    /// connections; otherwise it gets 503
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    #[command(flatten)]
    sessions: SessionArgs,
    /// Days after which ended runs, comparisons, matrices (tests × patches) and gradings are
    /// removed, with their results [default: keep them]
    #[arg(long, help_heading = LIMITS, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    keep_runs: Option<u32>,
    /// Maximum size of the artifact store, such as `200 GiB`. The files of the jobs that ended first
    /// and the least recently downloaded environments are removed first [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE")]
    artifacts_size: Option<Size>,
}

/// Limits for the sessions of MCP clients.
#[derive(Debug, clap::Args)]
pub(super) struct SessionArgs {
    /// Maximum concurrent sandboxes of MCP clients and of checks over HTTP
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 4)]
    mcp_sandboxes: usize,
    /// Seconds without a call after which an MCP session ends
    #[arg(long, help_heading = LIMITS, value_name = "SECONDS", default_value_t = 900)]
    mcp_idle: u64,
}

impl SessionArgs {
    pub(super) fn limits(&self) -> SessionLimits {
        SessionLimits {
            sandboxes: self.mcp_sandboxes,
            idle: Duration::from_secs(self.mcp_idle.max(1)),
        }
    }
}

/// Parses a host name or address. It is compared with the Host header without its port, where an IPv6 address has
/// brackets.
fn parse_host(text: &str) -> std::result::Result<String, &'static str> {
    let is_address = text.starts_with('[') && text.ends_with(']');
    match text.contains('/') || text.contains(':') && !is_address {
        true => Err("a host has no scheme and no port, and an IPv6 address has brackets"),
        false => Ok(text.to_owned()),
    }
}

pub(super) async fn run(args: &Args) -> Result<()> {
    let limit = descriptors::raise_limit();
    let settings = args.runner.settings()?;
    let data = args.store.data_folder()?;
    let artifacts = match Artifacts::of_settings(&settings)? {
        Some(artifacts) => artifacts,
        None => own_artifacts(&data)?,
    };
    let sandboxes = args
        .runner
        .slots()
        .saturating_add(args.sessions.mcp_sandboxes);
    let max_connections = usize::try_from(args.max_connections).unwrap_or(usize::MAX);
    let needs_model = settings.model.base_url.is_some()
        && matches!(model_selection::default_model(&settings), Ok(None))
        && model_selection::select(&settings).is_err();
    if needs_model {
        output::print_stderr(
            "note: requests must name a `model`, because this server has no default; \
             to set one, use TESTWRIGHT_MODEL or `[run] model`",
        );
    }
    let server = Server::bind(ServerSettings {
        listen: args.listen,
        database: args.store.database()?,
        workers: args.runner.slots(),
        runs: data.join("runs"),
        artifacts,
        access: Access::new(args.listen, &args.host, args.require_tokens),
        metrics: args.runner.metrics,
        keep_runs: args.keep_runs,
        artifact_bytes: args.artifacts_size.map(Size::bytes),
        allowed: AllowList::new(&args.allow_repository, args.allow_recordings)?,
        connections: descriptors::connections(limit, sandboxes, max_connections),
        sessions: args.sessions.limits(),
        settings,
    })
    .await?;
    if let Some(address) = server.metrics_address()? {
        output::print_stderr(format!("metrics on http://{address}"));
    }
    output::print_stderr(format!("listening on http://{}", server.address()?));
    server.serve(Box::pin(interrupted())).await
}
