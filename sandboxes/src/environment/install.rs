//! `uv pip install`, with all that makes old packages installable.

use super::build_sandbox::BuildSandbox;
use super::editable;
use super::layers::Build;
use super::steps::{Steps, text};
use crate::sandbox::{Command, Result};

const LINK: &str = include_str!("link.py");

impl Build<'_> {
    /// `uv pip install` of the package, and two ways out: a version that was meant for another package, and build
    /// tools that know no editable installs.
    pub(super) async fn install_package(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
        install: &[String],
    ) -> Result<()> {
        let step = "install the package";
        let attempt = async |general| {
            let mut command = self.install_command(builder, install);
            self.plan.editable.ask(builder, &mut command).await?;
            command.env.extend(self.plan.version.variables(general));
            steps.attempt(step, &command).await
        };
        let mut printed = attempt(true).await?;
        let mismatch = printed.text.contains("does not match given version");
        let mut general = true;
        if printed.code != 0 && mismatch && self.plan.version.variable.is_some() {
            general = false;
            printed = attempt(general).await?;
        }
        let refused =
            printed.text.contains("build_editable") && printed.text.contains("has no attribute");
        if printed.code != 0
            && refused
            && let Some(at) = editable::position(install)
        {
            return self.link(builder, steps, install, at).await;
        }
        if printed.code != 0 {
            return Err(steps.failed(step, &printed));
        }
        if self.plan.editable.by_setuptools {
            self.keep_importable(builder, steps, install, general)
                .await?;
        }
        Ok(())
    }

    /// A package that lies elsewhere than its name says cannot be found by a path: then setuptools has its way.
    /// `general` is how the version was handed over when it was installed.
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
            .upload(&script, editable::LOST.as_bytes(), 0o644)
            .await?;
        let command = Command::new([
            builder.python.clone(),
            text(&script),
            text(&builder.paths.workspace),
        ]);
        let lost = steps.run("look for the package", &command).await?;
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

    /// An editable install without the build tool's help: installed as it is, then turned into a link.
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
        steps.run("install the package as it is", &command).await?;
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

    /// uv compiles bytecode for Python 3.7 and later; what lies in an image is not ours to compile.
    pub(super) fn uv_compiles(&self) -> bool {
        self.recipe.image.is_none() && self.recipe.python.as_deref() != Some("3.6")
    }

    /// Installs requirement lines, by way of a file.
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
