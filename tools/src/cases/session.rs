//! The checkout in which cases run: writes the files of each case and removes them afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::fork_server::ForkServer;
use super::snapshot::{Snapshot, empty, remove};
use super::{CaseAnswer, CaseRun, Settings};
use crate::config::RunnerKind;
use crate::coverage::{Measure, Statements, WholeMeasure, statements};
use crate::metadata;
use crate::outcomes::RECORDER_NAMES;
use crate::outcomes::report::{Outcome, TestReport};
use crate::process;
use crate::runners::{self, DetailedRun, Launcher, Options};
use crate::test_run::make_folders;
use crate::tool::{Result, ToolError, refusal};
use crate::workspace::Checkout;

/// The first `LEARNING_RUNS` runs of a fork server report their imports; after those, one run in `REPORT_IMPORTS_EVERY` does.
const LEARNING_RUNS: u32 = 12;
const REPORT_IMPORTS_EVERY: u32 = 64;
/// The maximum time of one run.
const MAX_RUN_TIME: Duration = Duration::from_secs(24 * 3600);

pub(super) struct CaseSession {
    checkout: Checkout,
    settings: Settings,
    /// The expected state of the workspace.
    snapshot: Snapshot,
    /// One server for each hash seed in use.
    servers: Vec<ForkServer>,
    runs: u32,
}

impl CaseSession {
    pub(super) fn open(settings: Settings) -> Result<CaseSession> {
        make_folders(&settings.config)?;
        process::adopt_orphans()?;
        let checkout = Checkout::open(settings.config.clone())?;
        let snapshot = Snapshot::take(checkout.root())?;
        Ok(CaseSession {
            checkout,
            settings,
            snapshot,
            servers: Vec::new(),
            runs: 0,
        })
    }

    pub(super) fn statements(&self, files: &[String]) -> Result<BTreeMap<String, Statements>> {
        let Some(package) = &self.settings.coverage else {
            return Err(ToolError::refused("There is no coverage.py to ask."));
        };
        statements(self.checkout.config(), package, files)
    }

    pub(super) fn run(&mut self, run: &CaseRun) -> Result<CaseAnswer> {
        let path = checked_path(&run.path)?;
        let original = OriginalFile::take(self.checkout.root(), &path)?;
        let written = original.replace(&run.source);
        let answer = written.and_then(|()| self.run_in_place(run));
        let mut is_clean = original.restore().is_ok();
        if original.content.is_some() {
            is_clean &= self.snapshot.expect(&path).is_ok();
        }
        // A file that cannot be removed also requires a fresh sandbox.
        is_clean &= self.clean().is_ok_and(|is_clean| is_clean);
        let answer = answer?;
        Ok(CaseAnswer { is_clean, ..answer })
    }

    /// Removes what the case left behind, and returns whether the workspace is unchanged.
    fn clean(&self) -> std::io::Result<bool> {
        let config = self.checkout.config();
        empty(&config.scratch, &[config.private()])?;
        if let Some(temporary) = &self.settings.temporary {
            let (scratch, workspace) = (config.scratch.clone(), config.workspace.clone());
            empty(temporary, &[scratch, config.private(), workspace])?;
        }
        Ok(self.snapshot.clean()?.is_empty())
    }

    fn run_in_place(&mut self, run: &CaseRun) -> Result<CaseAnswer> {
        let time = Duration::from_millis(run.milliseconds).min(MAX_RUN_TIME);
        let mut ids: Vec<String> = (run.tests.iter())
            .map(|test| format!("{}::{test}", run.path))
            .collect();
        if ids.is_empty() {
            ids.push(run.path.clone());
        }
        let mut options = Options::with_deadline(Instant::now() + time);
        options.hash_seed = run.hash_seed;
        options.guarded = true;
        let measure = (self.settings.coverage.clone()).filter(|_| run.measured);
        let measure = measure.map(|package| Measure {
            package,
            whole: Some(WholeMeasure {
                contexts: run.contexts,
            }),
            ..Measure::default()
        });
        let measure = measure.as_ref();
        let is_pytest = self.checkout.config().runner.kind == RunnerKind::Pytest;
        let mut was_warm = false;
        let mut ran = None;
        if self.settings.warm && is_pytest {
            ran = self.run_warm(&ids, &options, time, measure);
            was_warm = ran.is_some();
        }
        let ran = match ran {
            Some(ran) => ran,
            None => {
                options.deadline = Instant::now() + time;
                runners::run_in(&self.checkout, &ids, &options, measure, None)?
            }
        };
        let mut recorders = RECORDER_NAMES.iter();
        let named_recorder = recorders.find(|name| run.source.contains(**name));
        Ok(CaseAnswer {
            refused: None,
            names_recorder: named_recorder.map(|name| (*name).to_owned()),
            report: ran.report,
            is_whole: ran.is_whole,
            coverage: ran.coverage,
            is_clean: true,
            was_warm,
        })
    }

