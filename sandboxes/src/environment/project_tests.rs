//! Trial runs of a repository with several projects: the tests of each run from its folder, as its developers run them.
//!
//! One run over all of them would load configuration and conftest files of different projects under the same names.

use std::collections::BTreeMap;

use super::smoke_test::{self, Request, SmokeTestReport};
use super::steps::Steps;
use crate::recipe;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Minimum seconds for the sample of one project.
const MIN_SECONDS: u64 = 20;

/// Runs a request once for each project that has requested files, and merges the reports. Without files, each project
/// gets its share of the sample.
pub(super) async fn run(
    steps: &Steps<'_>,
    step: &str,
    python: &str,
    request: &Request,
    projects: &[String],
    tree: &Tree,
) -> Result<SmokeTestReport> {
    if projects.is_empty() {
        return smoke_test::run(steps, step, python, request).await;
    }
    let parts = match request.files.is_empty() {
        true => shares(request, projects, &recipe::test_files(tree, projects)?),
        false => split(request, projects),
    };
    let mut all: Option<SmokeTestReport> = None;
    for (folder, part) in parts {
        let step = match folder.as_str() {
            "" => step.to_owned(),
            folder => format!("{step} in {folder}"),
        };
        let mut report = smoke_test::run(steps, &step, python, &part).await?;
        add_folder(&mut report, &folder);
        all = Some(match all {
            Some(before) => merge(before, report),
            None => report,
        });
    }
    match all {
        Some(report) => Ok(report),
        None => smoke_test::run(steps, step, python, request).await,
    }
}

/// Returns the innermost project that contains a path; empty for the root.
fn project_of<'a>(path: &str, projects: &'a [String]) -> &'a str {
    recipe::innermost(path, projects).map_or("", String::as_str)
}

/// Makes a path relative to a project.
fn inside(path: &str, folder: &str) -> String {
    let rest = path.strip_prefix(folder).unwrap_or(path);
    match rest.trim_start_matches('/') {
        "" => ".".to_owned(),
        rest => rest.to_owned(),
    }
}

/// Splits the files of a request by project.
fn split(request: &Request, projects: &[String]) -> Vec<(String, Request)> {
    let mut parts: BTreeMap<String, Request> = BTreeMap::new();
    for path in &request.files {
        let folder = project_of(path, projects);
        let part = parts
            .entry(folder.to_owned())
            .or_insert_with(|| part(request, folder));
        part.files.push(inside(path, folder));
    }
    for path in &request.scanned {
        let folder = project_of(path, projects);
        if let Some(part) = parts.get_mut(folder) {
            part.scanned.push(inside(path, folder));
        }
    }
    parts.into_iter().collect()
}

/// Divides the sample in proportion to the numbers of test files.
fn shares(request: &Request, projects: &[String], tests: &[String]) -> Vec<(String, Request)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in tests {
        *counts
            .entry(project_of(path, projects).to_owned())
            .or_default() += 1;
    }
    let share = |folder: &str, count: usize| {
        let mut part = part(request, folder);
        part.sample = request
            .sample
            .map(|sample| (sample * count).div_ceil(tests.len()));
        let seconds = |seconds: u64| {
            let share = (seconds * count as u64).div_ceil(tests.len() as u64);
            share.max(MIN_SECONDS.min(seconds))
        };
        part.seconds = request.seconds.map(seconds);
        if folder.is_empty() {
            let ignored = projects.iter().map(|project| format!("--ignore={project}"));
            part.options.extend(ignored);
        }
        part
    };
    let parts = counts.into_iter();
    parts
        .map(|(folder, count)| (folder.clone(), share(&folder, count)))
        .collect()
}

fn part(request: &Request, folder: &str) -> Request {
    Request {
        folder: folder.to_owned(),
        files: Vec::new(),
        scanned: Vec::new(),
        ..request.clone()
    }
}

/// Makes the paths in a report relative to the repository. If a configuration in the root applies, they are already.
fn add_folder(report: &mut SmokeTestReport, folder: &str) {
    if folder.is_empty() {
        return;
    }
    let whole = |path: &str| match project_of(path, &[folder.to_owned()]) {
        "" => format!("{folder}/{path}"),
        _ => path.to_owned(),
    };
    let collected = std::mem::take(&mut report.collected);
    report.collected = collected
        .into_iter()
        .map(|(file, n)| (whole(&file), n))
        .collect();
    let broken = report.broken.iter_mut().map(|error| &mut error.file);
    let tests = report.tests.iter_mut().map(|test| &mut test.id);
    for path in broken.chain(tests).chain(report.uses.values_mut()) {
        *path = whole(path);
    }
    if !report.place.is_empty() {
        report.place = whole(&report.place);
    }
}

/// Merges the reports of two projects. The output is that of the first which failed.
fn merge(mut first: SmokeTestReport, mut second: SmokeTestReport) -> SmokeTestReport {
    first.collected.append(&mut second.collected);
    first.broken.append(&mut second.broken);
    first.tests.append(&mut second.tests);
    for (fixture, file) in second.uses {
        first.uses.entry(fixture).or_insert(file);
    }
    first.ended &= second.ended;
    first.stopped |= second.stopped;
    first.good_files += second.good_files;
    if first.place.is_empty() {
        first.place = second.place;
    }
    // Exit code 5 says that no test was found.
    let is_fine = |code: i32| matches!(code, 0 | 5);
    if is_fine(first.printed.code) && !is_fine(second.printed.code) {
        first.printed = second.printed;
    }
    first
}

#[cfg(test)]
mod tests;
