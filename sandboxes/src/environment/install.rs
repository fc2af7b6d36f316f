//! `uv pip install` of the package, with the workarounds that old packages need.

use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::editable;
use super::install_attempt::{Attempt, STEP};
use super::install_targets::{InstallTarget, folder_of, install_targets, without_extras};
use super::metadata::Metadata;
use super::omissions::{omission, reason};
use super::steps::{StepOutput, text};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe::{normalized_name, test_extras};
use crate::sandbox::{Command, Result};

const LINK: &str = include_str!("link.py");

impl Build<'_> {
    /// Installs the projects of the repository with `uv pip install`. If they cannot be installed together, each is
    /// installed on its own (only for a guessed recipe). Returns notes.
    pub(super) async fn install_package(
        &self,
        builder: &BuildSandbox,
        install: &[String],
    ) -> Result<Vec<String>> {
        let targets = install_targets(install);
        let prepared = self.prepare_unisolated(builder, &targets).await?;
        if targets.len() < 2 || !self.may_guess() {
            let attempt = Attempt::new(self, builder, install, &prepared);
            return attempt.install().await;
        }
        let together = Attempt::new(self, builder, install, &prepared);
        let printed = together.run().await?;
        if printed.code == 0 {
            return together.finish().await;
        }
        let mut notes = Vec::new();
        let mut errors = Vec::new();
        for target in &targets {
            let attempt = Attempt::new(self, builder, &target.arguments, &prepared);
            match attempt.install().await {
                Ok(more) => notes.extend(more),
                Err(error) if error.kind == ErrorKind::Build => {
                    let (place, reason) = (target.place(), reason(&error.message));
                    notes.push(format!(
                        "the project {place} could not be installed and was omitted{reason}"
                    ));
                    errors.push(error);
                }
                Err(error) => return Err(error),
            }
        }
        match errors.len() == targets.len() {
            true => Err(errors.swap_remove(0)),
            false => Ok(notes),
        }
    }

    /// Returns whether parts of the recipe may be replaced if they do not work.
    pub(super) fn may_guess(&self) -> bool {
        self.plan.guess.install && self.settings.keep_going
    }

    /// Installs test extras that only the build reveals (dynamic metadata), if the recipe found none.
    pub(super) async fn install_test_extras(
        &self,
        builder: &BuildSandbox,
        install: &[String],
    ) -> Result<Vec<String>> {
        if !self.plan.guess.install || !without_extras(install).1.is_empty() {
            return Ok(Vec::new());
        }
        let metadata = Metadata::read(self, builder, &folder_of(install)).await?;
        let lines = metadata.extra_requirements(&test_extras(&metadata.extras));
        self.install_one_by_one(builder, &lines).await
    }

    /// Checks that the installed projects have the extras that the user names. uv only warns about unknown ones.
    pub(super) async fn check_extras(
        &self,
        builder: &BuildSandbox,
        targets: &[InstallTarget],
    ) -> Result<()> {
        for target in targets {
            let mut stated = target.extras.clone();
            stated.retain(|extra| self.recipe.stated.extras.contains(extra));
            if stated.is_empty() {
                continue;
            }
            let metadata = Metadata::read(self, builder, &target.folder).await?;
            if let Some(error) = unknown_extra(&metadata, &stated) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Installs all lines at once or, if that fails, one by one. Returns a note for each line that cannot be installed.
    pub(super) async fn install_one_by_one(
        &self,
        builder: &BuildSandbox,
        lines: &[String],
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        let step = "install the test requirements";
        if lines.is_empty() || self.try_install(builder, step, lines).await?.code == 0 {
            return Ok(notes);
        }
        for line in lines {
            let (step, line_alone) = (format!("install {line}"), std::slice::from_ref(line));
            let printed = self.try_install(builder, &step, line_alone).await?;
            if printed.code != 0 {
                notes.push(omission(line, &printed));
            }
        }
        Ok(notes)
    }

    /// Installs a package with pip if its metadata is valid for pip but not for uv, for example with a duplicate extra.
    ///
    /// pip builds only the package. uv installs its requirements, as of the right date.
    pub(super) async fn install_by_pip(
        &self,
        builder: &BuildSandbox,
        install: &[String],
        refused: &StepOutput,
    ) -> Result<Vec<String>> {
        let steps = self.steps(builder);
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
        let metadata = Metadata::read(self, builder, &folder_of(install)).await?;
        let base = metadata.base();
        if !base.is_empty() {
            let install = self.install(builder, &base).await?;
            steps
                .run("install the requirements of the package", &install)
                .await?;
        }
        let extras = match extras.is_empty() && self.plan.guess.install {
            true => test_extras(&metadata.extras),
            false => extras,
        };
        let mut notes =
            vec!["uv cannot read the package's metadata: it was installed with pip".to_owned()];
        let lines = metadata.extra_requirements(&extras);
        notes.extend(self.install_one_by_one(builder, &lines).await?);
        Ok(notes)
    }

    /// Reinstalls the package with setuptools' import hook if a path does not make it importable.
    ///
    /// That happens if a package's folder does not match its name. `general` says how the version was passed at the
    /// first installation.
    pub(super) async fn keep_importable(
        &self,
        builder: &BuildSandbox,
        install: &[String],
        general: bool,
    ) -> Result<()> {
        if !self.plan.editable.by_setuptools {
            return Ok(());
        }
        let steps = self.steps(builder);
        let (code, folder) = (editable::FIND_MISSING_SCRIPT, folder_of(install));
        let check = builder.script("editable.py", code, &folder).await?;
        let lost = steps
            .run("check the imports of the package", &check)
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
    pub(super) async fn ask_for_path(
        &self,
        builder: &BuildSandbox,
        command: &mut Command,
    ) -> Result<()> {
        let editable = &self.plan.editable;
        if !editable.by_setuptools {
            return Ok(());
        }
        let content = editable::CONFIGURATION.as_bytes();
        let file = builder.upload("editable.cfg", content).await?;
        command.env.insert("DIST_EXTRA_CONFIG".to_owned(), file);
        if let Some(name) = &editable.name {
            command.argv.push(format!(
                "--config-settings-package={name}:editable_mode=compat"
            ));
        }
        Ok(())
    }

    /// Emulates an editable install without the build tool: installs the package, then replaces the copy by a link.
    pub(super) async fn link(
        &self,
        builder: &BuildSandbox,
        install: &[String],
        editable: usize,
    ) -> Result<()> {
        let steps = self.steps(builder);
        let mut plain = install.to_vec();
        plain.remove(editable);
        let mut command = self.install_command(builder, &plain);
        command.env.extend(self.plan.version.variables(true));
        steps.run("install a copy of the package", &command).await?;
        let folder = folder_of(install);
        let link = builder.script("link.py", LINK, &folder).await?;
        steps.run("link the package", &link).await?;
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
        let file = |name: &str| text(&builder.tools.join(name));
        let requirements = &self.plan.requirements;
        if !requirements.build_constraints.is_empty() {
            arguments.push(format!("--build-constraints={}", file("build.txt")));
        }
        if !requirements.constraints.is_empty() {
            arguments.push(format!("--constraints={}", file("constraints.txt")));
        }
        arguments.extend(what.iter().cloned());
        builder.uv(arguments)
    }

    /// Returns whether uv compiles bytecode, which needs Python 3.7 or later. Packages of an image stay as they are.
    pub(super) fn uv_compiles(&self) -> bool {
        self.recipe.image.is_none() && self.recipe.python.as_deref() != Some("3.6")
    }

    /// Tries to install requirement lines as a step.
    pub(super) async fn try_install(
        &self,
        builder: &BuildSandbox,
        step: &str,
        lines: &[String],
    ) -> Result<StepOutput> {
        let install = self.install(builder, lines).await?;
        self.steps(builder).attempt(step, &install).await
    }

    /// Returns the command that installs requirement lines from a file, which it uploads.
    async fn install(&self, builder: &BuildSandbox, lines: &[String]) -> Result<Command> {
        let content = lines.join("\n") + "\n";
        self.log
            .line(&format!("-- requirements.txt\n{}", content.trim_end()));
        let content = content.as_bytes();
        let file = builder.upload("requirements.txt", content).await?;
        Ok(self.install_command(builder, &["-r".to_owned(), file]))
    }
}

/// Returns the error for the first extra that an installed project lacks.
fn unknown_extra(metadata: &Metadata, stated: &[String]) -> Option<SandboxError> {
    let name = metadata.name.as_ref()?;
    let extras = &metadata.extras;
    let is_unknown = |extra: &&String| {
        let mut names = extras.iter().map(|name| normalized_name(name));
        !names.any(|name| name == normalized_name(extra))
    };
    let unknown = stated.iter().find(is_unknown)?;
    let similarity = |extra: &String| strsim::jaro_winkler(extra, unknown);
    let nearest = extras
        .iter()
        .max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let hint = match nearest {
        Some(nearest) if similarity(nearest) > 0.7 => format!("did you mean `{nearest}`?"),
        Some(_) => format!("{name} has the extras {}", extras.join(", ")),
        None => format!("leave it out: {name} has no extras"),
    };
    let message = format!("{name} has no extra `{unknown}`");
    Some(SandboxError::input(message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_extras_suggest_similar_ones() {
        let hint = |extras: &[&str], stated: &str| {
            let metadata = Metadata {
                name: Some("shop".to_owned()),
                extras: extras.iter().map(|&extra| extra.to_owned()).collect(),
                ..Metadata::default()
            };
            unknown_extra(&metadata, &[stated.to_owned()])?.hint
        };
        assert_eq!(hint(&["Web_UI", "docs"], "web-ui"), None);
        let similar = hint(&["docs", "socks"], "sock");
        assert_eq!(similar.as_deref(), Some("did you mean `socks`?"));
        let other = hint(&["docs", "test"], "zzz");
        assert_eq!(other.as_deref(), Some("shop has the extras docs, test"));
        assert!(hint(&[], "zzz").is_some());
        assert!(unknown_extra(&Metadata::default(), &["zzz".to_owned()]).is_none());
    }
}
