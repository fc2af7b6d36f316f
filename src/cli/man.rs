//! `testwright man`: prints the main manual page, or writes the pages of all commands.

use std::path::PathBuf;

use clap::CommandFactory;

use super::{Cli, output};
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
#[command(after_help = "To install them for `man`:\n  testwright man ~/.local/share/man/man1")]
pub(super) struct Args {
    /// Folder for the pages: testwright.1, testwright-run.1 … [default: print testwright.1]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|error| Error::io("format the manual page", &error))?;
        output::print_stdout(String::from_utf8_lossy(&page));
        return Ok(());
    };
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    write().map_err(|error| {
        Error::io(
            format!("write manual pages to {}", folder.display()),
            &error,
        )
    })
}
