//! The projects of a repository: the root, members of workspaces, folders that requirements files name, and other
//! folders that have build files and tests.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use toml::Value;

use super::local_lines::{self, LocalLine};
use super::project_folders::{is_excluded, project_folders};
use super::project_metadata::ProjectMetadata;
use super::{Files, ci, entries, innermost, installable, package_name, strings};
use crate::error::SandboxError;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Maximum number of projects that are installed together.
const MAX_PROJECTS: usize = 40;

/// A project of the repository.
#[derive(Debug)]
pub(super) struct Project {
    /// Path of its folder; empty for the root.
    pub folder: String,
    /// Extras that a requirements file asks for.
    pub extras: Vec<String>,
    pub tree: Tree,
    pub files: Files,
}

impl Project {
    fn read(tree: &Tree, folder: &str) -> Result<Project> {
        let tree = tree.subtree(folder);
        let files = Files::read(&tree)?;
        Ok(Project {
            folder: folder.to_owned(),
            extras: Vec::new(),
            tree,
            files,
        })
    }

    /// Returns a path of the repository, given one that is relative to the project.
    pub(super) fn path(&self, relative: &str) -> String {
        match self.folder.as_str() {
            "" => relative.to_owned(),
            folder => format!("{folder}/{relative}"),
        }
    }
}

/// The choice of projects by the user.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    /// The one project to use, with those that it depends on.
    pub project: Option<&'a str>,
    /// Paths of files, most of them in the project that matters most.
    pub paths: BTreeSet<String>,
    /// A text about that project.
    pub subject: &'a str,
}

impl Choice<'_> {
    /// Returns a measure of how much a project matters: the number of paths in its folder, and how often the subject
    /// names it.
    pub(super) fn relevance(
        &self,
        folder: &str,
        names: &BTreeMap<String, String>,
    ) -> (usize, usize) {
        let paths = self.paths.iter().filter(|path| is_below(path, folder));
        (paths.count(), mentions(self.subject, folder, names))
    }

    /// Returns the innermost projects that contain the paths.
    fn projects(&self, folders: &[String]) -> Vec<String> {
        let folders: Vec<&String> = folders.iter().filter(|f| !is_excluded(f)).collect();
        let paths = self.paths.iter();
        let projects = paths.filter_map(|path| innermost(path, folders.iter().copied()));
        projects.cloned().collect()
    }
}

/// Returns whether a path is below a folder.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the projects to install, dependencies first. The root is the last one, and always present unless the user
/// chose a project that is not a member of the root's workspace.
///
/// `lines` are the folders that the requirements files of the root name.
pub(super) fn find(
    tree: &Tree,
    root: &Files,
    lines: &[LocalLine],
    choice: &Choice<'_>,
) -> Result<Vec<Project>> {
    let folders = project_folders(tree);
    let members = members(root, &folders);
    let mut chosen: Vec<String> = Vec::new();
    let mut with_root = true;
    if let Some(project) = choice.project {
        let folder = local_lines::join("", project)
            .filter(|folder| tree.has_folder(folder) || folder.is_empty());
        let folder = folder.ok_or_else(|| {
            SandboxError::input(format!("the repository has no folder {project}"))
                .hint("pass a folder of the repository, relative to its root")
        })?;
        with_root = folder.is_empty() || members.contains(&folder);
        chosen.push(folder);
    } else {
        let has_members = !members.is_empty();
        chosen.extend(members);
        chosen.extend(lines.iter().map(|line| line.folder.clone()));
        chosen.extend(path_dependencies(root, &folders));
        if (chosen.is_empty() || has_members) && !installable(root) {
            // The tests may lie outside the members of a workspace.
            let tested = with_tests(tree, &folders)?;
            if !tested.iter().any(|folder| chosen.contains(folder)) {
                chosen.extend(tested);
            }
            if chosen.is_empty() {
                // The root can hold the tests of all projects.
                chosen.extend(ci::named_folders(tree, &folders)?);
            }
        }
        chosen.extend(choice.projects(&folders));
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|folder| !folder.is_empty() && seen.insert(folder.clone()));
    let mut projects = Vec::new();
    if !chosen.is_empty() {
        projects = with_dependencies(tree, chosen, &folders, choice)?;
    }
    for project in &mut projects {
        let line = lines.iter().find(|line| line.folder == project.folder);
        project.extras = line.map(|line| line.extras.clone()).unwrap_or_default();
    }
    if with_root {
        projects.push(Project::read(tree, "")?);
    }
    Ok(projects)
}

/// Returns the members of the workspaces of uv, Rye and Hatch.
fn members(root: &Files, folders: &[String]) -> Vec<String> {
    let listed = |list: Option<&Value>| -> Vec<String> {
        let items = list.and_then(Value::as_array).into_iter().flatten();
        let texts = items.filter_map(|item| item.get("path").unwrap_or(item).as_str());
        texts.map(str::to_owned).collect()
    };
    let mut patterns = Vec::new();
    let mut excluded = Vec::new();
    for tool in ["uv", "rye", "hatch", "pdm"] {
        let workspace = |key: &str| listed(root.get(&format!("tool.{tool}.workspace.{key}")));
        patterns.extend(workspace("members"));
        patterns.extend(workspace("packages"));
        excluded.extend(workspace("exclude"));
    }
    for (_, environment) in entries(root.get("tool.hatch.envs")) {
        let workspace = environment.get("workspace");
        patterns.extend(listed(workspace.and_then(|w| w.get("members"))));
    }
    let matched = |patterns: &[String], folder: &str| {
        let mut globs = patterns.iter().filter_map(|pattern| glob(pattern));
        globs.any(|glob| glob.is_match(folder))
    };
    let is_member = |folder: &&String| matched(&patterns, folder) && !matched(&excluded, folder);
    folders.iter().filter(is_member).cloned().collect()
}

