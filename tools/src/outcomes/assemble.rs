//! Assembles a [`TestReport`] from the plugin's events.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::classify::Classifier;
use super::events::{CollectedItem, PluginEvent, RawFailure, RawPhase};
use super::normalize::normalize;
use super::report::{CollectionError, Outcome, Phase, Place, TestReport, TestResult, WarningLine};
use crate::process::ExitReason;

/// pytest's exit status for unusable arguments.
pub const USAGE_EXIT_CODE: i32 = 4;

/// The reason for a missing outcome if the tests after the first ones took too long.
pub(super) const UNFINISHED_REASON: &str = "not finished in time";

/// Maximum seconds accepted for one test, since events may be forged.
const MAX_SECONDS: f64 = 1e9;

/// The recorded progress of one test.
#[derive(Default)]
struct TestProgress {
    phases: Vec<RawPhase>,
    executed: Vec<String>,
    ended: bool,
    /// Whether the test was ended because the time for the tests after the first ones was over.
    cut: bool,
}

/// An error of pytest, of one of its plugins, or of the recorder.
struct InternalError {
    text: String,
    /// Whether the recorder itself raised it.
    is_own: bool,
}

/// The recorded events of one session.
#[derive(Default)]
pub struct Session {
    order: Vec<String>,
    courses: HashMap<String, TestProgress>,
    planned: Vec<String>,
    deselected: Vec<String>,
    /// Ids with the reasons.
    skipped_modules: Vec<(String, String)>,
    collection_errors: Vec<(String, RawFailure)>,
    missing: Vec<String>,
    internal_error: Option<InternalError>,
    rest_timed_out: bool,
    tampered: Option<String>,
    warnings: Vec<WarningLine>,
    /// Whether a line follows the end of the record.
    after_end: bool,
    finished: bool,
    /// Whether pytest accepted its options and the first conftest files.
    pub started: bool,
    /// Whether collection finished.
    pub collected: bool,
    /// Modules that were imported while tests ran, with their origins.
    pub imported: Vec<(String, String)>,
    /// The collected tests with their places, if nothing was to run.
    pub items: Vec<CollectedItem>,
}

impl Session {
    /// Creates a session from its events, in the order in which they were recorded.
    pub fn new(events: Vec<PluginEvent>) -> Self {
        let mut session = Session::default();
        for event in events {
            session.add(event);
        }
        session
    }

    fn add(&mut self, event: PluginEvent) {
        self.after_end |= self.finished;
        match event {
            PluginEvent::Session {} => self.started = true,
            PluginEvent::CollectionError { id, failure } => {
                self.collection_errors.push((id, failure))
            }
            PluginEvent::CollectionSkipped { id, reason } => {
                self.skipped_modules.push((id, reason))
            }
            PluginEvent::Asked { missing } => self.missing = missing,
            PluginEvent::Deselected { ids } => self.deselected.extend(ids),
            PluginEvent::Collected { ids } => {
                self.collected = true;
                self.planned = ids;
            }
            PluginEvent::Start { id } => {
                if !self.courses.contains_key(&id) {
                    self.order.push(id.clone());
                }
                self.courses.insert(id, TestProgress::default());
            }
            PluginEvent::Phase(phase) => {
                if let Some(course) = self.courses.get_mut(&phase.id) {
                    course.phases.push(*phase);
                }
            }
            PluginEvent::Logged { id, when, outcome } => {
                self.update(&id, |course| course.log(when, &outcome));
            }
            PluginEvent::Items { items } => self.items = items,
            PluginEvent::Executed { id, files } => {
                self.update(&id, |course| course.executed = files);
            }
            PluginEvent::End { id } => self.update(&id, |course| course.ended = true),
            PluginEvent::Limit { id } => {
                self.rest_timed_out = true;
                if let Some(id) = id {
                    self.update(&id, |course| course.cut = true);
                }
            }
            PluginEvent::InternalError { text, own } => {
                self.internal_error = Some(InternalError { text, is_own: own })
            }
            PluginEvent::Tampered { what } => self.tampered = Some(what),
            PluginEvent::Warnings { warnings } => self.warnings = warnings,
            PluginEvent::Imported { modules } => self.imported = modules,
            PluginEvent::Finish {} => self.finished = true,
        }
    }

