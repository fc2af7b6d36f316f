//! Runs Python programs in processes forked from one that has already loaded their imports (see `fork_server.py`).
//!
//! Unlike the warm processes of [`crate::runners`], which are kept for repeated test runs, this server knows nothing
//! about tests: a forked process becomes exactly the program that would be started otherwise.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::config::Config;
use crate::process::{BackgroundProcess, Command, ProcessOutput, ProcessReport, REPORT_FD};
use crate::runners::{Control, FORKING, Launcher, MAX_IMPORT_BYTES, MODULE_SYNTAX, Module};
use crate::tool::Result;

const PROGRAM: &str = include_str!("fork_server.py");
/// Time limit for a fork, and for the imports before it.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct ForkServer {
    control: Control,
    pub hash_seed: u32,
    root: PathBuf,
    /// Modules that the server was told to import.
    named: BTreeSet<String>,
    /// Whether the server has failed and must not be used any more.
    pub is_broken: bool,
    _process: BackgroundProcess,
}

impl ForkServer {
    /// Starts a server for one hash seed, which all its forks share. `package` is the folder of coverage.py.
    pub(super) fn start(
        config: &Config,
        root: &Path,
        package: Option<&Path>,
        hash_seed: u32,
    ) -> Result<ForkServer> {
        let folder = config.private().join("fork-server");
        std::fs::create_dir_all(&folder)?;
        let program = folder.join("fork_server.py");
        std::fs::write(&program, PROGRAM)?;
        let (module, source) = FORKING;
        std::fs::write(folder.join(format!("{module}.py")), source)?;
        let settings = json!({ "package": package });
        let mut command = Command::python(config, vec![program.into()], root);
        command.env.extend([
            ("PYTHONHASHSEED".to_owned(), hash_seed.to_string()),
            ("TESTWRIGHT_FORK_SERVER".to_owned(), settings.to_string()),
        ]);
        let (control, stdin) = Control::pair()?;
        let process = BackgroundProcess::start(&command, stdin)?;
        let mut server = ForkServer {
            control,
            hash_seed,
            root: root.to_owned(),
            named: BTreeSet::new(),
            is_broken: false,
            _process: process,
        };
        server.import(&[]);
        Ok(server)
    }

    /// Makes the server import these modules before later forks.
    pub(super) fn preload(&mut self, modules: &[Module]) {
        let mut room = MAX_IMPORT_BYTES;
        let mut new = Vec::new();
        for (name, origin) in modules {
            if Path::new(origin).starts_with(&self.root) || self.named.contains(name) {
                continue;
            }
            let size = name.len() + origin.len() + MODULE_SYNTAX;
            if size > room {
                break;
            }
            room -= size;
            self.named.insert(name.clone());
            new.push((name, origin));
        }
        if !new.is_empty() {
            self.import(&new);
        }
    }

    /// Waits until the server has started, and has imported the modules.
    fn import(&mut self, modules: &[(&String, &String)]) {
        let sent = self.control.send(&json!({ "modules": modules }), &[]);
        let answer: Option<serde_json::Value> =
            self.control.receive(Instant::now() + START_TIMEOUT);
        self.is_broken |= sent.is_err() || answer.is_none();
    }
}

impl Launcher for ForkServer {
    fn run(
        &mut self,
        command: &Command,
        deadline: Instant,
        report: &mut ProcessReport,
    ) -> Option<ProcessOutput> {
        if self.is_broken {
            return None;
        }
        let args = command.args.iter().map(|arg| arg.to_string_lossy());
        let program: Vec<_> = args.collect();
        let request = json!({ "program": program, "environ": command.env, "report": REPORT_FD });
        let fork_deadline = deadline.min(Instant::now() + START_TIMEOUT);
        let (control, keep) = (&mut self.control, command.max_output_bytes);
        let ran = control.run(&request, keep, fork_deadline, deadline, report);
        self.is_broken = ran.is_err();
        ran.ok()
    }
}
