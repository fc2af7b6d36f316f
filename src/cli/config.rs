//! `testwright config`: prints every setting and its source, without secrets.

use std::path::PathBuf;

use serde::Serialize;

use super::output::{self, escape_line};
use super::repository_args::load_settings;
use testwright_config::error::Result;
use testwright_config::settings::{Flags, Settings, Sources};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
    #[arg(from_global)]
    config: Option<PathBuf>,
}

/// A setting in force.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    pub key: String,
    pub value: String,
    pub origin: String,
}

impl Setting {
    /// Lists the settings in force.
    pub(super) fn all(settings: &Settings) -> Vec<Setting> {
        let rows = settings.describe().into_iter();
        rows.map(|(key, value, origin)| Setting {
            key,
            value,
            origin: origin.to_string(),
        })
        .collect()
    }

    /// Formats the setting on one line.
    pub(super) fn render(&self) -> String {
        format!(
            "{} = {}  ({})\n",
            self.key,
            escape_line(&self.value),
            escape_line(&self.origin)
        )
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    let sources = Sources::of_process(Flags::default()).config(args.config.clone());
    let settings = Setting::all(&load_settings(&sources)?);
    if args.json {
        return output::print_json(&settings);
    }
    output::print_stdout(settings.iter().map(Setting::render).collect::<String>());
    Ok(())
}
