//! The last step of an accepted test: into a work tree of its repository. Also the commands that apply and run it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::output::escape_line;
use testwright_agent::agent::Outcome;
use testwright_agent::gate::Evidence;
use testwright_agent::job::Record;
use testwright_config::error::{Error, Result};
use testwright_sandboxes::repository::{Placement, WorkTree, touched_paths};
pub(super) use testwright_sandboxes::sandbox::quote;
use testwright_server::expected_failure::{self, Tests};
use testwright_tools::config::RunnerKind;
use testwright_tools::outcomes::file_of;

/// Maximum characters of the first line of a commit message.
const MAX_SUBJECT_LEN: usize = 72;
/// Maximum number of tests in the command that runs them; more are run as whole files.
const MAX_LISTED: usize = 3;

/// A test that a run accepted.
pub(super) struct AcceptedTest {
    /// Folder of the run.
    pub folder: PathBuf,
    /// Folder or URL of the old code.
    pub location: String,
    /// Name of the repository.
    pub repository: String,
    /// Commit that the run tested, if the old code was a git repository.
    pub commit: Option<String>,
    /// Title of the issue.
    pub title: String,
    /// URL or file of the issue.
    pub origin: String,
    /// The test, with paths relative to the root of the work tree.
    pub patch: String,
    pub evidence: Box<Evidence>,
    /// Runner in the recipe, as in `run.json`.
    pub runner: Value,
}

impl AcceptedTest {
    /// Returns the test of a run, if one was accepted.
    pub(super) fn of_record(record: &Record, folder: &Path, location: &str) -> Option<Self> {
        let Outcome::Accepted { patch, evidence } = &record.outcome else {
            return None;
        };
        let text = |key: &str| record.issue[key].as_str().unwrap_or_default().to_owned();
        Some(AcceptedTest {
            folder: folder.to_owned(),
            location: location.to_owned(),
            repository: record.repository.clone(),
            commit: record.commit.clone(),
            title: text("title"),
            origin: text("origin"),
            patch: patch.clone(),
            evidence: evidence.clone(),
            runner: record.environment["recipe"]["runner"].clone(),
        })
    }

    /// Finds the work tree of the old code. For a URL, it is the current folder if that is a clone of the repository.
    pub(super) fn work_tree(&self) -> Result<Option<WorkTree>> {
        if let Some(tree) = WorkTree::find(&self.location)? {
            return Ok(Some(tree));
        }
        match WorkTree::find(".")? {
            Some(tree) if tree.is_clone_of(&self.repository)? => Ok(Some(tree)),
            _ => Ok(None),
        }
    }

    /// Applies a form of the test to a work tree. Returns lines on what was done. `command` is the command to repeat if
    /// this fails.
    pub(super) fn apply(
        &self,
        tree: &WorkTree,
        patch: &str,
        placement: Placement<'_>,
        command: &str,
    ) -> Result<Vec<String>> {
        let folder = self.folder.display();
        let commit = self.or_refused(tree, tree.apply(patch, placement)?, command)?;
        let mut lines = vec![format!(
            "applied: {folder}/test.patch to {}",
            tree.root().display()
        )];
        let branch = placement.branch;
        lines.extend(branch.map(|branch| format!("branch: {branch}")));
        lines.extend(commit.map(|commit| format!("commit: {commit}")));
        Ok(lines)
    }

    /// Returns the commands that apply the test and run it. If it does not apply to a known work tree, returns a note
    /// on why instead.
    pub(super) fn next_steps(&self) -> Vec<String> {
        let checked = self.work_tree().and_then(|tree| {
            let Some(tree) = tree else {
                return Ok(None);
            };
            let checked = tree.check(&self.patch)?;
            let is_applied = checked.is_err() && tree.has_applied(&self.patch)?;
            Ok(Some((tree, checked, is_applied)))
        });
        let command = apply_command(&self.folder);
        // As long as the test is in no file, there is nothing to run.
        let (tree, checked, is_applied) = match checked {
            Ok(Some(state)) => state,
            Ok(None) => return vec![format!("apply: {command} --repo FOLDER")],
            Err(error) => return vec![format!("note: {}", error.with_cause())],
        };
        let root = tree.root().display();
        let mut lines = match checked {
            Ok(()) => vec![
                format!("apply: {command}"),
                format!("or: {}", self.git_apply_command(tree.root(), "")),
            ],
            Err(_) if is_applied => vec![format!("note: the test is already applied to {root}")],
            Err(reason) => {
                let reason = reason.replace('\n', "; ");
                return vec![format!(
                    "note: the test does not apply to {root} now: {reason}"
                )];
            }
        };
        lines.extend(self.how_to_run(&tree));
        lines
    }

