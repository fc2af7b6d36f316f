//! The command line of one pytest process, and the files it needs.
//!
//! The repository's own configuration stays in force (its conftest and ini files, its `addopts`); the plugin
//! takes back what would run tests in other processes, stop early or write into the tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::run::Options;
use crate::config::Config;
use crate::process::{self, Command};
use crate::tool::ToolError;

const PLUGIN: &str = include_str!("plugin.py");
const MODULE: &str = "testwright_pytest";
/// For the processes that traced tests start.
const CHILDREN: &str = include_str!("children.py");
/// Bytes kept of what pytest prints.
const PRINTED: usize = 6000;

/// How far the repository's own options are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addopts {
    Kept,
    /// `addopts` and `required_plugins` are emptied: they ask for plugins that are not installed.
    Dropped,
}

/// A process to start, and where its report will be.
pub struct Prepared {
    pub command: Command,
    pub report: PathBuf,
    /// A folder for what is seen of processes that traced tests start; there only if something is traced.
    pub facts: PathBuf,
}

/// Writes the plugin and its settings. `files` are what pytest is told to collect; `ids` what of it is run.
pub fn prepare(
    config: &Config,
    root: &Path,
    files: &[String],
    ids: &[String],
    options: &Options,
    addopts: Addopts,
) -> Result<Prepared, ToolError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let folder = config.scratch.join("pytest");
    let plugins = folder.join("plugin");
    std::fs::create_dir_all(&plugins)?;
    process::make_home(&config.scratch)?;
    write_out(&plugins.join(format!("{MODULE}.py")), PLUGIN)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let report = folder.join(format!("{}-{number}.jsonl", std::process::id()));
    match std::fs::remove_file(&report) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    // Python imports a module of this name from `PYTHONPATH` when it starts.
    let hook = folder.join("children").join("sitecustomize.py");
    let facts = report.with_extension("children");
    if !options.trace.is_empty() {
        std::fs::create_dir_all(folder.join("children"))?;
        std::fs::create_dir_all(&facts)?;
        write_out(&hook, CHILDREN)?;
    }

    // Plugins put folders of their own there before pytest makes it.
    let cache = folder.join("cache");
    std::fs::create_dir_all(&cache)?;
    let mut env = process::environment(config);
    let settings = json!({
        "report": report,
        "workspace": root,
        "ids": ids,
        "reversed": options.reversed,
        "first": options.first,
        "rest_seconds": options.rest_seconds,
        "trace": options.trace,
        "pythonpath": env.get("PYTHONPATH"),
        "cache": cache,
        "children": { "hook": hook, "facts": facts },
    });
    env.insert("TESTWRIGHT_PYTEST".into(), settings.to_string());
    env.insert("PYTHONHASHSEED".into(), options.hash_seed.to_string());
    prepend(&mut env, "PYTHONPATH", &plugins);

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
        env,
        stdin: Vec::new(),
        merge: true,
        keep: PRINTED,
    };
    Ok(Prepared {
        command,
        report,
        facts,
    })
}

fn write_out(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).ok().as_deref() != Some(text.as_bytes()) {
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn prepend(env: &mut BTreeMap<String, String>, name: &str, folder: &Path) {
    let value = match env.get(name) {
        Some(value) => format!("{}:{value}", folder.display()),
        None => folder.display().to_string(),
    };
    env.insert(name.to_owned(), value);
}
