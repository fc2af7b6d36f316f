//! `testwright worker`: executes runs of a server on this machine.

use std::net::SocketAddr;

use super::output;
use super::server_options::{DataArgs, RunnerArgs, own_artifacts};
use testwright_agent::setup::interrupted;
use testwright_config::error::Result;
use testwright_server::artifacts::Artifacts;
use testwright_server::descriptors;
use testwright_server::server::{WorkerSettings, run_worker};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Database of the server: postgres://USER@HOST/NAME, or sqlite:FILE on the same machine
    #[arg(
        long,
        value_name = "URL",
        env = "TESTWRIGHT_DATABASE",
        hide_env_values = true
    )]
    database: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    runner: RunnerArgs,
}

pub(super) async fn run(args: &Args) -> Result<()> {
    descriptors::raise_limit();
    let settings = args.runner.settings()?;
    let data = args.data.folder()?;
    let artifacts = match Artifacts::of_settings(&settings)? {
        Some(artifacts) => Some(artifacts),
        // SQLite means that the server runs on this machine and uses the same folder.
        None if args.database.starts_with("sqlite:") => Some(own_artifacts(&data)?),
        None => None,
    };
    let worker = WorkerSettings {
        database: args.database.clone(),
        workers: args.runner.slots(),
        runs: data.join("runs"),
        artifacts,
        metrics: args.runner.metrics,
        settings,
    };
    let tell = |metrics: Option<SocketAddr>| {
        output::print_stderr("waiting for runs");
        if let Some(address) = metrics {
            output::print_stderr(format!("metrics on http://{address}"));
        }
    };
    run_worker(worker, Box::new(tell), Box::pin(interrupted())).await
}
