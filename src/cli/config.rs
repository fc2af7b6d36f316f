//! `testwright config`: prints every setting and its source, without secrets.

use std::path::PathBuf;

use super::output::{self, escape_line};
use super::repository_args::load_settings;
use testwright_config::error::Result;
use testwright_config::settings::{Flags, Setting, Sources};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

/// Formats a setting on one line.
pub(super) fn render(setting: &Setting) -> String {
    format!(
        "{} = {}  ({})\n",
        setting.key,
        escape_line(&setting.value),
        escape_line(&setting.origin.to_string())
    )
}

pub(super) fn run(args: &Args) -> Result<()> {
    let sources = Sources::of_process(Flags::default()).config(args.config.clone());
    let settings = load_settings(&sources)?.describe();
    if args.json {
        return output::print_json(&settings);
    }
    output::print_stdout(settings.iter().map(render).collect::<String>());
    Ok(())
}