    /// Runs the tests in a forked process. Returns `None` if the result would need confirmation by a new process.
    fn run_warm(
        &mut self,
        ids: &[String],
        options: &Options,
        time: Duration,
        measure: Option<&Measure>,
    ) -> Option<DetailedRun> {
        let at = self.find_or_start_server(options.hash_seed)?;
        let server = &mut self.servers[at];
        self.runs += 1;
        let mut options = options.clone();
        options.deadline = Instant::now() + time;
        options.tells_imports =
            self.runs <= LEARNING_RUNS || self.runs.is_multiple_of(REPORT_IMPORTS_EVERY);
        let launcher: &mut dyn Launcher = server;
        let ran = runners::run_in(&self.checkout, ids, &options, measure, Some(launcher));
        if server.is_broken {
            self.servers.swap_remove(at);
            return None;
        }
        let ran = ran.ok()?;
        server.preload(&ran.imported);
        (ran.is_whole && is_plain(&ran.report)).then_some(ran)
    }

    /// Returns the index of the server for a hash seed, which is started if necessary.
    fn find_or_start_server(&mut self, hash_seed: u32) -> Option<usize> {
        let index = self.servers.iter().position(|s| s.hash_seed == hash_seed);
        if index.is_some() {
            return index;
        }
        let package = self.settings.coverage.as_deref();
        let (config, root) = (self.checkout.config(), self.checkout.root());
        let server = ForkServer::start(config, root, package, hash_seed);
        let Some(server) = server.ok().filter(|server| !server.is_broken) else {
            // Another server would fail to start as well.
            self.settings.warm = false;
            return None;
        };
        self.servers.push(server);
        Some(self.servers.len() - 1)
    }
}

/// Returns whether tests ran and none ended in an error outside the test itself.
fn is_plain(report: &TestReport) -> bool {
    let is_plain = |outcome| matches!(outcome, Outcome::Passed | Outcome::Failed);
    report.collection_errors.is_empty()
        && !report.tests.is_empty()
        && report.tests.iter().all(|test| is_plain(test.outcome))
}

fn checked_path(path: &str) -> Result<PathBuf> {
    let relative = Path::new(path);
    let is_inside = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !is_inside || relative.starts_with(".git") {
        return Err(refusal!("`{path}` is not a path relative to the workspace"));
    }
    Ok(relative.to_owned())
}

/// The original content of a file, or the fact that it did not exist.
struct OriginalFile {
    path: PathBuf,
    content: Option<(Vec<u8>, fs::Permissions, SystemTime)>,
    /// The topmost folder that must be created for the file.
    new_folder: Option<PathBuf>,
}

impl OriginalFile {
    fn take(root: &Path, relative: &Path) -> Result<OriginalFile> {
        let path = root.join(relative);
        let mut new_folder = None;
        let mut above = root.to_owned();
        for part in relative.parent().into_iter().flat_map(Path::components) {
            above.push(part);
            match fs::symlink_metadata(&above) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(not_a_file(relative)),
                Err(_) => {
                    new_folder = Some(above);
                    break;
                }
            }
        }
        let content = match fs::symlink_metadata(&path) {
            Err(_) => None,
            Ok(metadata) if metadata.is_file() => Some((
                fs::read(&path)?,
                metadata.permissions(),
                metadata.modified()?,
            )),
            Ok(_) => return Err(not_a_file(relative)),
        };
        Ok(OriginalFile {
            path,
            content,
            new_folder,
        })
    }

    fn replace(&self, source: &str) -> Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Remove the file instead of overwriting it: it may have other hard links.
        remove(&self.path)?;
        fs::write(&self.path, source)?;
        metadata::set_permissions_at(&self.path, &fs::Permissions::from_mode(0o644))?;
        Ok(())
    }

    fn restore(&self) -> Result<()> {
        remove(&self.path)?;
        if let Some((content, permissions, modified)) = &self.content {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = fs::File::create(&self.path)?;
            std::io::Write::write_all(&mut file, content)?;
            metadata::set_permissions(&file, permissions)?;
            metadata::set_modified(&file, *modified)?;
        }
        if let Some(folder) = &self.new_folder {
            remove(folder)?;
        }
        Ok(())
    }
}

fn not_a_file(path: &Path) -> ToolError {
    refusal!(
        "`{}` cannot be written: something else is in its place",
        path.display()
    )
}
