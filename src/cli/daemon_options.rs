//! Flags of the commands that a daemon consists of: where its database and its data are, and how a process of it works on runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::place::{SandboxArgs, load};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, Settings};
use testwright_server::artifacts::Artifacts;
use testwright_server::store::Store;

/// Where a daemon keeps what it knows.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    /// The database of the daemon: postgres://USER@HOST/NAME or sqlite:FILE [default: SQLite, in the data folder]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "TESTWRIGHT_DATABASE",
        hide_env_values = true
    )]
    database: Option<String>,
    #[command(flatten)]
    data: DataArgs,
}

impl StoreArgs {
    /// The data folder, which is made.
    pub fn data_folder(&self) -> Result<PathBuf> {
        self.data.folder()
    }

    /// Address of the database.
    pub fn database(&self) -> Result<String> {
        match &self.database {
            Some(database) => Ok(database.clone()),
            None => Ok(Store::url_in(&self.data_folder()?)),
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct DataArgs {
    /// The data folder [default: ~/.local/share/testwright]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataArgs {
    /// The data folder, which is made.
    pub fn folder(&self) -> Result<PathBuf> {
        data_folder(self.data.as_deref())
    }
}

/// How a process works on runs.
#[derive(Debug, clap::Args)]
pub struct RunnerArgs {
    /// Where files of runs are kept, and environments are shared by machines, the same for all processes of a daemon:
    /// s3://BUCKET/PREFIX or file:///FOLDER [default: in the data folder, environments not shared; nowhere for a worker on Postgres]
    #[arg(long, value_name = "URL")]
    artifacts: Option<String>,
    /// Runs that are worked on at one time [default: half of the processors]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Answer /metrics, /v1/health and /v1/ready on this address, for Prometheus and for probes: nothing can be asked for there
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

impl RunnerArgs {
    pub fn settings(&self) -> Result<Settings> {
        let flags = |flags: &mut Flags| flags.set("artifacts", self.artifacts.clone());
        load(&self.sandbox.sources(flags))
    }

    pub fn slots(&self) -> usize {
        self.workers.unwrap_or_else(|| {
            let processors = std::thread::available_parallelism().map_or(2, usize::from);
            processors.div_ceil(2)
        })
    }
}

/// Those of a data folder.
pub fn own_artifacts(data: &Path) -> Result<Artifacts> {
    let folder = std::path::absolute(data.join("artifacts"));
    Artifacts::in_folder(&folder.map_err(|e| Error::io("find the data folder", &e))?)
}

fn data_folder(named: Option<&Path>) -> Result<PathBuf> {
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
