//! What a program of ours needs that records what happens in a run of tests, and the file in which it does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::Options;
use crate::config::Config;
use crate::outcomes::{self, Event};
use crate::process;
use crate::tool::ToolError;

const RECORD: &str = include_str!("../outcomes/record.py");
const TRACE: &str = include_str!("../outcomes/trace.py");
/// Bytes kept of what a runner prints.
pub const PRINTED: usize = 6000;

pub struct Recording {
    /// For files of the runner's own.
    pub folder: PathBuf,
    /// Where the Python modules of ours are.
    pub modules: PathBuf,
    /// The environment of the program.
    pub env: BTreeMap<String, String>,
    settings: Value,
    events: PathBuf,
    /// A folder for what is seen of processes that traced tests start; there only if something is traced.
    facts: PathBuf,
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
        let folder = config.scratch.join(runner);
        let plugins = folder.join("plugin");
        std::fs::create_dir_all(&plugins)?;
        process::make_home(&config.scratch)?;
        let shared = [("testwright_record", RECORD), ("testwright_trace", TRACE)];
        for (name, text) in shared.iter().chain(modules) {
            write_out(&plugins.join(format!("{name}.py")), text)?;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let events = folder.join(format!("{}-{number}.jsonl", std::process::id()));
        match std::fs::remove_file(&events) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
        let children = folder.join("children");
        let hook = children.join(outcomes::HOOK);
        let facts = events.with_extension("children");
        if !options.trace.is_empty() {
            outcomes::write_hook(&children)?;
            std::fs::create_dir_all(&facts)?;
        }
        let mut env = process::environment(config);
        env.insert("PYTHONHASHSEED".into(), options.hash_seed.to_string());
        let settings = json!({
            "report": events,
            "workspace": root,
            "ids": ids,
            "reversed": options.reversed,
            "hash_seed": options.hash_seed,
            "first": options.first,
            "rest_seconds": options.rest_seconds,
            "trace": options.trace,
            "pythonpath": env.get("PYTHONPATH"),
            "children": { "hook": hook, "facts": facts },
        });
        Ok(Recording {
            folder,
            modules: plugins,
            env,
            settings,
            events,
            facts,
        })
    }

    /// A setting that only this runner has.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.settings[name] = value.into();
    }

    /// Writes out the settings, and gives the whole environment of the program.
    pub fn environment(&self) -> Result<BTreeMap<String, String>, ToolError> {
        let path = self.settings_path();
        std::fs::write(&path, self.settings.to_string())?;
        let mut env = self.env.clone();
        env.insert("TESTWRIGHT_RECORD".into(), path.display().to_string());
        Ok(env)
    }

    fn settings_path(&self) -> PathBuf {
        self.events.with_extension("settings")
    }

    /// What was recorded; the files go away.
    pub fn read(self) -> Result<Vec<Event>, ToolError> {
        let events = outcomes::read(&self.events)?;
        let _ = std::fs::remove_file(&self.events);
        let _ = std::fs::remove_file(self.settings_path());
        let _ = std::fs::remove_dir_all(&self.facts);
        Ok(events)
    }
}

fn write_out(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).ok().as_deref() != Some(text.as_bytes()) {
        std::fs::write(path, text)?;
    }
    Ok(())
}
