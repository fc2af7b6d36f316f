//! Runs tests in processes forked from one that has already loaded pytest and the code under test (see
//! `fork_server.py`). A new interpreter would load everything again.
//!
//! A warm run gives the same result as a new process, or none. If files have changed since they were loaded, a fork
//! fails, or the run ends abnormally, the caller starts a new process. One server is kept, for the most recent
//! arguments. It starts after an orderly run in a new process, and gets ready in the background. Trusted runs
//! (`submit`, the grader) do not use it.

mod control;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Run;
use super::super::recording::{MAX_PRINTED_BYTES, Recording};
use super::command::{Arguments, prepare_server};
use crate::error::Result;
use crate::outcomes::Session;
use crate::process::{BackgroundProcess, ProcessOutput};
use crate::workspace::{Layout, Stamps};

pub(crate) use control::Control;

/// A forked run may take at most this many times as long as one in a new process, which loads everything; then a new
/// process is started instead. A lock that was held during the fork would never be released.
const FORK_TIMEOUT_FACTOR: u32 = 3;
const MIN_FORK_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of module names in one request, and the JSON overhead of each module.
pub(crate) const MAX_IMPORT_BYTES: usize = 64 << 10;
pub(crate) const MODULE_SYNTAX: usize = 8;
/// Minimum startup time that justifies a server.
const MIN_START_TIME: Duration = Duration::from_millis(300);

/// A module's name and origin.
pub(crate) type Module = (String, String);

static IS_ENABLED: AtomicBool = AtomicBool::new(false);
static SERVER: Mutex<Option<Server>> = Mutex::new(None);
/// Whether tests have already run in a new process.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// Enables warm runs in this process from now on. Intended for long-lived processes, such as a serving toolbox.
pub fn enable() {
    IS_ENABLED.store(true, Ordering::Relaxed);
}

/// Returns whether a server may make this run.
pub(super) fn is_possible(run: &Run<'_>) -> bool {
    let options = run.options;
    let is_plain = options.hash_seed == 0 && !options.reversed;
    let is_whole = options.first.is_empty() && options.rest_seconds.is_none();
    let is_bare = options.trace.is_empty() && run.measurement.is_none();
    options.may_be_warm && IS_ENABLED.load(Ordering::Relaxed) && is_plain && is_whole && is_bare
}

/// Makes the run in a forked process; `None` if no suitable one is available. The caller must check whether the run is
/// complete.
pub(super) fn run(
    run: &Run<'_>,
    arguments: &Arguments,
    ids: &[String],
    recording: &mut Recording,
) -> Option<ProcessOutput> {
    let mut slot = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    // Taking the server out also ends one with different arguments.
    let mut server = slot
        .take()
        .filter(|server| server.arguments == *arguments)?;
    let output = server.run(run, ids, recording)?;
    if !output.timed_out() {
        *slot = Some(server);
    }
    Some(output)
}

