//! `uv pip install` of the package, with the workarounds that old packages need.

use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::editable;
use super::metadata::Metadata;
use super::steps::{StepOutput, Steps, text};
use crate::recipe::{build_without_extensions, test_extras};
use crate::sandbox::{Command, Result};

const LINK: &str = include_str!("link.py");
const STEP: &str = "install the package";

impl Build<'_> {
    /// Installs the package with `uv pip install`, and tries workarounds if that fails. Returns notes.
    ///
    /// The workarounds cover:
    ///
    /// - a version variable that was meant for another package
    /// - build tools without support for editable installs
    /// - metadata that uv cannot read
    /// - extensions that do not compile, and extras that are not available (only for a guessed recipe)
    pub(super) async fn install_package(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        let attempt = async |install: &[String], general| {
            let mut command = self.install_command(builder, install);
            self.ask_for_path(builder, &mut command).await?;
            command.env.extend(self.plan.version.variables(general));
            steps.attempt(STEP, &command).await
        };
        let mut general = true;
        let mut printed = attempt(install, general).await?;
        let mismatch = printed.text.contains("does not match given version");
        if printed.code != 0 && mismatch && self.plan.version.variable.is_some() {
            general = false;
            printed = attempt(install, general).await?;
        }
        if printed.code == 0 {
            self.after_package(builder, steps, install, general).await?;
            notes.extend(self.install_test_extras(builder, steps, install).await?);
            return Ok(notes);
        }
        let refused =
            printed.text.contains("build_editable") && printed.text.contains("has no attribute");
        if refused && let Some(at) = editable::position(install) {
            self.link(builder, steps, install, at).await?;
            return Ok(notes);
        }
        if printed.text.contains("Failed to parse: pyproject.toml")
            || printed.text.contains("Failed to parse metadata")
        {
            return self.install_by_pip(builder, steps, install, &printed).await;
        }
        if !(self.plan.guessed && self.settings.keep_going) {
            return Err(steps.failed(STEP, &printed));
        }
        let mut tried = Vec::new();
        if let Some(variable) = build_without_extensions(&self.source.tree()?)? {
            let mut command = self.install_command(builder, install);
            self.ask_for_path(builder, &mut command).await?;
            command.env.extend(self.plan.version.variables(general));
            command.env.insert(variable.clone(), "1".to_owned());
            if steps.attempt(STEP, &command).await?.code == 0 {
                notes.push(format!(
                    "the extensions do not compile here: the package was built without them ({variable}=1)"
                ));
                return Ok(notes);
            }
            tried.push(format!("without extensions ({variable}=1)"));
        }
        let (bare, extras) = without_extras(install);
        if !extras.is_empty() {
            tried.push(format!("without the extras {}", extras.join(", ")));
        }
        if !extras.is_empty() && attempt(&bare, general).await?.code == 0 {
            self.after_package(builder, steps, &bare, general).await?;
            let metadata = Metadata::read(builder, steps).await?;
            let lines = metadata.extra_requirements(&extras);
            notes.extend(self.install_one_by_one(builder, steps, &lines).await?);
            return Ok(notes);
        }
        let mut error = steps.failed(STEP, &printed);
        if !tried.is_empty() {
            error
                .message
                .push_str(&format!("\n  also tried: {}", tried.join("; ")));
        }
        Err(error)
    }

    async fn after_package(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
        general: bool,
    ) -> Result<()> {
        if self.plan.editable.by_setuptools {
            self.keep_importable(builder, steps, install, general)
                .await?;
        }
        Ok(())
    }

    /// Installs test extras that only the build reveals (dynamic metadata), if the recipe found none.
    async fn install_test_extras(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
    ) -> Result<Vec<String>> {
        if !self.plan.guessed || !without_extras(install).1.is_empty() {
            return Ok(Vec::new());
        }
        let metadata = Metadata::read(builder, steps).await?;
        let lines = metadata.extra_requirements(&test_extras(&metadata.extras));
        self.install_one_by_one(builder, steps, &lines).await
    }

    /// Installs all lines at once or, if that fails, one by one. Returns a note for each line that cannot be installed.
    async fn install_one_by_one(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        lines: &[String],
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if lines.is_empty() {
            return Ok(notes);
        }
        let install = self.install(builder, lines).await?;
        if steps
            .attempt("install the test requirements", &install)
            .await?
            .code
            == 0
        {
            return Ok(notes);
        }
        for line in lines {
            let install = self.install(builder, std::slice::from_ref(line)).await?;
            if steps
                .attempt(&format!("install {line}"), &install)
                .await?
                .code
                != 0
            {
                notes.push(format!(
                    "requirement {line} could not be installed and was omitted"
                ));
            }
        }
        Ok(notes)
    }

    /// Installs a package with pip if its metadata is valid for pip but not for uv, for example with a duplicate extra.
    ///
    /// pip builds only the package. uv installs its requirements, as of the right date.
    async fn install_by_pip(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
        refused: &StepOutput,
    ) -> Result<Vec<String>> {
        let Some(at) = editable::position(install) else {
            return Err(steps.failed(STEP, refused));
        };
        let (bare, extras) = without_extras(install);
        let pip = self.install(builder, &["pip".to_owned()]).await?;
        steps.run("install pip", &pip).await?;
        let mut arguments = vec![builder.python.clone()];
        arguments.extend(["-m", "pip", "install", "--no-deps"].map(str::to_owned));
        arguments.extend(bare[at..].iter().cloned());
        let mut command = Command::new(arguments);
        command.env.extend(self.plan.version.variables(true));
        if !self.plan.requirements.build_constraints.is_empty() {
            let file = text(&builder.tools.join("build.txt"));
            command.env.insert("PIP_CONSTRAINT".to_owned(), file);
        }
        steps.run("install the package with pip", &command).await?;
        let metadata = Metadata::read(builder, steps).await?;
        let base = metadata.base();
        if !base.is_empty() {
            let install = self.install(builder, &base).await?;
            steps
                .run("install the requirements of the package", &install)
                .await?;
        }
        let extras = match extras.is_empty() && self.plan.guessed {
            true => test_extras(&metadata.extras),
            false => extras,
        };
        let mut notes =
            vec!["uv cannot read the package's metadata: it was installed with pip".to_owned()];
        let lines = metadata.extra_requirements(&extras);
        notes.extend(self.install_one_by_one(builder, steps, &lines).await?);
        Ok(notes)
    }

    /// Reinstalls the package with setuptools' import hook if a path does not make it importable.
    ///
    /// That happens if a package's folder does not match its name. `general` says how the version was passed at the
    /// first installation.
    async fn keep_importable(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
        general: bool,
    ) -> Result<()> {
        let script = builder.tools.join("editable.py");
        builder
            .sandbox
            .upload(&script, editable::FIND_MISSING_SCRIPT.as_bytes(), 0o644)
            .await?;
        let command = Command::new([
            builder.python.clone(),
            text(&script),
            text(&builder.paths.workspace),
        ]);
        let lost = steps
            .run("check the imports of the package", &command)
            .await?;
        if let Some(name) = lost.split_whitespace().next() {
            let mut command = self.install_command(builder, install);
            command.argv.push(format!("--reinstall-package={name}"));
            command.env.extend(self.plan.version.variables(general));
            steps
                .run("install the package with an import hook", &command)
                .await?;
        }
        Ok(())
    }

    /// Makes an install command request a path from setuptools instead of an import hook.
    async fn ask_for_path(&self, builder: &BuildSandbox, command: &mut Command) -> Result<()> {
        let editable = &self.plan.editable;
        if !editable.by_setuptools {
            return Ok(());
        }
        let file = builder.tools.join("editable.cfg");
        builder
            .sandbox
            .upload(&file, editable::CONFIGURATION.as_bytes(), 0o644)
            .await?;
        command
            .env
            .insert("DIST_EXTRA_CONFIG".to_owned(), text(&file));
        if let Some(name) = &editable.name {
            command.argv.push(format!(
                "--config-settings-package={name}:editable_mode=compat"
            ));
        }
        Ok(())
    }

    /// Emulates an editable install without the build tool: installs the package, then replaces the copy by a link.
    async fn link(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
        editable: usize,
    ) -> Result<()> {
        let mut plain = install.to_vec();
        plain.remove(editable);
        let mut command = self.install_command(builder, &plain);
        command.env.extend(self.plan.version.variables(true));
        steps.run("install a copy of the package", &command).await?;
        let script = builder.tools.join("link.py");
        builder
            .sandbox
            .upload(&script, LINK.as_bytes(), 0o644)
            .await?;
        let command = Command::new([
            builder.python.clone(),
            text(&script),
            text(&builder.paths.workspace),
        ]);
        steps.run("link the package", &command).await?;
        Ok(())
    }

    pub(super) fn install_command(&self, builder: &BuildSandbox, what: &[String]) -> Command {
        let mut arguments = ["pip", "install", "--python", &builder.python]
            .map(str::to_owned)
            .to_vec();
        if self.uv_compiles() {
            arguments.push("--compile-bytecode".to_owned());
        }
        if let Some(date) = &self.plan.date {
            arguments.push(format!("--exclude-newer={date}"));
            arguments.extend(self.plan.requirements.exempt.iter().cloned());
        }
        if self.recipe.prereleases {
            arguments.push("--prerelease=allow".to_owned());
        }
        if !self.plan.requirements.build_constraints.is_empty() {
            arguments.push(format!(
                "--build-constraints={}",
                text(&builder.tools.join("build.txt"))
            ));
        }
        if !self.plan.requirements.constraints.is_empty() {
            arguments.push(format!(
                "--constraints={}",
                text(&builder.tools.join("constraints.txt"))
            ));
        }
        arguments.extend(what.iter().cloned());
        builder.uv(arguments)
    }

    /// Returns whether uv compiles bytecode, which needs Python 3.7 or later. Packages of an image stay as they are.
    pub(super) fn uv_compiles(&self) -> bool {
        self.recipe.image.is_none() && self.recipe.python.as_deref() != Some("3.6")
    }

    /// Returns the command that installs requirement lines from a file, which it uploads.
    pub(super) async fn install(
        &self,
        builder: &BuildSandbox,
        lines: &[String],
    ) -> Result<Command> {
        let file = builder.tools.join("requirements.txt");
        let content = lines.join("\n") + "\n";
        self.log
            .line(&format!("-- requirements.txt\n{}", content.trim_end()));
        builder
            .sandbox
            .upload(&file, content.as_bytes(), 0o644)
            .await?;
        Ok(self.install_command(builder, &["-r".to_owned(), text(&file)]))
    }
}

/// Separates the extras: `-e .[test,doc]` becomes `-e .` and the two extras.
fn without_extras(install: &[String]) -> (Vec<String>, Vec<String>) {
    let mut extras = Vec::new();
    let mut bare = install.to_vec();
    for argument in &mut bare {
        if let Some(named) = argument
            .strip_prefix(".[")
            .and_then(|a| a.strip_suffix(']'))
        {
            extras.extend(named.split(',').map(|extra| extra.trim().to_owned()));
            *argument = ".".to_owned();
        }
    }
    (bare, extras)
}
