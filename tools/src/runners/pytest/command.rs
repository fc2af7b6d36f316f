//! Builds the command line of one pytest process, and the files it needs.
//!
//! The repository's own configuration stays in force (its conftest and ini files, its `addopts`). The plugin overrides
//! options that run tests in other processes, stop early or write into the tree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::super::Options;
use super::super::recording::{MAX_PRINTED_BYTES, Recording};
use crate::config::Config;
use crate::error::Result;
use crate::process::Command;

const PLUGIN: &str = include_str!("plugin.py");
const FOLDER: &str = "pytest";
const MODULE: &str = "testwright_pytest";
const GUARD: (&str, &str) = ("testwright_guard", include_str!("guard.py"));
const COLLECTION_FAILURE: (&str, &str) = (
    "testwright_collection_failure",
    include_str!("collection_failure.py"),
);
const PROCESS_STATE: (&str, &str) = ("testwright_process_state", include_str!("process_state.py"));
/// Names and sources of the modules that every process of pytest loads.
const MODULES: [(&str, &str); 4] = [(MODULE, PLUGIN), GUARD, COLLECTION_FAILURE, PROCESS_STATE];
/// Name and source of the module shared by the processes that fork.
pub(crate) const FORKING: (&str, &str) = ("testwright_forking", include_str!("forking.py"));
const FORK_SERVER: &str = include_str!("fork_server.py");
const FORK_SERVER_MODULE: &str = "testwright_fork_server";

/// Whether to apply the repository's own options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addopts {
    Kept,
    /// Empties `addopts` and `required_plugins`, which ask for plugins that are not installed.
    Dropped,
}

/// The arguments of pytest, whichever tests of the files are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    /// Folder in which pytest starts, relative to the workspace.
    pub folder: String,
    pub files: Vec<String>,
    pub addopts: Addopts,
    /// pytest's `-k` expression.
    pub keyword: Option<String>,
}

/// Returns the folder of pytest's cache, inside the folder of a run.
fn cache(folder: &Path) -> PathBuf {
    folder.join("cache")
}

/// Writes the plugin and its settings. Returns the process to start, and the recording of its run. `ids` selects the
/// tests to run in the files.
pub(super) fn prepare(
    config: &Config,
    root: &Path,
    arguments: &Arguments,
    ids: &[String],
    options: &Options,
) -> Result<(Command, Recording)> {
    let recording = Recording::new(config, root, FOLDER, &MODULES, ids, options)?;
    // Plugins create folders in it before pytest creates it.
    let cache = cache(&recording.folder);
    std::fs::create_dir(&cache)?;
    with_command(config, root, arguments, recording, &cache, &[])
}

/// Prepares a process that runs no tests itself, but forks: see [`super::fork_server`].
pub(super) fn prepare_server(
    config: &Config,
    root: &Path,
    arguments: &Arguments,
    ids: &[String],
) -> Result<(Command, Recording)> {
    let modules = [&MODULES[..], &[FORKING, (FORK_SERVER_MODULE, FORK_SERVER)]].concat();
    let options = Options::with_deadline(Instant::now());
    let recording = Recording::new(config, root, "pytest-server", &modules, ids, &options)?;
    // This must be the cache folder that the forked run uses.
    let cache = cache(&config.scratch.join(FOLDER));
    with_command(
        config,
        root,
        arguments,
        recording,
        &cache,
        &[FORK_SERVER_MODULE],
    )
}

fn with_command(
    config: &Config,
    root: &Path,
    arguments: &Arguments,
    mut recording: Recording,
    cache: &Path,
    plugins: &[&str],
) -> Result<(Command, Recording)> {
    recording.settings["cache"] = cache.display().to_string().into();
    let modules = recording.modules.display();
    let path = match recording.env.get("PYTHONPATH") {
        Some(path) => format!("{modules}:{path}"),
        None => modules.to_string(),
    };
    recording.env.insert("PYTHONPATH".to_owned(), path);

    let mut args: Vec<OsString> = ["-m", "pytest"].map(OsString::from).to_vec();
    // The main plugin hides the folder of the other modules, so it comes last.
    for plugin in plugins.iter().chain(&[MODULE, "no:randomly"]) {
        args.extend(["-p".into(), plugin.into()]);
    }
    if arguments.addopts == Addopts::Dropped {
        // Another option follows each -o: before pytest 3.3, -o took every word up to the next option.
        for setting in ["addopts=", "required_plugins="] {
            args.extend(["-o".into(), setting.into()]);
        }
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
    if let Some(keyword) = &arguments.keyword {
        args.extend(["-k".into(), keyword.into()]);
    }
    let folder = arguments.folder.as_str();
    args.extend(arguments.files.iter().map(|file| inside(file, folder)));
    let directory = match folder {
        "" => root.to_owned(),
        folder => root.join(folder),
    };
    let mut command = Command::python(config, args, directory);
    command.env = recording.environment()?;
    command.max_output_bytes = MAX_PRINTED_BYTES;
    Ok((command, recording))
}

/// Makes a path of the workspace relative to a folder that contains it.
fn inside(path: &str, folder: &str) -> OsString {
    let rest = path
        .strip_prefix(folder)
        .map(|rest| rest.trim_start_matches('/'));
    let inside = match rest {
        Some("") => ".",
        Some(rest) if !folder.is_empty() => rest,
        _ => path,
    };
    OsString::from(inside)
}