    fn update(&mut self, id: &str, change: impl FnOnce(&mut TestProgress)) {
        if let Some(course) = self.courses.get_mut(id) {
            change(course);
        }
    }

    /// Returns whether the record is complete, from its first line to its last, with no line after that.
    pub fn is_whole(&self) -> bool {
        self.started && self.collected && self.finished && !self.after_end
    }

    /// Returns whether no test was to run. pytest 8 and later finish a collection that ends with a usage error.
    pub fn plans_nothing(&self) -> bool {
        self.planned.is_empty()
    }

    /// Returns the part of the session's time that the tests took.
    pub fn test_time(&self) -> Duration {
        let phases = self.courses.values().flat_map(|course| &course.phases);
        let seconds: f64 = phases.map(|phase| phase.seconds).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Returns the conftest files that prevented pytest from starting, relative to the workspace.
    pub fn broken_conftests(&self) -> Vec<String> {
        let failed = self.collection_errors.iter().map(|(id, _)| id);
        failed
            .filter(|id| id.ends_with("conftest.py"))
            .cloned()
            .collect()
    }

    /// Builds the report on `requested_ids`, including the ids below them. `ended` says how the process ended.
    pub fn report(
        mut self,
        requested_ids: &[String],
        ended: ExitReason,
        printed: String,
        classifier: &Classifier<'_>,
    ) -> TestReport {
        let mut report = TestReport {
            printed,
            timed_out: ended == ExitReason::Deadline,
            rest_timed_out: self.rest_timed_out,
            exit_code: ended.exit_code(),
            warnings: std::mem::take(&mut self.warnings),
            ..TestReport::default()
        };
        let death = describe_end(ended, self.internal_error.as_ref());
        report.runner_error = self.runner_error(&report);
        for id in &self.order {
            if let Some(course) = self.courses.remove(id) {
                report.tests.push(course.result(id, &death, classifier));
            }
        }
        let begun: HashSet<&String> = self.order.iter().collect();
        for id in self.planned.iter().filter(|id| !begun.contains(id)) {
            report.tests.push(TestResult::new(id, Outcome::Absent));
        }
        for (id, raw) in &self.collection_errors {
            report.collection_errors.push(CollectionError {
                id: id.clone(),
                failure: classifier.failure(raw, Phase::Collect),
            });
        }
        // A session that ends with a usage error names an argument that holds no tests.
        let usage = self.started && report.exit_code == Some(USAGE_EXIT_CODE);
        if !self.collected && !usage && self.broken_conftests().is_empty() {
            self.died_collecting(requested_ids, &death, classifier, &mut report);
        }
        report.contradicted = self.after_end;
        report.tampered = self.tampered.take();
        self.report_missing_ids(requested_ids, classifier, &mut report);
        report
    }

    /// Returns the error that kept the runner from running tests; code under test has no part in it.
    fn runner_error(&self, report: &TestReport) -> Option<String> {
        if let Some(error) = &self.internal_error {
            let last = last_line(&error.text).unwrap_or_default().trim();
            return Some(format!("{}: {last}", error.subject()));
        }
        let is_stopped = self.started || report.timed_out || !self.collection_errors.is_empty();
        let last = last_line(&report.printed)
            .unwrap_or("it printed nothing")
            .trim();
        (!is_stopped).then(|| format!("the test runner did not start: {last}"))
    }

    /// Reports an error for every requested id, because the process ended during module imports.
    fn died_collecting(
        &self,
        requested_ids: &[String],
        death: &str,
        classifier: &Classifier<'_>,
        report: &mut TestReport,
    ) {
        let last_line = last_line(&report.printed).unwrap_or("nothing");
        let message =
            format!("{death} while the tests were being collected; printed last: {last_line}");
        let raw = RawFailure::without_exception("process", message);
        for id in requested_ids.iter().map(|id| file_of(id)) {
            if report.collection_errors.iter().all(|e| e.id != id) {
                report.collection_errors.push(CollectionError {
                    id: id.to_owned(),
                    failure: classifier.failure(&raw, Phase::Collect),
                });
            }
        }
    }

    /// Ensures that every requested id is a result, an error of its module, or not found.
    fn report_missing_ids(
        &self,
        requested_ids: &[String],
        classifier: &Classifier<'_>,
        report: &mut TestReport,
    ) {
        let whole: HashSet<String> = report.tests.iter().map(|test| test.id.clone()).collect();
        for id in requested_ids {
            if whole.contains(id) || report.tests.iter().any(|test| covers(id, &test.id)) {
                continue;
            }
            let out: Vec<&String> = self.deselected.iter().filter(|d| covers(id, d)).collect();
            if !out.is_empty() {
                let reason = "deselected by the options of this run or of the repository";
                report
                    .tests
                    .extend(out.into_iter().map(|id| skipped(id, reason.to_owned())));
                continue;
            }
            let mut skipped_modules = self.skipped_modules.iter();
            if let Some((_, reason)) = skipped_modules.find(|(module, _)| covers(module, id)) {
                let reason = normalize(reason, classifier.root);
                report.tests.push(skipped(id, reason));
                continue;
            }
            let mut errors = report.collection_errors.iter();
            let above = errors.find(|error| is_above(&error.id, id));
            match above.map(|error| error.failure.clone()) {
                // The collection errors already contain a requested file or folder.
                Some(failure) if id.contains("::") => report.tests.push(TestResult {
                    failure: Some(failure),
                    ..TestResult::new(id, Outcome::Error)
                }),
                Some(_) => {}
                None if self.missing.contains(id) || !self.collected => {
                    report.not_found.push(id.clone());
                }
                None => report.tests.push(TestResult::new(id, Outcome::Absent)),
            }
        }
    }
}

impl InternalError {
    fn subject(&self) -> &'static str {
        match self.is_own {
            true => "testwright's pytest plugin had an internal error",
            false => "pytest had an internal error",
        }
    }
}

