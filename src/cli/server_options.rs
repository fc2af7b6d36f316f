//! Flags shared by the server's commands: its database, its data folder, and how a process executes runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::headings::{LIMITS, SERVER};
use super::repository_args::{SandboxArgs, load_settings};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, Settings};
use testwright_server::artifacts::Artifacts;
use testwright_server::store::Store;

/// Options for the server's database and data folder.
#[derive(Debug, clap::Args)]
pub(super) struct StoreArgs {
    /// Database of the server: postgres://USER@HOST/NAME or sqlite:FILE [default: SQLite in the
    /// data folder]
    #[arg(
        long, help_heading = SERVER,
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
    /// Returns the data folder, creating it if necessary.
    pub(super) fn data_folder(&self) -> Result<PathBuf> {
        self.data.folder()
    }

    /// Returns the address of the database.
    pub(super) fn database(&self) -> Result<String> {
        match &self.database {
            Some(database) => Ok(database.clone()),
            None => Ok(Store::url_in(&self.data_folder()?)),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct DataArgs {
    /// Data folder [default: ~/.local/share/testwright]
    #[arg(long, help_heading = SERVER, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataArgs {
    /// Returns the data folder, creating it if necessary.
    pub(super) fn folder(&self) -> Result<PathBuf> {
        data_folder(self.data.as_deref())
    }
}

/// Options for a process that executes runs.
#[derive(Debug, clap::Args)]
pub(super) struct RunnerArgs {
    /// Artifact store for the files of runs and for shared environments: s3://BUCKET/PREFIX or
    /// file:///FOLDER. All servers and workers must use the same store [default: the data folder,
    /// without shared environments; for a worker on Postgres, no store]
    #[arg(long, help_heading = SERVER, value_name = "URL")]
    artifacts: Option<String>,
    /// Maximum concurrent runs [default: half the CPUs]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    workers: Option<usize>,
    /// Separate address that serves only metrics and probes: /metrics, /v1/health and /v1/ready
    /// [default: none]
    #[arg(long, help_heading = SERVER, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

impl RunnerArgs {
    pub(super) fn settings(&self) -> Result<Settings> {
        let flags = |flags: &mut Flags| flags.set("artifacts", self.artifacts.clone());
        load_settings(&self.sandbox.sources(flags))
    }

    pub(super) fn slots(&self) -> usize {
        self.workers.unwrap_or_else(|| {
            let processors = std::thread::available_parallelism().map_or(2, usize::from);
            processors.div_ceil(2)
        })
    }
}

/// Opens the artifact store in a data folder.
pub(super) fn own_artifacts(data: &Path) -> Result<Artifacts> {
    let folder = std::path::absolute(data.join("artifacts"));
    Artifacts::in_folder(&folder.map_err(|e| Error::io("find the data folder", &e))?)
}

fn data_folder(explicit_folder: Option<&Path>) -> Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home =
        || variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
    let folder = match explicit_folder {
        Some(folder) => folder.to_owned(),
        None => {
            let home = home().ok_or_else(|| {
                Error::usage("find the data folder")
                    .cause("HOME is not set")
                    .hint("pass a folder with --data")
            })?;
            home.join("testwright")
        }
    };
    testwright_sandboxes::private::create(&folder).map_err(|error| {
        Error::io(
            format!("create the data folder {}", folder.display()),
            &error,
        )
    })?;
    Ok(folder)
}
