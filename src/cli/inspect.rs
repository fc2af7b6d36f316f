//! `testwright inspect`: prints a run or a comparison.

use std::path::PathBuf;

use super::list::check_exists;
use super::output;
use testwright_config::error::Result;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run or of a comparison
    dir: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    check_exists(&args.dir, "inspect")?;
    output::print_stdout(testwright_comparisons::inspect::text(&args.dir)?);
    Ok(())
}
