//! Projects that are made importable without a build: their dependencies are installed, a `.pth` file puts their
//! folders on the import path, and minimal metadata gives their name, version and entry points.

use serde::Serialize;

use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::install_targets::InstallTarget;
use super::requirements::name;
use super::steps::{StepOutput, text};
use crate::pattern::Pattern;
use crate::recipe::{ProjectMetadata, test_extras};
use crate::sandbox::{Command, Result};

const SCRIPT: &str = include_str!("without_build.py");

/// Signs that a compiler ran and failed. Then the code would lack its extensions, and the error is the better answer.
static COMPILER_SIGNS: Pattern = Pattern::new(concat!(
    "fatal error:|error: command '|compilation terminated|linker command failed|cargo rustc",
    "|CMake Error",
));

/// A request to `without_build.py`.
#[derive(Debug, Serialize)]
struct Request<'a> {
    /// Folder of the project, relative to the workspace.
    folder: &'a str,
    /// Metadata to write, or `None` for the import path alone.
    metadata: Option<&'a ProjectMetadata>,
    version: &'a str,
    /// Folders to import from, relative to the project.
    roots: &'a [String],
}

impl Build<'_> {
    /// Makes a project importable whose build failed. Returns `None` if that would not help: it has no code that works
    /// without a compiler, or no dependency can be installed.
    pub(super) async fn install_without_build(
        &self,
        builder: &BuildSandbox,
        target: &InstallTarget,
        printed: &StepOutput,
    ) -> Result<Option<Vec<String>>> {
        let tree = self.source.tree()?;
        let metadata = ProjectMetadata::read(&tree.subtree(&target.folder))?;
        if metadata.is_compiled() || COMPILER_SIGNS.is_match(&printed.text) {
            return Ok(None);
        }
        let mut extras = target.extras.clone();
        if extras.is_empty() {
            extras = test_extras(&metadata.extras.keys().cloned().collect::<Vec<_>>());
        }
        let mut lines = metadata.dependencies.clone();
        lines.extend(metadata.extra_requirements(&extras));
        let own = self.own_names()?;
        lines.retain(|line| !own.contains(&name(line)));
        let reason = last_line(&printed.text);
        let package = match target.folder.as_str() {
            "" => "the package".to_owned(),
            folder => format!("the package in {folder}"),
        };
        let mut notes = vec![format!(
            "{package} cannot be built ({reason}): its dependencies were installed, and its folders are on the import path"
        )];
        notes.extend(self.install_one_by_one(builder, &lines).await?);
        let roots = &metadata.import_roots;
        self.place_project(builder, &target.folder, Some(&metadata), roots)
            .await?;
        Ok(Some(notes))
    }

    /// Puts the projects that were not installed on the import path.
    pub(super) async fn place_projects(
        &self,
        builder: &BuildSandbox,
        installed: &[InstallTarget],
    ) -> Result<()> {
        for folder in &self.recipe.projects {
            if !installed.iter().any(|target| target.folder == *folder) {
                let tree = self.source.tree()?.subtree(folder);
                let roots = ProjectMetadata::read(&tree)?.import_roots;
                self.place_project(builder, folder, None, &roots).await?;
            }
        }
        Ok(())
    }

    async fn place_project(
        &self,
        builder: &BuildSandbox,
        folder: &str,
        metadata: Option<&ProjectMetadata>,
        roots: &[String],
    ) -> Result<()> {
        let declared = metadata.and_then(|metadata| metadata.version.as_deref());
        let version = self.plan.version.version.as_deref().or(declared);
        let request = Request {
            folder,
            metadata,
            version: version.unwrap_or("0.0.0"),
            roots,
        };
        let code = SCRIPT.as_bytes();
        let script = builder.upload("without_build.py", code).await?;
        let request = serde_json::to_vec(&request).map_err(std::io::Error::from)?;
        let request = builder.upload("without_build.json", &request).await?;
        let workspace = text(&builder.paths.workspace);
        let command = Command::new([builder.python.clone(), script, workspace, request]);
        self.steps(builder)
            .run("put the code on the import path", &command)
            .await?;
        Ok(())
    }

    /// Returns the normalized names of the projects in the repository, which are never installed from an index.
    pub(super) fn own_names(&self) -> Result<Vec<String>> {
        let tree = self.source.tree()?;
        let folders = [""]
            .into_iter()
            .chain(self.recipe.projects.iter().map(String::as_str));
        let mut names = Vec::new();
        for folder in folders {
            names.extend(ProjectMetadata::read(&tree.subtree(folder))?.name);
        }
        Ok(names.iter().map(|own| name(own)).collect())
    }
}

/// Returns the last line of an output that says something.
fn last_line(output: &str) -> String {
    let is_error = |line: &&str| line.to_lowercase().contains("error:");
    let lines = output.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let line = lines.clone().rfind(is_error).or_else(|| lines.next_back());
    line.unwrap_or_default().chars().take(200).collect()
}
