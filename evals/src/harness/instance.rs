//! Prepares an instance: old and new code as two states in which tests can run.

use std::collections::BTreeMap;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{self, BuildEvent, Environment};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe;
use testwright_sandboxes::repository::{self, AppliedPatch, File, Files, Source, Tree};
use testwright_tools::workspace::Layout;

use super::changed_lines::ChangedLines;
use super::contribution::{Contribution, layout};
use super::foreign_files::is_documentation;
use super::progress::Step;
use super::{GradingFailure, Harness, at_stage};
use crate::dataset::Instance;
use crate::result::Infrastructure;

/// Limits of a patch: its bytes, the number of files it changes, and the bytes of those files. A larger patch is not
/// reviewable, and would take time and memory from other predictions.
const MAX_PATCH_BYTES: usize = 32 << 20;
const MAX_CHANGED_FILES: usize = 5_000;
const MAX_CHANGED_BYTES: usize = 256 << 20;

/// Hint for a repository that cannot be cloned.
const UNREACHABLE_HINT: &str =
    "check the network and the proxy settings, or pass the folder of a clone with --repositories";

/// A saved state with files to put over it. The same files are written on both sides: see [`super::traces`].
#[derive(Clone)]
pub(super) struct CodeState {
    pub environment: Environment,
    pub files: Files,
    /// Text that files show instead of the text that their bytecode was compiled from.
    pub shown: BTreeMap<String, String>,
}

impl CodeState {
    pub(super) fn new(environment: Environment, files: Files) -> CodeState {
        CodeState {
            environment,
            files,
            shown: BTreeMap::new(),
        }
    }

    /// Returns the files that show another text, with that text.
    pub(super) fn shown_files(&self) -> Files {
        let shown = self.shown.iter().filter_map(|(path, text)| {
            let file = self.files.get(path)?.as_ref()?;
            let file = File {
                content: text.clone().into_bytes(),
                kind: file.kind,
            };
            Some((path.clone(), Some(file)))
        });
        shown.collect()
    }
}

/// An instance that is ready for grading predictions.
pub(super) struct PreparedInstance {
    pub tree: Tree,
    pub layout: Layout,
    pub old: CodeState,
    pub new: CodeState,
    /// Lines that the golden code patch changes.
    pub changed: ChangedLines,
    /// Files that the golden code patch changes, in their new version.
    pub fix: Files,
    /// The golden tests; `None` if the dataset has none.
    pub golden: Option<(AppliedPatch, Contribution)>,
}

impl PreparedInstance {
    pub(super) fn is_cached(&self) -> bool {
        self.old.environment.cached && self.new.environment.cached
    }

    /// Applies a prediction to the old code.
    pub(super) fn apply(&self, patch: &str) -> Result<Result<AppliedPatch, String>, SandboxError> {
        if patch.len() > MAX_PATCH_BYTES {
            return Ok(Err(format!(
                "the patch is larger than {} MiB",
                MAX_PATCH_BYTES >> 20
            )));
        }
        let applied = repository::apply(&self.tree, &Files::new(), patch)?;
        Ok(applied.and_then(|applied| {
            let files = applied.files.values().flatten();
            let bytes: usize = files.map(|file| file.content.len()).sum();
            if applied.files.len() > MAX_CHANGED_FILES {
                return Err(format!(
                    "the patch changes more than {MAX_CHANGED_FILES} files"
                ));
            }
            if bytes > MAX_CHANGED_BYTES {
                return Err(format!(
                    "the files of the patch take more than {} MiB",
                    MAX_CHANGED_BYTES >> 20
                ));
            }
            Ok(applied)
        }))
    }

