//! Installation of one project: the plain command, then workarounds until one succeeds.

use super::build::Build;
use super::build_isolation::Unisolated;
use super::build_sandbox::BuildSandbox;
use super::editable;
use super::install_targets::{InstallTarget, folder_of, install_targets, without_extras};
use super::metadata::Metadata;
use super::scm_version::lacks_version;
use super::steps::{StepOutput, Steps};
use crate::recipe::build_without_extensions;
use crate::sandbox::{Command, Result};

pub(super) const STEP: &str = "install the package";

/// One command to install, with everything that its workarounds need.
pub(super) struct Attempt<'a> {
    pub build: &'a Build<'a>,
    pub builder: &'a BuildSandbox,
    pub steps: Steps<'a>,
    pub install: &'a [String],
    /// Projects that are never built in isolation.
    pub unisolated: &'a Unisolated,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        build: &'a Build<'a>,
        builder: &'a BuildSandbox,
        install: &'a [String],
        unisolated: &'a Unisolated,
    ) -> Attempt<'a> {
        Attempt {
            build,
            builder,
            steps: build.steps(builder),
            install,
            unisolated,
        }
    }

    /// Runs the plain command.
    pub(super) async fn run(&self) -> Result<StepOutput> {
        self.run_with(self.install, true, |_| {}).await
    }

    /// Runs the command with other arguments or variables. `general` says whether the version is also passed in
    /// variables that reach other packages.
    async fn run_with(
        &self,
        install: &[String],
        general: bool,
        change: impl FnOnce(&mut Command),
    ) -> Result<StepOutput> {
        let mut command = self.build.install_command(self.builder, install);
        self.build.ask_for_path(self.builder, &mut command).await?;
        command.argv.extend(self.unisolated.arguments());
        command
            .env
            .extend(self.build.plan.version.variables(general));
        change(&mut command);
        self.steps.attempt(STEP, &command).await
    }

    /// Completes an installation that succeeded with the plain command. Returns notes.
    pub(super) async fn finish(&self) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for target in self.targets() {
            notes.extend(self.finish_target(&target.arguments, true).await?);
        }
        Ok(notes)
    }

    async fn finish_target(&self, install: &[String], general: bool) -> Result<Vec<String>> {
        let (build, builder) = (self.build, self.builder);
        build.keep_importable(builder, install, general).await?;
        build.install_test_extras(builder, install).await
    }

    fn targets(&self) -> Vec<InstallTarget> {
        let targets = install_targets(self.install);
        match targets.is_empty() {
            true => vec![InstallTarget {
                folder: String::new(),
                extras: Vec::new(),
                arguments: self.install.to_vec(),
            }],
            false => targets,
        }
    }

    /// Installs the project, and tries workarounds if that fails. Returns notes.
    ///
    /// The workarounds cover:
    ///
    /// - a version variable that was meant for another package
    /// - build tools without support for editable installs
    /// - metadata that uv cannot read
    ///
    /// The others are only for a guessed recipe:
    ///
    /// - a version that only a git repository gives
    /// - build requirements that the project does not declare
    /// - extensions that do not compile
    /// - extras that are not available
    /// - a build that fails for any other reason: see [`Build::install_without_build`]
    pub(super) async fn install(&self) -> Result<Vec<String>> {
        let (build, builder, steps, install) = (self.build, self.builder, self.steps, self.install);
        let mut general = true;
        let mut printed = self.run().await?;
        let mismatch = printed.text.contains("does not match given version");
        if printed.code != 0 && mismatch && !build.plan.version.variables.is_empty() {
            general = false;
            printed = self.run_with(install, general, |_| {}).await?;
        }
        if printed.code == 0 {
            return self.finish_target(install, general).await;
        }
        let refused =
            printed.text.contains("build_editable") && printed.text.contains("has no attribute");
        if refused && let Some(at) = editable::position(install) {
            build.link(builder, install, at).await?;
            return Ok(Vec::new());
        }
        if printed.text.contains("Failed to parse: pyproject.toml")
            || printed.text.contains("Failed to parse metadata")
        {
            return build.install_by_pip(builder, install, &printed).await;
        }
        if !build.may_guess() {
            return Err(steps.failed(STEP, &printed));
        }
        self.work_around(printed, general).await
    }

    async fn work_around(&self, printed: StepOutput, general: bool) -> Result<Vec<String>> {
        let (build, builder, steps, install) = (self.build, self.builder, self.steps, self.install);
        let mut tried = Vec::new();
        if lacks_version(&printed.text) {
            tried.push("with a git repository of one commit".to_owned());
            if self.run_in_git(general).await?.code == 0 {
                return self.finish_target(install, general).await;
            }
        }
        if let Some(notes) = self
            .without_isolation(&printed, general, &mut tried)
            .await?
        {
            return Ok(notes);
        }
        // A pin of the package itself may suit an older Python.
        if let Some(older) = build.older_python(builder, &printed).await? {
            return Err(build.try_older_python(older, steps.failed(STEP, &printed)));
        }
        if let Some(variable) = build_without_extensions(&build.source.tree()?)? {
            let set = |command: &mut Command| {
                command.env.insert(variable.clone(), "1".to_owned());
            };
            if self.run_with(install, general, set).await?.code == 0 {
                return Ok(vec![format!(
                    "the extensions do not compile here: the package was built without them ({variable}=1)"
                )]);
            }
            tried.push(format!("without extensions ({variable}=1)"));
        }
        let (bare, extras) = without_extras(install);
        if !extras.is_empty() {
            tried.push(format!("without the extras {}", extras.join(", ")));
            if self.run_with(&bare, general, |_| {}).await?.code == 0 {
                build.keep_importable(builder, &bare, general).await?;
                let metadata = Metadata::read(build, builder, &folder_of(install)).await?;
                let lines = metadata.extra_requirements(&extras);
                return build.install_one_by_one(builder, &lines).await;
            }
        }
        let targets = install_targets(install);
        if let [target] = targets.as_slice()
            && let Some(notes) = build
                .install_without_build(builder, target, &printed)
                .await?
        {
            return Ok(notes);
        }
        let mut error = steps.failed(STEP, &printed);
        if !tried.is_empty() {
            let tried = tried.join("; ");
            error.message.push_str(&format!("\n  also tried: {tried}"));
        }
        Err(error)
    }

    /// Runs the command in a temporary git repository, for tools that accept a version only from git.
    async fn run_in_git(&self, general: bool) -> Result<StepOutput> {
        let (build, steps) = (self.build, self.steps);
        if build.recipe.git {
            return self.run_with(self.install, general, |_| {}).await;
        }
        build
            .make_git(&steps, Some(build.plan.version.tag()))
            .await?;
        let printed = self.run_with(self.install, general, |_| {}).await?;
        steps
            .shell("remove the git repository", "rm -rf .git")
            .await?;
        Ok(printed)
    }

    /// Runs the command with build requirements that are installed in the environment itself. Returns notes if that
    /// succeeds, and `None` if it does not help.
    async fn without_isolation(
        &self,
        printed: &StepOutput,
        general: bool,
        tried: &mut Vec<String>,
    ) -> Result<Option<Vec<String>>> {
        let targets = self.targets();
        let found = (self.build).unisolated_after_failure(self.builder, &targets, printed);
        let Some(more) = found.await? else {
            return Ok(None);
        };
        tried.push("without build isolation".to_owned());
        let add = |command: &mut Command| command.argv.extend(more.arguments());
        let again = self.run_with(self.install, general, add).await?;
        if again.code == 0 {
            return Ok(Some(self.finish_target(self.install, general).await?));
        }
        Ok(None)
    }
}