impl TestProgress {
    /// Marks the phase that pytest reported. If the test runs again, the phases so far do not count.
    fn log(&mut self, when: Phase, outcome: &str) {
        if outcome == "rerun" {
            self.phases.clear();
            return;
        }
        let mut phases = self.phases.iter_mut();
        if let Some(phase) = phases.rfind(|p| p.when == when && !p.logged) {
            phase.logged = true;
        }
    }

    /// Removes what pytest did not report of attempts before the last one, if a plugin repeated the test. Within one
    /// attempt every phase counts.
    fn drop_earlier_attempts(&mut self) {
        let mut phases = self.phases.iter();
        let last = phases.rposition(|phase| phase.when == Phase::Setup);
        if !self.ended || !self.phases.iter().any(|phase| phase.logged) {
            return;
        }
        let mut at = 0;
        self.phases.retain(|phase| {
            at += 1;
            phase.logged || last.is_none_or(|last| at > last)
        });
    }

    fn result(mut self, id: &str, death: &str, classifier: &Classifier<'_>) -> TestResult {
        self.drop_earlier_attempts();
        let failed = |when: Phase| {
            let mut of_phase = self.phases.iter().filter(|p| p.when == when);
            of_phase.find(|p| p.outcome == "failed" && !p.unexpected)
        };
        let decisive = failed(Phase::Call)
            .or_else(|| failed(Phase::Setup))
            .or_else(|| failed(Phase::Teardown));
        let died = RawFailure::without_exception("process", format!("{death} while this test ran"));
        let raw_failure = match decisive {
            Some(phase) => phase.failure.as_ref().map(|raw| (raw, phase.when)),
            None if !self.is_over() && !self.cut => Some((&died, Phase::Call)),
            None => None,
        };
        let failure = raw_failure.map(|(raw, when)| classifier.failure(raw, when));
        let skipped = self.phases.iter().find(|p| p.outcome == "skipped");
        let captured = decisive.or(skipped).map_or("", |phase| &phase.captured);
        let captured = match self.cut && decisive.is_none() && !self.is_over() {
            true => UNFINISHED_REASON.to_owned(),
            false => normalize(captured, classifier.root),
        };
        // JSON cannot represent an infinite sum, and an unreadable report would be discarded.
        let seconds: f64 = self.phases.iter().map(|phase| phase.seconds).sum();
        let seconds = seconds.clamp(0.0, MAX_SECONDS);
        let outcome = match decisive {
            Some(phase) if phase.when == Phase::Call => Outcome::Failed,
            Some(_) => Outcome::Error,
            None if !self.is_over() => Outcome::Absent,
            None => self.without_failure(),
        };
        let is_source = |file: &String| classifier.place_of(file) == Place::Source;
        TestResult {
            id: id.to_owned(),
            outcome,
            failure,
            captured,
            seconds: (seconds * 1e6).round() / 1e6 + 0.0,
            executed: self.executed.into_iter().filter(is_source).collect(),
        }
    }