    /// Returns the command for git that applies the patch to a work tree, with an option that ends with a space.
    fn git_apply_command(&self, root: &Path, option: &str) -> String {
        let patch = self.folder.join("test.patch");
        if current_folder().is_some_and(|folder| folder == root) {
            return format!("git apply {option}{}", quote_path(&patch));
        }
        let patch = std::path::absolute(&patch).unwrap_or(patch);
        let (root, patch) = (quote_path(root), quote_path(&patch));
        format!("git -C {root} apply {option}{patch}")
    }

    /// Returns the command that runs the tests in a work tree and a note on what it needs, if their runner is known.
    pub(super) fn how_to_run(&self, tree: &WorkTree) -> Vec<String> {
        let Some(command) = self.run_command() else {
            return Vec::new();
        };
        let project = tree.root().join(self.project_folder());
        // Without the slash at the end.
        let project: PathBuf = project.components().collect();
        let line = match current_folder() {
            Some(folder) if folder == project => format!("run: {command}"),
            _ => format!("run: cd {} && {command}", quote_path(&project)),
        };
        // The environment of the run is in the cache, and its Python is not on PATH.
        let is_pytest = command.starts_with("python -m pytest");
        let runner = if is_pytest { "pytest and " } else { "" };
        let note = format!("note: `python` must have {runner}the dependencies of the project");
        vec![line, note]
    }

    /// Returns the path from the root of the work tree to the folder that the ids are relative to.
    fn project_folder(&self) -> String {
        let paths = touched_paths(&self.patch);
        let failing = self.evidence.tests.iter().map(|test| test.id.as_str());
        let passing = self.evidence.passing.iter().map(String::as_str);
        let folder = failing.chain(passing).map(file_of).find_map(|file| {
            let path = paths.iter().find(|path| Path::new(path).ends_with(file))?;
            path.strip_suffix(file)
        });
        folder.unwrap_or_default().to_owned()
    }

    fn run_command(&self) -> Option<String> {
        let kind = RunnerKind::named(self.runner["kind"].as_str()?)?;
        let failing = self.evidence.tests.iter().map(|test| test.id.as_str());
        let mut ids: Vec<&str> = failing.collect();
        if ids.is_empty() {
            ids = self.evidence.passing.iter().map(String::as_str).collect();
        }
        // Without parameters, which shells and runners read in different ways.
        let mut ids: Vec<&str> = ids.iter().filter_map(|id| id.split('[').next()).collect();
        ids.dedup();
        if ids.is_empty() {
            return None;
        }
        if ids.len() > MAX_LISTED || kind == RunnerKind::Sympy {
            ids = ids.into_iter().map(file_of).collect();
            ids.dedup();
        }
        let dotted = |id: &str| id.replace(".py", "").replace("::", ".").replace('/', ".");
        let (program, names): (_, Vec<String>) = match kind {
            RunnerKind::Pytest => (
                "python -m pytest",
                ids.iter().map(|id| (*id).to_owned()).collect(),
            ),
            RunnerKind::Unittest => (
                "python -m unittest",
                ids.iter().map(|id| dotted(id)).collect(),
            ),
            RunnerKind::Django => {
                let labels = ids.iter().map(|id| id.strip_prefix("tests/").unwrap_or(id));
                ("python tests/runtests.py", labels.map(dotted).collect())
            }
            RunnerKind::Sympy => (
                "python bin/test",
                ids.iter().map(|id| (*id).to_owned()).collect(),
            ),
        };
        let options = match kind {
            // Options of unittest select files, which are named here.
            RunnerKind::Unittest => None,
            _ => self.runner["options"].as_array(),
        };
        let options = options.into_iter().flatten().filter_map(Value::as_str);
        let words = options.chain(names.iter().map(String::as_str)).map(quote);
        let words: Vec<String> = words.collect();
        Some(format!("{program} {}", words.join(" ")))
    }

    /// Returns the test as a patch that marks it as expected to fail.
    /// `command` is the command to repeat if this fails.
    pub(super) fn marked_patch(&self, tree: &WorkTree, command: &str) -> Result<String> {
        self.or_refused(tree, self.mark(tree)?, command)
    }

    /// Returns the error for a test that was not applied. The results of the run stay as they are.
    fn or_refused<T>(
        &self,
        tree: &WorkTree,
        result: std::result::Result<T, String>,
        command: &str,
    ) -> Result<T> {
        let reason = match result {
            Ok(value) => return Ok(value),
            Err(reason) => reason,
        };
        let error = Error::usage(format!("apply the test to {}", tree.root().display()));
        if tree.has_applied(&self.patch)? {
            let remove = self.git_apply_command(tree.root(), "--reverse ");
            let error = error.cause("it is already applied");
            return Err(error.hint(format!("to apply it again, remove it first: {remove}")));
        }
        if self.has_applied_mark(tree)? {
            let error = error.cause("it is already applied, marked as expected to fail");
            return Err(error.hint("to apply it again, remove it first"));
        }
        let hint = format!("resolve this, then run `{command}`");
        Err(error.cause(reason).hint(hint))
    }