/// Converts a glob of folders, in which `*` stays within one part of a path.
fn glob(pattern: &str) -> Option<Regex> {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    let mut text = regex::escape(pattern);
    for (glob, expression) in [
        (r"\*\*/", "(?:.*/)?"),
        (r"\*\*", ".*"),
        (r"\*", "[^/]*"),
        (r"\?", "[^/]"),
    ] {
        text = text.replace(glob, expression);
    }
    Regex::new(&format!("^{text}$")).ok()
}

/// Returns the folders that the root declares as dependencies by their path.
fn path_dependencies(root: &Files, folders: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut add = |table: Option<&Value>| {
        for (_, value) in entries(table) {
            let path = value.get("path").and_then(Value::as_str);
            paths.extend(path.and_then(|path| local_lines::join("", path)));
        }
    };
    add(root.get("tool.uv.sources"));
    add(root.get("tool.poetry.dependencies"));
    add(root.get("tool.poetry.dev-dependencies"));
    for (_, group) in entries(root.get("tool.poetry.group")) {
        add(group.get("dependencies"));
    }
    let groups = ["tool.pdm.dev-dependencies", "dependency-groups"].into_iter();
    let groups = groups.flat_map(|keys| entries(root.get(keys)));
    for line in groups.flat_map(|(_, lines)| strings(Some(lines))) {
        let target = local_lines::target(&line).filter(|_| line.contains("file:"));
        paths.extend(target.and_then(|(path, _)| local_lines::join("", &path)));
    }
    paths.retain(|path| folders.contains(path));
    paths
}

/// Returns the folders with build files or requirements that have tests below them.
fn with_tests(tree: &Tree, folders: &[String]) -> Result<Vec<String>> {
    let tests = super::test_files(tree, &[])?;
    let mut candidates: Vec<String> = folders.to_vec();
    for path in tree.paths().filter(|path| path.matches('/').count() <= 2) {
        let Some((folder, name)) = path.rsplit_once('/') else {
            continue;
        };
        let is_file =
            name == "Pipfile" || (name.starts_with("requirements") && name.ends_with(".txt"));
        if is_file && folder != "requirements" && !candidates.iter().any(|other| other == folder) {
            candidates.push(folder.to_owned());
        }
    }
    candidates.retain(|folder| !is_excluded(folder));
    let folders = tests.iter().filter_map(|test| innermost(test, &candidates));
    let folders: BTreeSet<&String> = folders.collect();
    Ok(folders.into_iter().cloned().collect())
}

/// Reads the chosen projects and those that they depend on, and sorts them: dependencies first.
fn with_dependencies(
    tree: &Tree,
    chosen: Vec<String>,
    folders: &[String],
    choice: &Choice<'_>,
) -> Result<Vec<Project>> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in folders {
        let metadata = ProjectMetadata::read(&tree.subtree(folder))?;
        let Some(name) = metadata.name.clone() else {
            continue;
        };
        names
            .entry(package_name(&name))
            .or_insert_with(|| folder.clone());
        let extras = metadata.extras.values().flatten();
        let lines = metadata.dependencies.iter().chain(extras);
        needs.insert(
            folder.clone(),
            lines.map(|line| package_name(line)).collect(),
        );
    }
    let chosen = most_relevant(chosen, &names, choice);
    let mut sorted = Vec::new();
    let mut visited = BTreeSet::new();
    for folder in chosen {
        visit(&folder, &names, &needs, &mut visited, &mut sorted);
    }
    sorted
        .iter()
        .map(|folder| Project::read(tree, folder))
        .collect()
}

fn visit(
    folder: &str,
    names: &BTreeMap<String, String>,
    needs: &BTreeMap<String, Vec<String>>,
    visited: &mut BTreeSet<String>,
    sorted: &mut Vec<String>,
) {
    if !visited.insert(folder.to_owned()) {
        return;
    }
    for need in needs.get(folder).into_iter().flatten() {
        if let Some(other) = names.get(need) {
            visit(other, names, needs, visited, sorted);
        }
    }
    sorted.push(folder.to_owned());
}

/// Reduces too many projects to the most relevant ones, and to the first ones of the others.
fn most_relevant(
    mut chosen: Vec<String>,
    names: &BTreeMap<String, String>,
    choice: &Choice<'_>,
) -> Vec<String> {
    if chosen.len() > MAX_PROJECTS {
        chosen.sort_by_cached_key(|folder| std::cmp::Reverse(choice.relevance(folder, names)));
        chosen.truncate(MAX_PROJECTS);
        chosen.sort();
    }
    chosen
}

/// Counts how often a text names a project: by its folder or its distribution.
fn mentions(subject: &str, folder: &str, names: &BTreeMap<String, String>) -> usize {
    if folder.is_empty() {
        return 0;
    }
    let last = folder.rsplit('/').next().unwrap_or(folder);
    let name = names.iter().find(|(_, place)| *place == folder);
    let mut words: BTreeSet<String> = BTreeSet::from([folder.to_owned(), last.to_owned()]);
    words.extend(name.map(|(name, _)| name.clone()));
    let spellings: BTreeSet<String> = words
        .iter()
        .flat_map(|word| {
            [
                word.clone(),
                word.replace('-', "_"),
                word.replace(['-', '_'], "."),
            ]
        })
        .collect();
    let spellings: Vec<String> = spellings.iter().map(|word| regex::escape(word)).collect();
    let pattern = Regex::new(&format!(r"(?i)\b(?:{})\b", spellings.join("|")));
    pattern.map_or(0, |pattern| pattern.find_iter(subject).count())
}