    /// Returns whether the test finished. Without a phase, an error of the runner itself prevented the test from
    /// running.
    fn is_over(&self) -> bool {
        self.ended && !self.phases.is_empty()
    }

    fn without_failure(&self) -> Outcome {
        let any = |matches: fn(&RawPhase) -> bool| self.phases.iter().any(matches);
        if any(|p| p.unexpected || (p.xfail && p.outcome == "passed" && p.when == Phase::Call)) {
            Outcome::Xpassed
        } else if any(|p| p.xfail && p.outcome == "skipped") {
            Outcome::Xfailed
        } else if any(|p| p.outcome == "skipped" && p.when != Phase::Call)
            || !any(|p| p.when == Phase::Call && p.outcome == "passed")
        {
            Outcome::Skipped
        } else {
            Outcome::Passed
        }
    }
}

fn skipped(id: &str, reason: String) -> TestResult {
    TestResult {
        captured: reason,
        ..TestResult::new(id, Outcome::Skipped)
    }
}

/// Returns the last line of a text that is not blank.
pub(crate) fn last_line(text: &str) -> Option<&str> {
    text.lines().rfind(|line| !line.trim().is_empty())
}

fn describe_end(ended: ExitReason, internal_error: Option<&InternalError>) -> String {
    match (ended, internal_error) {
        (ExitReason::Deadline, _) => "the deadline came".to_owned(),
        (ExitReason::Exit(_), Some(error)) => format!("{}:\n{}\n", error.subject(), error.text),
        _ => ended.to_string(),
    }
}

/// Returns the file's path in a node id: the part before the first `::`.
pub fn file_of(id: &str) -> &str {
    id.split_once("::").map_or(id, |(file, _)| file)
}

/// Returns the files of node ids, each once.
pub fn files_of(ids: &[String]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for file in ids.iter().map(|id| file_of(id)) {
        if !files.iter().any(|other| other == file) {
            files.push(file.to_owned());
        }
    }
    files
}

/// Returns whether `target` is `id`, or its file, folder, class or function.
pub fn covers(target: &str, id: &str) -> bool {
    let folder = target.trim_end_matches('/');
    match id.strip_prefix(target).or_else(|| id.strip_prefix(folder)) {
        Some(rest) => rest.is_empty() || rest.starts_with("::") || rest.starts_with(['[', '/']),
        None => folder == "." || folder.is_empty(),
    }
}

/// Returns whether a collection error of `broken` (a file, a class, a package or a conftest file) also affects `id`.
fn is_above(broken: &str, id: &str) -> bool {
    if covers(broken, id) {
        return true;
    }
    let mut names = ["conftest.py", "__init__.py"].iter();
    let folder = names.find_map(|name| broken.strip_suffix(name));
    folder.is_some_and(|folder| id.starts_with(folder))
}

/// Combines the reports of several runs, in their order.
pub fn merge_reports(reports: impl IntoIterator<Item = TestReport>) -> TestReport {
    reports.into_iter().reduce(merged).unwrap_or_default()
}

fn merged(mut first: TestReport, second: TestReport) -> TestReport {
    first.tests.extend(second.tests);
    for error in second.collection_errors {
        if first.collection_errors.iter().all(|e| e.id != error.id) {
            first.collection_errors.push(error);
        }
    }
    first.not_found.extend(second.not_found);
    first.timed_out |= second.timed_out;
    first.contradicted |= second.contradicted;
    first.tampered = first.tampered.or(second.tampered);
    first.runner_error = first.runner_error.or(second.runner_error);
    first.rest_timed_out |= second.rest_timed_out;
    first.exit_code = match (first.exit_code, second.exit_code) {
        (Some(a), Some(b)) => Some(a.max(b)),
        _ => None,
    };
    first.warnings.extend(second.warnings);
    first.printed.push_str(&second.printed);
    first.seconds += second.seconds;
    first
}

/// Returns a duration in seconds, rounded to milliseconds.
pub fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}
