//! `testwright prompts`: writes the built-in prompts to files.

use std::path::PathBuf;

use super::output::{self, escape_line};
use testwright_agent::custom_prompts;
use testwright_config::error::Result;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: PromptsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PromptsCommand {
    /// Write each prompt to a file, as a base for `testwright run --prompts DIR`
    Export {
        /// Folder for the files: libro/judge.md, testwright/system.md …
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

pub(super) fn run(args: &Args) -> Result<()> {
    let PromptsCommand::Export { folder } = &args.command;
    let number = custom_prompts::export(folder)?;
    output::print_status(escape_line(&format!(
        "{number} prompts written to {}; remove the files that you do not change",
        folder.display()
    )));
    Ok(())
}