/// Ends the server after an unusable result.
pub(super) fn stop() {
    *SERVER.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Makes the server import these modules before later tests, from the next collection on.
pub(super) fn preload(modules: &[Module]) {
    if let Some(server) = &mut *SERVER.lock().unwrap_or_else(PoisonError::into_inner) {
        server.import_from_now_on(modules);
    }
}

/// Starts a server for more runs like this one, which took `took` in a new process. If that fails, runs continue to use
/// new processes.
pub(super) fn start(
    run: &Run<'_>,
    arguments: &Arguments,
    ids: &[String],
    took: Duration,
    session: &Session,
) {
    if took.saturating_sub(session.test_time()) < MIN_START_TIME {
        return;
    }
    // Starting occupies a processor. If no processor is spare, wait until tests are run again.
    let is_first = !HAS_RUN.swap(true, Ordering::Relaxed);
    if is_first && run.checkout.config().processors == Some(1) {
        return;
    }
    let server = Server::start(run, arguments, ids, took, &session.imported);
    *SERVER.lock().unwrap_or_else(PoisonError::into_inner) = server.ok().flatten();
}

struct Server {
    arguments: Arguments,
    /// Declared before the process and its recording, so that sockets are closed first.
    importer: Control,
    /// Control of the process that has collected the tests.
    collector: Option<Collector>,
    /// Stamps of the files when the importer began to load them.
    loaded: Stamps,
    took: Duration,
    /// Modules that runs import.
    imports: Vec<Module>,
    _process: BackgroundProcess,
    /// Holds files that Python reads during startup.
    _recording: Recording,
}

struct Collector {
    control: Control,
    ids: Vec<String>,
    files: Stamps,
    /// Whether it has reported that it waits for runs.
    is_ready: bool,
}

#[derive(Deserialize)]
struct Importer {
    stale: bool,
}

impl Server {
    fn start(
        run: &Run<'_>,
        arguments: &Arguments,
        ids: &[String],
        took: Duration,
        imports: &[Module],
    ) -> Result<Option<Server>> {
        let checkout = run.checkout;
        let Some(loaded) = Stamps::take(checkout.root()) else {
            return Ok(None);
        };
        let (command, recording) =
            prepare_server(checkout.config(), checkout.root(), arguments, ids)?;
        let (importer, stdin) = Control::pair()?;
        let process = BackgroundProcess::start(&command, stdin)?;
        let mut server = Server {
            arguments: arguments.clone(),
            importer,
            collector: None,
            loaded: loaded.clone(),
            took,
            imports: Vec::new(),
            _process: process,
            _recording: recording,
        };
        server.import_from_now_on(imports);
        let settings = server._recording.settings.clone();
        server.ask_to_collect(&settings, ids, loaded, &[])?;
        Ok(Some(server))
    }

    /// Adds modules while the request has room for them.
    fn import_from_now_on(&mut self, modules: &[Module]) {
        let size = |(name, origin): &Module| name.len() + origin.len() + MODULE_SYNTAX;
        let mut room = MAX_IMPORT_BYTES.saturating_sub(self.imports.iter().map(size).sum());
        for module in modules {
            room = room.saturating_sub(size(module));
            if room > 0 && !self.imports.contains(module) {
                self.imports.push(module.clone());
            }
        }
    }

    /// Sends a collect request without waiting for the answer.
    fn ask_to_collect(
        &mut self,
        settings: &Value,
        ids: &[String],
        files: Stamps,
        changed: &[String],
    ) -> Result<()> {
        self.collector = None;
        let (control, peer) = Control::pair()?;
        let request = json!({
            "settings": settings,
            "changed": changed,
            "imports": self.imports,
        });
        self.importer
            .send(&request, &[tempfile::tempfile()?.into(), peer])?;
        self.collector = Some(Collector {
            control,
            ids: ids.to_vec(),
            files,
            is_ready: false,
        });
        Ok(())
    }

    fn run(
        &mut self,
        run: &Run<'_>,
        ids: &[String],
        recording: &mut Recording,
    ) -> Option<ProcessOutput> {
        let patience = (self.took * FORK_TIMEOUT_FACTOR).max(MIN_FORK_TIMEOUT);
        let deadline = run.options.deadline.min(Instant::now() + patience);
        let now = Stamps::take(run.checkout.root())?;
        let settings = recording.settings.clone();
        let is_current = (self.collector.as_ref())
            .is_some_and(|collector| collector.ids == ids && collector.files == now);
        if !is_current {
            self.collect_again(run.checkout.layout(), &settings, ids, now, deadline)?;
        }
        let collector = self.collector.as_mut()?;
        if !collector.is_ready {
            collector.control.receive::<Value>(deadline)?;
            collector.is_ready = true;
        }
        let request = json!({ "settings": settings });
        let report = &mut recording.report;
        let control = &mut collector.control;
        let ran = control.run(&request, MAX_PRINTED_BYTES, deadline, deadline, report);
        ran.ok()
    }

    fn collect_again(
        &mut self,
        layout: &Layout,
        settings: &Value,
        ids: &[String],
        now: Stamps,
        deadline: Instant,
    ) -> Option<()> {
        let changes = self.loaded.changes_to(&now);
        let mut modified = changes.modified.iter();
        if changes.is_other_set || modified.any(|path| !layout.is_test_file(path)) {
            return None;
        }
        // Discard unread answers to earlier requests.
        while self.importer.unanswered() > 0 {
            self.importer.receive::<Importer>(deadline)?;
        }
        self.ask_to_collect(settings, ids, now, &changes.modified)
            .ok()?;
        let answer: Importer = self.importer.receive(deadline)?;
        (!answer.stale).then_some(())
    }
}
