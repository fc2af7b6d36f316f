//! `testwright serve`: the daemon.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::output;
use super::place::{SandboxArgs, load};
use crate::artifacts::Artifacts;
use crate::daemon::access::Access;
use crate::daemon::allow_list::{self, AllowList};
use crate::daemon::mcp::SessionLimits;
use crate::daemon::server::{Server, ServerSettings};
use crate::error::{Error, Result};
use crate::settings::Flags;
use crate::setup::interrupted;
use crate::store::Store;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The address to listen on; on another than one of loopback, clients have to show a token (`testwright tokens`)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8420")]
    listen: SocketAddr,
    /// A further name by which clients reach it, as behind a proxy: they have to show a token then; several times for several
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Have clients show a token on loopback, too
    #[arg(long)]
    require_tokens: bool,
    /// Where runs are kept: sqlite:FILE or postgres://USER@HOST/NAME [default: SQLite, in the data folder]
    #[arg(
        long,
        value_name = "URL",
        env = "TESTWRIGHT_DATABASE",
        hide_env_values = true
    )]
    database: Option<String>,
    /// Where files of runs are kept, and environments are shared by machines: s3://BUCKET/PREFIX or file:///FOLDER [default: in
    /// the data folder, environments not shared]
    #[arg(long, value_name = "URL")]
    artifacts: Option<String>,
    /// Runs that are worked on at one time [default: half of the processors]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// A repository that may be named, as a glob over URLs and absolute paths; several times for several
    #[arg(long, value_name = "GLOB", default_value = allow_list::DEFAULT)]
    allow_repository: Vec<String>,
    /// Let clients name recordings (`replay:FILE`) as models
    #[arg(long)]
    allow_recordings: bool,
    #[command(flatten)]
    sessions: SessionArgs,
    /// The data folder [default: ~/.local/share/testwright]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Answer /metrics, /v1/health and /v1/ready on this address as well, which others may reach: nothing can be asked for there
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Remove runs that ended more than so many days ago, with all that came of them [default: keep them]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    keep_runs: Option<u32>,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

/// What clients of MCP may have open.
#[derive(Debug, clap::Args)]
pub struct SessionArgs {
    /// Sandboxes that clients of MCP have at one time
    #[arg(long, value_name = "N", default_value_t = 4)]
    mcp_sandboxes: usize,
    /// A session over MCP that is not used for so many seconds ends
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    mcp_idle: u64,
}

impl SessionArgs {
    pub fn limits(&self) -> SessionLimits {
        SessionLimits {
            sandboxes: self.mcp_sandboxes,
            idle: Duration::from_secs(self.mcp_idle.max(1)),
        }
    }
}

pub async fn run(args: &Args) -> Result<()> {
    let flags = |flags: &mut Flags| flags.set("artifacts", args.artifacts.clone());
    let settings = load(&args.sandbox.sources(flags))?;
    let data = data_folder(args.data.as_deref())?;
    let artifacts = match Artifacts::of_settings(&settings)? {
        Some(artifacts) => artifacts,
        None => own_artifacts(&data)?,
    };
    let server = Server::bind(ServerSettings {
        listen: args.listen,
        database: args
            .database
            .clone()
            .unwrap_or_else(|| Store::url_in(&data)),
        workers: args.workers.unwrap_or_else(half_of_the_processors),
        runs: data.join("runs"),
        artifacts,
        access: Access::new(args.listen, &args.host, args.require_tokens),
        metrics: args.metrics,
        keep_runs: args.keep_runs,
        allowed: AllowList::new(&args.allow_repository, args.allow_recordings)?,
        sessions: args.sessions.limits(),
        settings,
    })
    .await?;
    if let Some(address) = server.metrics_address()? {
        output::err(format!("metrics on http://{address}"));
    }
    output::err(format!("listening on http://{}", server.address()?));
    server.serve(interrupted()).await
}

/// Those of a data folder.
pub fn own_artifacts(data: &Path) -> Result<Artifacts> {
    let folder = std::path::absolute(data.join("artifacts"));
    Artifacts::in_folder(&folder.map_err(|e| Error::io("find the data folder", &e))?)
}

pub fn half_of_the_processors() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    processors.div_ceil(2)
}

/// The data folder, which is made.
pub fn data_folder(named: Option<&Path>) -> Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home =
        || variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
    let folder = match named {
        Some(folder) => folder.to_owned(),
        None => {
            let home = home().ok_or_else(|| {
                Error::usage("find the data folder")
                    .cause("HOME is not set")
                    .hint("name one with --data")
            })?;
            home.join("testwright")
        }
    };
    testwright_sandboxes::private::create(&folder)
        .map_err(|error| Error::io(format!("make the data folder {}", folder.display()), &error))?;
    Ok(folder)
}
