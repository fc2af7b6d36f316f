//! What a program of ours needs that records what happens in a run of tests, and the socket into which it does.
//!
//! Everything that the program loads is written anew for each run, into the toolbox's own folder: nothing that an
//! earlier program left is in it. What the program itself writes goes into a folder that is new as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::Options;
use crate::config::Config;
use crate::error::ToolError;
use crate::outcomes::{self, Event};
use crate::process::{self, Report};

const RECORD: &str = include_str!("../outcomes/record.py");
const TRACE: &str = include_str!("../outcomes/trace.py");
/// Bytes kept of what a runner prints.
pub const PRINTED: usize = 6000;

pub struct Recording {
    /// For files that the program writes.
    pub folder: PathBuf,
    /// Where the Python modules of ours are.
    pub modules: PathBuf,
    /// The environment of the program.
    pub env: BTreeMap<String, String>,
    settings: Value,
    settings_path: PathBuf,
    /// What the program reports.
    pub report: Report,
}

impl Recording {
    /// Writes out the modules: those of the runner, by name, and what all have in common. `ids` are what is to be run.
    pub fn new(
        config: &Config,
        root: &Path,
        runner: &str,
        modules: &[(&str, &str)],
        ids: &[String],
        options: &Options,
    ) -> Result<Self, ToolError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let runner = match options.lane {
            0 => runner.to_owned(),
            lane => format!("{runner}-{lane}"),
        };
        process::make_home(&config.scratch)?;
        let folder = config.scratch.join(&runner);
        process::make_anew(&folder)?;
        let private = config.private().join(&runner);
        let plugins = private.join("plugin");
        anew(&plugins)?;
        let shared = [("testwright_record", RECORD), ("testwright_trace", TRACE)];
        for (name, text) in shared.iter().chain(modules) {
            std::fs::write(plugins.join(format!("{name}.py")), text)?;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let report = Report::new()?;
        let settings_path = private.join(format!("{}-{number}.settings", std::process::id()));
        let children = private.join("children");
        let hook = children.join(outcomes::HOOK);
        let facts = folder.join("children");
        if !options.trace.is_empty() {
            anew(&children)?;
            outcomes::write_hook(&children)?;
            std::fs::create_dir(&facts)?;
        }
        let mut env = process::environment(config);
        env.insert("PYTHONHASHSEED".into(), options.hash_seed.to_string());
        let settings = json!({
            "report": process::REPORT_FD,
            "workspace": root,
            "ids": ids,
            "reversed": options.reversed,
            "alone": options.alone,
            "hash_seed": options.hash_seed,
            "first": options.first,
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
            report,
        })
    }

    /// A setting that only this runner has.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.settings[name] = value.into();
    }

    /// What the program is told.
    pub fn settings(&self) -> &Value {
        &self.settings
    }

    /// Writes out the settings, and gives the whole environment of the program.
    pub fn environment(&self) -> Result<BTreeMap<String, String>, ToolError> {
        std::fs::write(&self.settings_path, self.settings.to_string())?;
        let mut env = self.env.clone();
        env.insert(
            "TESTWRIGHT_RECORD".into(),
            self.settings_path.display().to_string(),
        );
        Ok(env)
    }

    /// What was recorded; the files go away.
    pub fn read(self) -> Vec<Event> {
        outcomes::read(self.report.bytes())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.settings_path);
    }
}

/// An empty folder, whatever was there.
fn anew(folder: &Path) -> Result<(), ToolError> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    std::fs::create_dir_all(folder)?;
    Ok(())
}
