//! Builds without isolation: the build requirements are installed in the environment itself.
//!
//! Editable installs by meson-python always need that, because they rebuild at import, with the tools of the build.
//! Other projects need it if they use packages at build time that they do not declare.

use std::collections::BTreeSet;

use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::install_targets::InstallTarget;
use super::missing::{WITH_PKG_RESOURCES, lacks_pkg_resources};
use super::requirements::name;
use super::steps::{StepOutput, Steps};
use crate::pattern::Pattern;
use crate::recipe::ProjectMetadata;
use crate::sandbox::Result;

/// Tools that build backends run as programs, and that isolated builds would get from the backend.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("meson-python", &["meson", "ninja"]),
    ("scikit-build-core", &["cmake", "ninja"]),
    ("scikit-build", &["cmake", "ninja"]),
];

/// Packages that setup.py files import without declaring them.
const UNDECLARED: &str = "numpy cython pybind11 cffi pkgconfig setuptools_scm";

/// Signs that a build failed, in the output of uv.
static FAILED_BUILD: Pattern =
    Pattern::new("Failed to (?:download and )?build|build backend returned an error");

/// Packages to build without isolation.
#[derive(Debug, Default)]
pub(super) struct Unisolated {
    packages: BTreeSet<String>,
    /// Whether no package is isolated, because uv does not know the name of one.
    all: bool,
}

impl Unisolated {
    /// Returns the arguments for `uv pip install`.
    pub(super) fn arguments(&self) -> Vec<String> {
        if self.all {
            return vec!["--no-build-isolation".to_owned()];
        }
        let packages = self.packages.iter();
        packages
            .map(|package| format!("--no-build-isolation-package={package}"))
            .collect()
    }

    fn add(&mut self, metadata: &ProjectMetadata) {
        match &metadata.name {
            Some(name) if metadata.has_static_name => {
                self.packages.insert(name.clone());
            }
            // uv cannot select a package whose name only the build tells.
            _ => self.all = true,
        }
    }
}

impl Build<'_> {
    /// Installs the build requirements of the projects whose editable installs work only without isolation.
    pub(super) async fn prepare_unisolated(
        &self,
        builder: &BuildSandbox,
        targets: &[InstallTarget],
    ) -> Result<Unisolated> {
        let tree = self.source.tree()?;
        let mut found = Unisolated::default();
        let mut requirements = Vec::new();
        let mut arguments = self.recipe.install.iter().flatten();
        let is_chosen = arguments.any(|argument| argument.contains("build-isolation"));
        for target in targets.iter().filter(|_| !is_chosen) {
            let metadata = ProjectMetadata::read(&tree.subtree(&target.folder))?;
            if metadata.is_built_by_meson() {
                requirements.extend(build_requirements(&metadata, ""));
                found.add(&metadata);
            }
        }
        if requirements.is_empty() {
            return Ok(Unisolated::default());
        }
        let install = self.install_build_requirements(builder, requirements);
        Ok(match install.await? {
            true => found,
            false => Unisolated::default(),
        })
    }

    /// Brings the build folders of meson-python up to date after the code was unpacked again. Otherwise every import in
    /// a new sandbox would first rebuild what seems to have changed.
    pub(super) async fn refresh_builds(
        &self,
        steps: &Steps<'_>,
        targets: &[InstallTarget],
    ) -> Result<()> {
        let tree = self.source.tree()?;
        for target in targets {
            let metadata = ProjectMetadata::read(&tree.subtree(&target.folder))?;
            if metadata.is_built_by_meson() {
                let place = target.place();
                let script = format!(
                    "for folder in '{place}'/build/*/; do [ ! -f \"$folder/build.ninja\" ] || ninja -C \"$folder\"; done"
                );
                steps.shell("refresh the build", &script).await?;
            }
        }
        Ok(())
    }

    /// Installs the build requirements of packages that failed to build. Returns `None` if no build failed, or if the
    /// requirements cannot be installed.
    pub(super) async fn unisolated_after_failure(
        &self,
        builder: &BuildSandbox,
        targets: &[InstallTarget],
        printed: &StepOutput,
    ) -> Result<Option<Unisolated>> {
        let is_layout = printed.text.contains("Multiple top-level");
        if is_layout || !FAILED_BUILD.is_match(&printed.text) {
            return Ok(None);
        }
        let failed = failed_packages(&printed.text);
        let tree = self.source.tree()?;
        let mut found = Unisolated::default();
        let mut requirements = Vec::new();
        for target in targets {
            let tree = tree.subtree(&target.folder);
            let metadata = ProjectMetadata::read(&tree)?;
            let own = metadata.name.as_deref().map(name);
            // uv names a project without a declared name by its path.
            if own.is_some_and(|own| !failed.is_empty() && !failed.contains(&own)) {
                continue;
            }
            let setup_py = tree.text("setup.py")?.unwrap_or_default();
            requirements.extend(build_requirements(&metadata, &setup_py));
            found.add(&metadata);
        }
        if requirements.is_empty() {
            // A dependency failed. Old ones need the packages of their time.
            requirements = ["setuptools", "wheel", "numpy", "cython"]
                .map(str::to_owned)
                .to_vec();
            found.packages.extend(failed);
        }
        if lacks_pkg_resources(&printed.text) {
            requirements.push(WITH_PKG_RESOURCES.to_owned());
        }
        let ready = self
            .install_build_requirements(builder, requirements)
            .await?;
        Ok(ready.then_some(found))
    }

    async fn install_build_requirements(
        &self,
        builder: &BuildSandbox,
        mut lines: Vec<String>,
    ) -> Result<bool> {
        let mut seen = BTreeSet::new();
        lines.retain(|line| seen.insert(line.clone()));
        // Limits such as `setuptools<70` for old code hold here too.
        let mut limits = self.plan.requirements.build_constraints.clone();
        limits.retain(|limit| lines.iter().any(|line| name(line) == name(limit)));
        lines.append(&mut limits);
        let step = "install the build requirements";
        Ok(self.try_install(builder, step, &lines).await?.code == 0)
    }
}

