//! `testwright cache`: shows the cache, and removes environments from it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use testwright_sandboxes::environment;

use super::doctor::cache::{CacheFolder, CachedEnvironment, contents, environments, folders};
use super::output::{self, escape_line};
use super::repository_args::load_settings;
use testwright_agent::backends;
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Flags, Settings, Size, Sources};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: CacheCommand,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum CacheCommand {
    /// Print the path of the cache
    Dir,
    /// Show the size of the cache and its environments
    Size {
        /// Print the sizes in bytes as JSON: of the folders, the environments and what they share
        #[arg(long)]
        json: bool,
    },
    /// Remove environments that were not used recently
    #[command(group(
        clap::ArgGroup::new("selection")
            .args(["unused_days", "max_size"])
            .required(true)
            .multiple(true)
    ))]
    Prune {
        /// Remove environments that were not used for N days
        #[arg(long, value_name = "N")]
        unused_days: Option<u32>,
        /// Remove the least recently used environments until those of each kind of sandbox take at
        /// most this size, such as `20 GiB`
        #[arg(long, value_name = "SIZE")]
        max_size: Option<Size>,
    },
    /// Remove all environments and all code that are not in use
    Clean,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) async fn run(args: &Args) -> Result<()> {
    let sources = Sources::of_process(Flags::default()).config(args.config.clone());
    let settings = load_settings(&sources)?;
    match &args.command {
        CacheCommand::Dir => {
            let folder = settings.cache.display().to_string();
            output::print_stdout(format!("{}\n", escape_line(&folder)));
            Ok(())
        }
        CacheCommand::Size { json } => show_size(&settings, *json).await,
        CacheCommand::Prune {
            unused_days,
            max_size,
        } => {
            let age = unused_days.map(|days| DAY * days);
            let cutoff = age.and_then(|age| SystemTime::now().checked_sub(age));
            let most = max_size.map_or(u64::MAX, Size::bytes);
            prune(&settings, most, cutoff.unwrap_or(SystemTime::UNIX_EPOCH)).await
        }
        CacheCommand::Clean => {
            prune(&settings, 0, SystemTime::now()).await?;
            environment::evict_sources(&settings.cache, 0).await;
            Ok(())
        }
    }
}

async fn show_size(settings: &Settings, json: bool) -> Result<()> {
    let folder = settings.cache.clone();
    let scan = tokio::task::spawn_blocking(move || (folders(&folder), environments(&folder)));
    let (folders, environments) = scan
        .await
        .map_err(|error| Error::infrastructure("read the cache").cause(error))?;
    let sizes = environment::cached_bytes(&settings.cache).await;
    let size = CacheSize::new(folders, environments, &sizes);
    match json {
        true => output::print_json(&size),
        false => {
            output::print_stdout(size.render());
            Ok(())
        }
    }
}

/// Sizes in the cache.
#[derive(serde::Serialize)]
struct CacheSize {
    /// Bytes of all folders.
    bytes: u64,
    folders: Vec<CacheFolder>,
    environments: Vec<CachedEnvironment>,
    /// Bytes of the rest of what `prune` can free: requirements and images that environments share.
    shared_bytes: u64,
}

impl CacheSize {
    /// Adds up the sizes. `sizes` are the bytes of environments and what they share, by kind of sandbox.
    fn new(
        folders: Vec<CacheFolder>,
        environments: Vec<CachedEnvironment>,
        sizes: &BTreeMap<String, u64>,
    ) -> Self {
        let own: u64 = environments.iter().map(|one| one.bytes).sum();
        CacheSize {
            bytes: folders.iter().map(|folder| folder.bytes).sum(),
            folders,
            environments,
            shared_bytes: sizes.values().sum::<u64>().saturating_sub(own),
        }
    }

    fn render(&self) -> String {
        let total = contents(&self.folders);
        let mut text = total.map_or("the cache is empty".to_owned(), |finding| finding.text);
        text.push('\n');
        text.extend(self.environments.iter().map(CachedEnvironment::render));
        if self.shared_bytes > 0 {
            let size = Size::new(self.shared_bytes).to_string();
            text.push_str(&format!(
                "  {size:>13}  requirements and images shared by environments\n"
            ));
        }
        text
    }
}

/// Removes environments of every kind of sandbox that is available.
async fn prune(settings: &Settings, most: u64, cutoff: SystemTime) -> Result<()> {
    let before = environment::cached_bytes(&settings.cache).await;
    for connector in backends::ALL {
        let backend = match connector.connect(settings).await {
            Ok(backend) => backend,
            Err(error) if before.contains_key(connector.name()) => {
                let name = connector.name();
                let note = format!(
                    "note: kept the environments of {name}: {}",
                    error.with_cause()
                );
                output::print_status(escape_line(&note));
                continue;
            }
            Err(_) => continue,
        };
        for line in environment::prune(backend.as_ref(), &settings.cache, most, cutoff).await? {
            output::print_status(escape_line(&format!("{}: {line}", connector.name())));
        }
    }
    let after = environment::cached_bytes(&settings.cache).await;
    let sum = |sizes: &BTreeMap<String, u64>| sizes.values().sum::<u64>();
    let freed = sum(&before).saturating_sub(sum(&after));
    output::print_stdout(format!("{} freed\n", Size::new(freed)));
    Ok(())
}

#[cfg(test)]
mod tests;
