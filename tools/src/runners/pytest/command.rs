//! The command line of one pytest process, and the files it needs.
//!
//! The repository's own configuration stays in force (its conftest and ini files, its `addopts`); the plugin
//! takes back what would run tests in other processes, stop early or write into the tree.

use std::ffi::OsString;
use std::path::Path;

use super::super::Options;
use super::super::recording::{PRINTED, Recording};
use crate::config::Config;
use crate::process::Command;
use crate::tool::ToolError;

const PLUGIN: &str = include_str!("plugin.py");
const MODULE: &str = "testwright_pytest";

/// How far the repository's own options are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addopts {
    Kept,
    /// `addopts` and `required_plugins` are emptied: they ask for plugins that are not installed.
    Dropped,
}

/// A process to start, and what it will record.
pub struct RecordedCommand {
    pub command: Command,
    pub recording: Recording,
}

/// Writes the plugin and its settings. `files` are what pytest is told to collect; `ids` what of it is run.
pub fn prepare(
    config: &Config,
    root: &Path,
    files: &[String],
    ids: &[String],
    options: &Options,
    addopts: Addopts,
) -> Result<RecordedCommand, ToolError> {
    let modules = [(MODULE, PLUGIN)];
    let mut recording = Recording::new(config, root, "pytest", &modules, ids, options)?;
    // Plugins put folders of their own there before pytest makes it.
    let cache = recording.folder.join("cache");
    std::fs::create_dir(&cache)?;
    recording.set("cache", cache.display().to_string());
    let modules = recording.modules.display();
    let path = match recording.env.get("PYTHONPATH") {
        Some(path) => format!("{modules}:{path}"),
        None => modules.to_string(),
    };
    recording.env.insert("PYTHONPATH".to_owned(), path);

    let mut args: Vec<OsString> = ["-m", "pytest", "-p", MODULE, "-p", "no:randomly"]
        .map(OsString::from)
        .to_vec();
    // Each -o is followed by another option: before pytest 3.3 it took every word up to the next one.
    let mut settings = vec![format!("cache_dir={}", cache.display())];
    if addopts == Addopts::Dropped {
        settings.extend(["addopts=".to_owned(), "required_plugins=".to_owned()]);
    }
    for setting in settings {
        args.extend(["-o".into(), setting.into()]);
    }
    args.extend(
        [
            "--color=no",
            "--tb=short",
            "--continue-on-collection-errors",
        ]
        .map(OsString::from),
    );
    args.extend(config.runner.options.iter().map(OsString::from));
    if let Some(keyword) = &options.keyword {
        args.extend(["-k".into(), keyword.into()]);
    }
    args.extend(files.iter().map(OsString::from));
    let command = Command {
        program: config.python.clone(),
        args,
        directory: root.to_owned(),
        env: recording.environment()?,
        stdin: Vec::new(),
        merge: true,
        keep: PRINTED,
    };
    Ok(RecordedCommand { command, recording })
}
