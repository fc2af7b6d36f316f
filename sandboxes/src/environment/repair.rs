//! Installation of packages that tests need into an environment that is already saved.

use std::collections::BTreeSet;

use super::Environment;
use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::missing::{self, Missing};
use super::omissions::reason;
use super::smoke_test::SmokeTestReport;
use super::uninstalled::is_own_module;
use crate::recipe::{self, normalized_name};
use crate::repository::Tree;
use crate::sandbox::{Result, SandboxSource};

impl Build<'_> {
    /// Returns the packages that a report asks for, except installed ones and those `tried` before. Adds them to
    /// `tried`.
    pub(super) fn missing(
        &self,
        report: &SmokeTestReport,
        packages: &[String],
        tree: &Tree,
        tried: &mut BTreeSet<String>,
    ) -> Result<Vec<Missing>> {
        let named = recipe::named_requirements(tree)?;
        let own = |module: &str| is_own_module(tree, module);
        let mut missing = missing::find(report, &named, &own);
        // A published copy of the code under test must never be installed.
        let projects = self.own_names()?;
        missing.retain(|missing| !projects.contains(&missing.package));
        missing.retain(|missing| {
            let there = packages.iter().filter_map(|line| line.split("==").next());
            let mut there = there.map(normalized_name);
            missing.replaces_installed || !there.any(|name| name == missing.package)
        });
        missing.retain(|missing| tried.insert(missing.requirement.clone()));
        Ok(missing)
    }

    /// Installs the missing packages and returns the bytes that they add.
    ///
    /// A note reports each package that cannot be installed, because the test that needs it reports it only when it
    /// runs.
    pub(super) async fn install_missing(
        &self,
        environment: &mut Environment,
        missing: &[Missing],
    ) -> Result<u64> {
        let builder = self
            .build_sandbox(SandboxSource::Saved(environment.saved.clone()))
            .await?;
        let done = self.install_each(&builder, environment, missing).await;
        self.finish(builder, done, &environment.saved).await?;
        self.backend.saved_bytes(&environment.saved).await
    }

    async fn install_each(
        &self,
        builder: &BuildSandbox,
        environment: &mut Environment,
        missing: &[Missing],
    ) -> Result<()> {
        for missing in missing {
            let (requirement, asked_by) = (&missing.requirement, &missing.required_by);
            let (step, lines) = (
                format!("install {requirement}"),
                std::slice::from_ref(requirement),
            );
            let installed = self.try_install(builder, &step, lines).await?;
            environment.notes.push(match installed.code {
                0 => {
                    environment.recipe.requirements.push(requirement.clone());
                    format!("installed {requirement}: {asked_by} needs it")
                }
                _ => format!(
                    "{asked_by} needs {requirement}, which could not be installed{}",
                    reason(&installed.text)
                ),
            });
        }
        environment.packages = builder.packages().await?;
        Ok(())
    }
}