    /// Applies a prediction to the new code. If it conflicts with the fix in some file, the prediction's version of its
    /// files is used. Documentation, and files that only the prediction changes, are the same on both sides, so a test
    /// cannot tell the sides by them. A rename, for example, would take the content of the fixed file.
    pub(super) fn apply_to_new_code(
        &self,
        patch: &str,
        old: &AppliedPatch,
    ) -> Result<AppliedPatch, SandboxError> {
        if !old.files.keys().any(|path| self.fix.contains_key(path)) {
            return Ok(old.clone());
        }
        let again = repository::apply(&self.tree, &self.fix, patch)?;
        let mut again = again.unwrap_or_else(|_| old.clone());
        for (path, file) in &old.files {
            if !self.fix.contains_key(path) || is_documentation(path, &self.tree) {
                again.files.insert(path.clone(), file.clone());
            }
        }
        Ok(again)
    }
}

impl Harness {
    /// Returns the old code of an instance and its environment, in which predictions are graded.
    ///
    /// # Errors
    ///
    /// Fails if the code cannot be fetched or the environment cannot be built.
    pub async fn old_code(
        &self,
        instance: &Instance,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<(Source, Environment), GradingFailure> {
        let source = self.source(instance).await?;
        let environment = self
            .environment(&instance.instance_id, &source, progress)
            .await?;
        Ok((source, environment))
    }

    /// Opens a repository (a folder or a URL) at a revision, changes its files, and builds its environment.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be opened, `change` fails, or the environment cannot be built.
    pub async fn changed_code_at(
        &self,
        location: &str,
        revision: Option<&str>,
        change: impl FnOnce(Source) -> Result<Source, SandboxError> + Send + 'static,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<(Source, Environment), GradingFailure> {
        let source = self.open_source(location, revision, change).await;
        let source = source.map_err(at_stage("source"))?;
        let environment = self.environment(&source.name, &source, progress).await?;
        Ok((source, environment))
    }

    /// Prepares an instance. Blocks while environments are built.
    pub(super) async fn prepare(
        &self,
        instance: &Instance,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<PreparedInstance, GradingFailure> {
        let failed = at_stage("source");
        let source = self.source(instance).await?;
        let tree = source.tree().map_err(&failed)?;
        let layout = layout(&tree).map_err(&failed)?;
        let patch = instance.patch.as_deref().unwrap_or_default();
        let fix = apply_golden(instance, &tree, "code patch", patch)?;
        let golden = match instance.test_patch.as_deref() {
            Some(patch) if !patch.trim().is_empty() => {
                let applied = apply_golden(instance, &tree, "test patch", patch)?;
                let tests = Contribution::from_patch(&applied, &fix.files, &tree, &layout);
                let tests = tests.map_err(&failed)?;
                Some((applied, tests))
            }
            _ => None,
        };
        let environment = self
            .environment(&instance.instance_id, &source, progress)
            .await?;
        let (old, new) = if fix.files.keys().any(|path| requires_reinstallation(path)) {
            let fixed = source.with_files(&fix.files, &self.cache);
            let fixed = fixed.map_err(&failed)?;
            let of = |environment| CodeState::new(environment, Files::new());
            let new = self
                .environment(&instance.instance_id, &fixed, progress)
                .await?;
            (of(environment), of(new))
        } else {
            let old_files = before(&tree, &fix.files).map_err(&failed)?;
            let old = CodeState::new(environment.clone(), old_files);
            (old, CodeState::new(environment, fix.files.clone()))
        };
        Ok(PreparedInstance {
            layout,
            tree,
            old,
            new,
            changed: ChangedLines::from_patch(patch),
            fix: fix.files,
            golden,
        })
    }

    async fn source(&self, instance: &Instance) -> Result<Source, GradingFailure> {
        let (repo, commit) = (instance.repo.clone(), instance.base_commit.clone());
        let check = move |mut source: Source| {
            // The name of a branch or tag may look like an abbreviated hash.
            let resolved_commit = source.commit.as_deref().unwrap_or_default();
            if !resolved_commit.starts_with(&commit.to_ascii_lowercase()) {
                let message = format!("`{commit}` resolves to another commit, {resolved_commit}");
                return Err(SandboxError::input(message));
            }
            // A mirror's folder may have any name, but recipes are found by the repository's name.
            source.name = repo;
            Ok(source)
        };
        // A plain folder has no commit.
        let revision = Some(instance.base_commit.as_str()).filter(|commit| !commit.is_empty());
        let location = self.location(&instance.repo);
        let source = self.open_source(&location, revision, check).await;
        source.map_err(|error| match error.kind {
            ErrorKind::Unavailable => at_stage("source")(error.hint(UNREACHABLE_HINT)),
            _ => at_stage("source")(error),
        })
    }

    /// Opens a repository at a revision, and changes its source, which may fail.
    async fn open_source(
        &self,
        location: &str,
        revision: Option<&str>,
        change: impl FnOnce(Source) -> Result<Source, SandboxError> + Send + 'static,
    ) -> Result<Source, SandboxError> {
        let (location, revision) = (location.to_owned(), revision.map(str::to_owned));
        let (cache, open) = (self.cache.clone(), self.open.clone());
        let opened = tokio::task::spawn_blocking(move || {
            change(repository::open(&location, revision.as_deref(), &cache, &open)?.source()?)
        });
        opened.await?
    }

    /// Builds the environment of the old code with changed files, if they must be installed.
    pub(super) async fn environment_with(
        &self,
        instance: &Instance,
        files: &Files,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<Environment, GradingFailure> {
        let source = self.source(instance).await?;
        let patched = source.with_files(files, &self.cache);
        let patched = patched.map_err(at_stage("source"))?;
        self.environment(&instance.instance_id, &patched, progress)
            .await
    }

    /// Builds an environment. `id` is displayed, and selects a ready image.
    async fn environment(
        &self,
        id: &str,
        source: &Source,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<Environment, GradingFailure> {
        let failed = at_stage("build");
        let overrides = self.overrides(id).map_err(&failed)?;
        let (recipe, origin) = recipe::find(source, &overrides).map_err(&failed)?;
        let report = |event: BuildEvent| {
            let step = match event {
                BuildEvent::Waiting => "another worker is building it".to_owned(),
                BuildEvent::Started { step } => step,
                BuildEvent::Finished { .. } => return,
            };
            progress(Step::Building {
                instance: id.to_owned(),
                step,
            });
        };
        let note = recipe::image_left_out(source, &overrides).map_err(&failed)?;
        let (backend, build) = (self.backend.as_ref(), &self.build);
        let prepared =
            environment::prepare(backend, source, &recipe, &origin, build, &report).await;
        let mut environment = prepared.map_err(&failed)?;
        environment.notes.extend(note);
        Ok(environment)
    }
}

fn apply_golden(
    instance: &Instance,
    tree: &Tree,
    what: &str,
    patch: &str,
) -> Result<AppliedPatch, GradingFailure> {
    if patch.trim().is_empty() {
        return Ok(AppliedPatch::default());
    }
    let applied = repository::apply(tree, &Files::new(), patch).map_err(at_stage("source"))?;
    applied.map_err(|why| {
        let commit = &instance.base_commit;
        let cause = format!("the golden {what} does not apply to {commit}: {why}");
        Box::new(Infrastructure::new("source", cause))
    })
}

/// Returns the old version of the fixed files; files that the fix adds are omitted.
fn before(tree: &Tree, fix: &Files) -> Result<Files, SandboxError> {
    let old_files = fix.keys().filter_map(|path| {
        let file = tree.file(path).transpose()?;
        Some(file.map(|file| (path.clone(), Some(file))))
    });
    old_files.collect()
}

/// Returns whether a change of the file requires that the new code is installed again.
pub(super) fn requires_reinstallation(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let compiled = [".pyx", ".pxd", ".c", ".h", ".cpp", ".hpp", ".f", ".f90"];
    let is_top = !path.contains('/');
    (is_top
        && matches!(
            name,
            "setup.py" | "setup.cfg" | "pyproject.toml" | "MANIFEST.in"
        ))
        || (is_top && name.starts_with("requirements") && name.ends_with(".txt"))
        || name == "setup_package.py"
        || compiled.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests;
