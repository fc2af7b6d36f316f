//! Files and the report socket of a program that records a test run.
//!
//! Everything that the program loads is rewritten for each run, in the toolbox's own folder, so it contains nothing
//! from an earlier program. The program writes its own files into a new folder as well.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::Options;
use crate::config::Config;
use crate::error::Result;
use crate::outcomes::{self, PluginEvent};
use crate::process::{self, ProcessReport};

const RECORD: &str = include_str!("../outcomes/record.py");
const TRACE: &str = include_str!("../outcomes/trace.py");
const EXTENSIONS: &str = include_str!("../outcomes/extensions.py");
/// Bytes kept of a runner's output.
pub(super) const MAX_PRINTED_BYTES: usize = 6000;

pub(super) struct Recording {
    /// Folder for files that the program writes.
    pub folder: PathBuf,
    /// Folder of the recording Python modules.
    pub modules: PathBuf,
    /// The environment of the program.
    pub env: BTreeMap<String, String>,
    /// The settings of the program.
    pub settings: Value,
    settings_path: PathBuf,
    /// Link to the home folder, under another name.
    home: Option<PathBuf>,
    /// The report that the program writes.
    pub report: ProcessReport,
}

impl Recording {
    /// Writes the modules: the runner's, by name, and the shared ones. `ids` are the tests to run.
    pub(super) fn new(
        config: &Config,
        root: &Path,
        runner: &str,
        modules: &[(&str, &str)],
        ids: &[String],
        options: &Options,
    ) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let runner = match options.lane {
            0 => runner.to_owned(),
            lane => format!("{runner}-{lane}"),
        };
        process::make_home(&config.scratch)?;
        let folder = config.scratch.join(&runner);
        process::recreate_folder(&folder)?;
        let private = config.private().join(&runner);
        let plugins = private.join("plugin");
        process::recreate_folder(&plugins)?;
        let shared = [
            ("testwright_record", RECORD),
            ("testwright_extensions", EXTENSIONS),
            ("testwright_trace", TRACE),
        ];
        for (name, text) in shared.iter().chain(modules) {
            std::fs::write(plugins.join(format!("{name}.py")), text)?;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let report = ProcessReport::new()?;
        let settings_path = private.join(format!("{}-{number}.settings", std::process::id()));
        let children = private.join("children");
        let hook = children.join(outcomes::HOOK);
        let facts = folder.join("children");
        if !options.trace.is_empty() {
            process::recreate_folder(&children)?;
            outcomes::write_hook(&children)?;
            std::fs::create_dir(&facts)?;
        }
        let mut env = process::environment(config);
        env.insert("PYTHONHASHSEED".into(), options.hash_seed.to_string());
        let home = match &options.user {
            Some(user) => Some(rename_user(&mut env, config, user)?),
            None => None,
        };
        let is_requested = |id: &&String| ids.iter().any(|above| outcomes::covers(above, id));
        let first: Vec<&String> = options.first.iter().filter(is_requested).collect();
        let settings = json!({
            "report": process::REPORT_FD,
            "workspace": root,
            "ids": ids,
            "reversed": options.reversed,
            "alone": options.alone,
            "collect_only": options.collect_only,
            "hash_seed": options.hash_seed,
            "first": first,
            "near": options.near,
            "rest_seconds": options.rest_seconds,
            "trace": options.trace,
            "whole_values": options.whole_values,
            "imports": options.may_be_warm || options.tells_imports,
            "all_imports": options.tells_imports,
            "guarded": options.guarded,
            "pythonpath": env.get("PYTHONPATH"),
            "children": { "hook": hook, "facts": facts },
        });
        Ok(Recording {
            folder,
            modules: plugins,
            env,
            settings,
            settings_path,
            home,
            report,
        })
    }

    /// Writes the settings, and returns the complete environment of the program.
    pub(super) fn environment(&self) -> Result<BTreeMap<String, String>> {
        std::fs::write(&self.settings_path, self.settings.to_string())?;
        let mut env = self.env.clone();
        env.insert(
            "TESTWRIGHT_RECORD".into(),
            self.settings_path.display().to_string(),
        );
        Ok(env)
    }

    /// Returns the recorded events, and removes the files.
    pub(super) fn read(self) -> Vec<PluginEvent> {
        outcomes::read(self.report.bytes())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        for path in self.home.iter().chain([&self.settings_path]) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Sets another name of the user and of the home folder, unless the configuration sets them. Returns the new path of the
/// home folder: a link, so that programs still find the caches that they have there.
fn rename_user(env: &mut BTreeMap<String, String>, config: &Config, user: &str) -> Result<PathBuf> {
    let home = config.scratch.join(user);
    match symlink("home", &home) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let path = home.display().to_string();
    for (name, value) in [("HOME", path.as_str()), ("LOGNAME", user), ("USER", user)] {
        if !config.env.contains_key(name) {
            env.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(home)
}
