//! Records the input of a benchmark, and how many tests and candidates became problems.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::problem::Task;
use super::rejections::{Counts, DropReason};
use crate::document::{Section, Table};

/// `manifest.json` of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the generator, [`super::VERSION`].
    pub version: String,
    /// Seed for all random choices.
    pub seed: u64,
    /// Name of the tokenizer that counted the tokens.
    pub tokenizer: String,
    /// Limits on the tests and tasks of each repository.
    pub limits: BuildLimits,
    /// Repositories sorted by name and commit.
    pub repositories: Vec<RepositoryFacts>,
}

/// Limits on the tests and tasks of each repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildLimits {
    /// Tasks to build problems for.
    pub tasks: Vec<Task>,
    /// Maximum tests to run per repository; whole files are chosen.
    pub max_tests: u32,
    /// Timeout of one test, in seconds.
    pub test_seconds: u64,
}

impl BuildLimits {
    /// Returns the timeout of one test.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.test_seconds)
    }
}

/// Facts about one repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryFacts {
    /// Name as `owner/name`.
    pub name: String,
    /// Full hash of the commit.
    pub commit: String,
    /// Date of the commit; `None` if it is unknown.
    pub date: Option<String>,
    /// Python version that ran the tests.
    pub python: String,
    /// Installed packages as `name==version`.
    pub packages: Vec<String>,
    /// Number of test files.
    pub test_files: usize,
    /// Number of tests, each isolated in its file.
    pub tests: Counts,
    /// Number of candidates by task.
    pub tasks: BTreeMap<Task, Counts>,
}

impl Manifest {
    /// Returns the tables of tests and candidates: found, kept, and dropped by reason.
    pub fn section(&self) -> Section {
        let mut selection_table =
            Table::new("Tests, each isolated in its file, and the problems made from them")
                .words("repository")
                .figures(&[
                    "test files",
                    "tests",
                    "kept",
                    "I kept",
                    "of",
                    "II kept",
                    "of",
                    "III kept",
                    "of",
                ]);
        let mut sums = [0; 9];
        for facts in &self.repositories {
            let mut figures = vec![facts.test_files, facts.tests.found, facts.tests.selected];
            for task in Task::ALL {
                let counts = facts.tasks.get(&task).cloned().unwrap_or_default();
                figures.extend([counts.selected, counts.found]);
            }
            for (sum, figure) in sums.iter_mut().zip(&figures) {
                *sum += figure;
            }
            let commit = facts.commit.get(..10).unwrap_or_default();
            let name = format!("{} {commit}", facts.name);
            selection_table.labelled([name], figures.iter().map(usize::to_string));
        }
        if self.repositories.len() > 1 {
            selection_table.labelled(["all"], sums.iter().map(usize::to_string));
        }
        let mut dropped = Table::new("Rejected tests and candidates")
            .words("type")
            .sentences("reason")
            .figures(&["dropped"]);
        let tests = self.repositories.iter().map(|facts| &facts.tests);
        rows(&mut dropped, "tests", tests);
        for task in Task::ALL {
            let counts = self
                .repositories
                .iter()
                .filter_map(|facts| facts.tasks.get(&task));
            rows(&mut dropped, &format!("task {}", task.numeral()), counts);
        }
        Section::new("problems", "Problems", [selection_table, dropped]).note("In task I, each operand of each assertion is a candidate; in tasks II and III, each test is.")
    }
}

fn rows<'c>(table: &mut Table, of: &str, counts: impl Iterator<Item = &'c Counts>) {
    let mut sums: BTreeMap<DropReason, usize> = BTreeMap::new();
    for (reason, times) in counts.flat_map(|counts| &counts.dropped) {
        *sums.entry(*reason).or_default() += times;
    }
    let mut sums: Vec<(DropReason, usize)> = sums.into_iter().collect();
    sums.sort_by_key(|(reason, times)| (std::cmp::Reverse(*times), *reason));
    for (reason, times) in sums {
        table.row([of.to_owned(), reason.to_string(), times.to_string()].map(Into::into));
    }
}