    /// Returns whether the work tree has the test with its mark. The mark is made again on the code that the run tested.
    fn has_applied_mark(&self, tree: &WorkTree) -> Result<bool> {
        // git must not read the text of a record as an option.
        let is_hash = |text: &&String| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(commit) = self.commit.as_ref().filter(is_hash) else {
            return Ok(false);
        };
        // The clone may lack the commit, and a test that passes has no mark.
        let files = tree.files_at(commit, &self.patch).ok();
        match files.map(|files| self.mark(&files)) {
            Some(Ok(Ok(marked))) => Ok(tree.has_applied(&marked)?),
            _ => Ok(false),
        }
    }

    /// Returns the test as a patch that marks it as expected to fail. The inner error says why the patch does not apply
    /// to the work tree, or why the test cannot be marked.
    pub(super) fn mark(&self, tree: &WorkTree) -> Result<std::result::Result<String, String>> {
        let tests = Tests {
            failing: (self.evidence.tests.iter())
                .map(|test| test.id.as_str())
                .collect(),
            passing: self.evidence.passing.iter().map(String::as_str).collect(),
        };
        if tests.failing.is_empty() {
            return Err(Error::usage("mark the test as expected to fail")
                .cause("it passes")
                .hint("leave out --xfail"));
        }
        let runner = self.runner["kind"].as_str().and_then(RunnerKind::named);
        let reason = self.url().unwrap_or(&self.title);
        let reason = escape_line(reason);
        let mark = |path: &str, text: &str| {
            // Ids are relative to the project, which may be in a subfolder.
            let mut files = tests.failing.iter().map(|id| file_of(id));
            match files.find(|file| Path::new(path).ends_with(file)) {
                Some(file) => {
                    let runner = runner.unwrap_or_default();
                    expected_failure::mark(file, text, &tests, &reason, runner)
                        .map_err(|error| error.to_string())
                }
                None => Ok(text.to_owned()),
            }
        };
        match tree.check(&self.patch)? {
            Ok(()) => Ok(tree.edited_patch(&self.patch, &mark)?),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Returns a message for a commit: the subject, the title of the issue if the subject cuts it, and the URL of the
    /// issue if it has one.
    pub(super) fn commit_message(&self, is_marked: bool) -> String {
        let parts = [
            Some(self.subject(is_marked)),
            self.cut_title(is_marked),
            self.url().map(|url| escape_line(url).into_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join("\n\n") + "\n"
    }

    /// Returns a line for a commit or a pull request, with the title of the issue.
    pub(super) fn subject(&self, is_marked: bool) -> String {
        let (what, subject) = self.full_subject(is_marked);
        if subject.chars().count() <= MAX_SUBJECT_LEN {
            return subject;
        }
        let mut short: String = subject.chars().take(MAX_SUBJECT_LEN).collect();
        // Cut at the end of a word, unless that leaves nothing of the title.
        match short.rfind(' ').filter(|end| *end > what.len() + 1) {
            Some(end) => short.truncate(end),
            None => {
                short.pop();
            }
        }
        format!("{}…", short.trim_end())
    }

    /// Returns the title of the issue on one line, if it is too long for the subject.
    pub(super) fn cut_title(&self, is_marked: bool) -> Option<String> {
        let (_, subject) = self.full_subject(is_marked);
        let is_cut = subject.chars().count() > MAX_SUBJECT_LEN;
        is_cut.then(|| escape_line(self.title.trim()).into_owned())
    }

    /// Returns what a commit does, and the same with the title of the issue.
    fn full_subject(&self, is_marked: bool) -> (&'static str, String) {
        let what = match (self.evidence.tests.is_empty(), is_marked) {
            (true, _) => "Add a test",
            (false, true) => "Add an expected failure",
            (false, false) => "Add a failing test",
        };
        match self.title.trim() {
            "" => (what, what.to_owned()),
            title => (what, format!("{what}: {}", escape_line(title))),
        }
    }

    /// Returns the URL of the issue, if it has one.
    pub(super) fn url(&self) -> Option<&str> {
        let origin = self.origin.as_str();
        (origin.starts_with("https://") || origin.starts_with("http://")).then_some(origin)
    }
}

/// Returns the command that applies the test of the run in a folder.
pub(super) fn apply_command(folder: &Path) -> String {
    format!("testwright apply {}", quote_path(folder))
}

/// Adds the options with a value and the flags that are set to a command.
pub(super) fn with_options(
    mut command: String,
    options: &[(&str, &Option<String>)],
    flags: &[(&str, bool)],
) -> String {
    for (name, value) in options {
        if let Some(value) = value {
            command += &format!(" {name} {}", quote(value));
        }
    }
    for (name, _) in flags.iter().filter(|(_, is_set)| *is_set) {
        command += &format!(" {name}");
    }
    command
}

fn current_folder() -> Option<PathBuf> {
    std::env::current_dir().ok()?.canonicalize().ok()
}

/// Quotes a path for a shell, if it needs quotes. An untrusted repository can choose the names of folders.
pub(super) fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
