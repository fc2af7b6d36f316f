//! `testwright worker`: works on the runs of a daemon, on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::output;
use super::place::{SandboxArgs, load};
use super::serve::{data_folder, own_artifacts};
use crate::artifacts::Artifacts;
use crate::daemon::server::{WorkerSettings, work};
use crate::error::Result;
use crate::settings::Flags;
use crate::setup::interrupted;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The database of the daemon: postgres://USER@HOST/NAME, or sqlite:FILE on its own machine
    #[arg(
        long,
        value_name = "URL",
        env = "TESTWRIGHT_DATABASE",
        hide_env_values = true
    )]
    database: String,
    /// Where files of runs are kept, and environments are shared by machines: s3://BUCKET/PREFIX or file:///FOLDER, as the daemon
    /// has it [default: in the data folder where the database is SQLite, else nowhere]
    #[arg(long, value_name = "URL")]
    artifacts: Option<String>,
    /// Runs that are worked on at one time [default: half of the processors]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// The data folder, for runs while they are worked on [default: ~/.local/share/testwright]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Answer /metrics, /v1/health and /v1/ready on this address, for Prometheus and for probes
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

pub async fn run(args: &Args) -> Result<()> {
    let flags = |flags: &mut Flags| flags.set("artifacts", args.artifacts.clone());
    let settings = load(&args.sandbox.sources(flags))?;
    let data = data_folder(args.data.as_deref())?;
    let artifacts = match Artifacts::of_settings(&settings)? {
        Some(artifacts) => Some(artifacts),
        // On its own machine, the daemon has the same.
        None if args.database.starts_with("sqlite:") => Some(own_artifacts(&data)?),
        None => None,
    };
    let worker = WorkerSettings {
        database: args.database.clone(),
        workers: args
            .workers
            .unwrap_or_else(super::serve::half_of_the_processors),
        runs: data.join("runs"),
        artifacts,
        metrics: args.metrics,
        settings,
    };
    let tell = |metrics: Option<SocketAddr>| {
        output::err("waiting for runs");
        if let Some(address) = metrics {
            output::err(format!("metrics on http://{address}"));
        }
    };
    work(worker, tell, interrupted()).await
}
