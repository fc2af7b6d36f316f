//! Flags that select instances of a dataset.

use std::path::Path;

use testwright_evals::Dataset;
use testwright_evals::dataset::{Selection, Shard};

use super::headings::DATA;
use testwright_comparisons::grading::records;
use testwright_config::error::{Error, Result};

/// The instances of `--dataset` to use.
#[derive(Debug, Default, clap::Args)]
pub(super) struct InstanceArgs {
    /// Instances of the dataset to use: ids or globs, separated by commas, or @FILE with one per
    /// line
    #[arg(long, help_heading = DATA, value_name = "IDS|GLOB|@FILE", requires = "dataset")]
    instances: Option<String>,
    /// Instances to leave out, in the same form
    #[arg(long, help_heading = DATA, value_name = "IDS|GLOB|@FILE", requires = "dataset")]
    exclude: Option<String>,
    /// Draw N of these instances at random
    #[arg(long, help_heading = DATA, value_name = "N", requires = "dataset")]
    sample: Option<usize>,
    /// Seed of --sample; the same seed draws the same instances
    #[arg(long, help_heading = DATA, value_name = "S", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Use only shard K of N. Each instance is in one shard, which depends only on its id
    #[arg(long, help_heading = DATA, value_name = "K/N", requires = "dataset")]
    shard: Option<Shard>,
}

impl InstanceArgs {
    /// Reads a dataset, and returns all of it and the selected instances.
    ///
    /// # Errors
    ///
    /// Fails if the dataset or the selection is invalid, or no instance is selected.
    pub(super) fn read(&self, path: &Path) -> Result<(Dataset, Dataset)> {
        let (whole, chosen) = self.read_shard(path)?;
        if chosen.instances.is_empty() {
            return Err(
                Error::usage(format!("select instances from {}", path.display()))
                    .cause("the shard has no instances")
                    .hint("use another shard, or fewer shards"),
            );
        }
        Ok((whole, chosen))
    }

    /// Reads a dataset like [`InstanceArgs::read`], but accepts a shard without instances.
    pub(super) fn read_shard(&self, path: &Path) -> Result<(Dataset, Dataset)> {
        let whole = Dataset::read(path).map_err(|error| match path.exists() {
            true => records(error),
            false => records(error).hint(
                "pass a downloaded file; the page `Datasets` of the guide names public datasets",
            ),
        })?;
        let selection = Selection {
            instances: self.instances.clone(),
            exclude: self.exclude.clone(),
            sample: self.sample,
            seed: self.seed,
            shard: self.shard,
        };
        let chosen = whole.choose(&selection).map_err(|error| {
            Error::usage(format!("select instances from {}", path.display())).cause(error)
        })?;
        Ok((whole, chosen))
    }
}
