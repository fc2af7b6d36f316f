//! The part of a recipe that one project of the repository needs, and the combination of the parts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::project_metadata::ProjectMetadata;
use super::projects::{Choice, Project};
use super::{
    add, build_file, django, installable, local_lines, package_name, plugins, templates,
    test_dependencies, test_files,
};
use crate::recipe::Recipe;
use crate::recipe::extras::{split_extras, with_extras};
use crate::sandbox::Result;

/// The needs of one project.
#[derive(Debug, Default)]
pub(super) struct ProjectRecipe {
    folder: String,
    /// Normalized name, if the project is installed.
    name: Option<String>,
    requirements: Vec<String>,
    requirements_files: Vec<String>,
    build_constraints: Vec<String>,
    before_install: Vec<String>,
    after_install: Vec<String>,
    is_installed: bool,
    /// Extras to install the project with.
    extras: Vec<String>,
    env: BTreeMap<String, String>,
    options: Vec<String>,
    /// Patterns of test files.
    patterns: Vec<String>,
    /// Whether the patterns must be passed to pytest.
    passes_patterns: bool,
    /// Folder from which the project's settings are imported, if it is another one.
    settings_folder: Option<String>,
}

impl ProjectRecipe {
    /// Detects the needs of a project that is installed with this version of Python.
    pub(super) fn detect(
        project: &Project,
        python: &str,
        from: &mut Vec<String>,
    ) -> Result<ProjectRecipe> {
        let (tree, files) = (&project.tree, &project.files);
        let installable = installable(files);
        let dependencies = test_dependencies::test_requirements(tree, files, installable, python)?;
        let mut read = dependencies.from;
        let mut part = ProjectRecipe {
            folder: project.folder.clone(),
            requirements: dependencies.requirements,
            requirements_files: dependencies
                .files
                .iter()
                .map(|path| project.path(path))
                .collect(),
            ..ProjectRecipe::default()
        };
        let metadata = ProjectMetadata::read(tree)?;
        if installable {
            part.name = metadata.name.as_deref().map(package_name);
            part.is_installed = true;
            if read.is_empty() {
                read.push(build_file(files).to_owned());
            }
            part.extras = dependencies.extras;
            part.extras.extend(project.extras.iter().cloned());
        } else {
            if !metadata.dependencies.is_empty() {
                read.push("pyproject.toml".to_owned());
            }
            let own = |line: &&String| local_lines::target(line).is_none();
            part.requirements
                .extend(metadata.dependencies.iter().filter(own).cloned());
            part.requirements
                .extend(test_dependencies::virtual_extras(files, &metadata));
        }
        for plugin in plugins::required(files) {
            add(&mut part.requirements, plugin);
        }
        for script in templates::copies(tree) {
            part.before_install.push(match project.folder.as_str() {
                "" => script,
                folder => format!("cd '{folder}' && {script}"),
            });
        }
        // setuptools 58 removed this feature, so no newer version can run such a file.
        if files.setup_py.contains("use_2to3") {
            part.requirements.push("setuptools<58".to_owned());
            part.build_constraints.push("setuptools<58".to_owned());
        }
        part.add_django(project)?;
        from.extend(read.iter().map(|path| project.path(path)));
        Ok(part)
    }

    fn add_django(&mut self, project: &Project) -> Result<()> {
        let (tree, files) = (&project.tree, &project.files);
        if django::own_runner(tree).is_some() {
            return Ok(());
        }
        (self.patterns, self.passes_patterns) = test_files::patterns(tree, files)?;
        let Some(django) = django::detect(tree, files)? else {
            return Ok(());
        };
        add(&mut self.requirements, "pytest-django");
        self.passes_patterns = django.patterns.is_some();
        if let Some(patterns) = django.patterns {
            self.patterns = patterns.split(' ').map(str::to_owned).collect();
        }
        if django.lacks_migrations {
            self.options.push("--nomigrations".to_owned());
        }
        self.after_install
            .extend(django.write_settings(&project.folder));
        if let Some(settings) = &django.settings {
            self.env
                .insert("DJANGO_SETTINGS_MODULE".to_owned(), settings.clone());
        }
        self.settings_folder = (!django.folder.is_empty()).then(|| project.path(&django.folder));
        Ok(())
    }
}