/// Returns what a build needs: declared requirements, programs, and packages that setup.py imports.
fn build_requirements(metadata: &ProjectMetadata, setup_py: &str) -> Vec<String> {
    let mut lines = metadata.build_requires.clone();
    if metadata.build_backend.starts_with("setuptools") {
        lines.extend(["setuptools", "wheel"].map(str::to_owned));
    }
    for (backend, programs) in PROGRAMS {
        let mut declared = metadata.build_requires.iter();
        if declared.any(|line| name(line) == backend) {
            lines.extend(programs.iter().map(|program| (*program).to_owned()));
        }
    }
    let lower = setup_py.to_lowercase();
    for package in UNDECLARED.split(' ') {
        let is_listed = lines.iter().any(|line| name(line) == name(package));
        if lower.contains(package) && !is_listed {
            lines.push(package.to_owned());
        }
    }
    lines
}

static FAILED: Pattern = Pattern::new(
    r"Failed to (?:download and )?build:? `?([A-Za-z0-9][A-Za-z0-9._-]*?)(?:==| @|\[|`|$)",
);

/// Returns the normalized names of packages whose build failed, according to uv.
pub(super) fn failed_packages(output: &str) -> BTreeSet<String> {
    let failed = FAILED.captures_iter(output);
    failed.map(|failed| name(&failed[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_packages_are_read() {
        let text = "  × Failed to build `my.mod @ file:///testbed`\n  ├─▶ The build backend returned an error\n\
                    Failed to download and build `greenlet==3.0.1`\n";
        assert_eq!(
            failed_packages(text).into_iter().collect::<Vec<_>>(),
            ["greenlet", "my-mod"]
        );
        assert!(failed_packages("× No solution found when resolving dependencies:").is_empty());
    }

    #[test]
    fn undeclared_build_packages_are_added() {
        let metadata = ProjectMetadata {
            build_backend: "setuptools.build_meta".to_owned(),
            build_requires: vec!["Cython>=3".to_owned()],
            ..ProjectMetadata::default()
        };
        let lines = build_requirements(
            &metadata,
            "import numpy\nfrom Cython.Build import cythonize",
        );
        assert_eq!(lines, ["Cython>=3", "setuptools", "wheel", "numpy"]);
    }
}
