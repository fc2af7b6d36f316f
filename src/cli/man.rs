//! `testwright man`: writes the manual pages, one for each command.

use std::path::PathBuf;

use clap::CommandFactory;

use super::Cli;
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
#[command(after_help = "To install them for `man`:\n  testwright man ~/.local/share/man/man1")]
pub(super) struct Args {
    /// Folder for the pages: testwright.1, testwright-run.1 …
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let write = || {
        std::fs::create_dir_all(&args.folder)?;
        clap_mangen::generate_to(Cli::command(), &args.folder)
    };
    write().map_err(|error| {
        Error::io(
            format!("write manual pages to {}", args.folder.display()),
            &error,
        )
    })
}