/// Adds the needs of all projects to a recipe. They are sorted: dependencies first.
///
/// If projects pin different versions of one package, the requirements of the most relevant project come first. Those of
/// the others are left out when they cannot be installed.
pub(super) fn combine(recipe: &mut Recipe, mut parts: Vec<ProjectRecipe>, choice: &Choice<'_>) {
    replace_own_requirements(&mut parts);
    let install = recipe.install.get_or_insert_default();
    for part in &parts {
        if part.is_installed {
            let path = match part.folder.as_str() {
                "" => ".".to_owned(),
                folder => format!("./{folder}"),
            };
            install.extend(["-e".to_owned(), with_extras(&path, &part.extras)]);
        }
        let folders = [Some(&part.folder), part.settings_folder.as_ref()];
        let folders = folders.into_iter().flatten();
        recipe
            .projects
            .extend(folders.filter(|folder| !folder.is_empty()).cloned());
        recipe
            .before_install
            .extend(part.before_install.iter().cloned());
        recipe
            .after_install
            .extend(part.after_install.iter().cloned());
        for (name, value) in &part.env {
            recipe
                .env
                .entry(name.clone())
                .or_insert_with(|| value.clone());
        }
        extend_new(&mut recipe.runner.options, &part.options);
    }
    if parts.iter().any(|part| part.passes_patterns) {
        // The option also applies to projects with patterns of their own.
        let mut patterns = Vec::new();
        for part in &parts {
            extend_new(&mut patterns, &part.patterns);
        }
        recipe
            .runner
            .options
            .push(test_files::patterns_option(&patterns));
    }
    if has_conflicts(&parts) {
        let names = BTreeMap::new();
        parts.sort_by_cached_key(|part| Reverse(choice.relevance(&part.folder, &names)));
    }
    for part in &parts {
        extend_new(&mut recipe.requirements, &part.requirements);
        extend_new(&mut recipe.requirements_files, &part.requirements_files);
        extend_new(&mut recipe.build_constraints, &part.build_constraints);
    }
}

/// Removes requirements of projects that are installed from the repository, because an index has none or other versions
/// of them. Their extras are installed with the projects.
fn replace_own_requirements(parts: &mut [ProjectRecipe]) {
    let names: Vec<Option<String>> = parts.iter().map(|part| part.name.clone()).collect();
    let mut extras: Vec<(usize, String)> = Vec::new();
    for part in parts.iter_mut() {
        part.requirements.retain(|line| {
            let name = Some(package_name(line));
            let own = names.iter().position(|own| *own == name);
            if let Some(at) = own {
                let before_condition = line.split([';', '@']).next().unwrap_or(line);
                let (_, of_line) = split_extras(before_condition);
                extras.extend(of_line.into_iter().map(|extra| (at, extra)));
            }
            own.is_none()
        });
    }
    for (at, extra) in extras {
        parts[at].extras.push(extra);
    }
}

fn extend_new(all: &mut Vec<String>, more: &[String]) {
    for line in more {
        if !all.contains(line) {
            all.push(line.clone());
        }
    }
}

/// Returns whether two projects have different requirements of one package.
fn has_conflicts(parts: &[ProjectRecipe]) -> bool {
    let mut lines: BTreeMap<String, &str> = BTreeMap::new();
    for line in parts.iter().flat_map(|part| &part.requirements) {
        let is_pinned = line.contains("==");
        let before = lines.insert(package_name(line), line);
        if is_pinned && before.is_some_and(|before| before != line) {
            return true;
        }
    }
    false
}
