//! What a benchmark was made from, and what became of all that was looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::drops::{Counts, DropReason};
use super::problem::Task;
use crate::document::{Section, Table};

/// `manifest.json` of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`super::VERSION`].
    pub version: String,
    pub seed: u64,
    pub tokenizer: String,
    pub limits: BuildLimits,
    pub repositories: Vec<RepositoryFacts>,
}

/// How much is made of each repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildLimits {
    pub tasks: Vec<Task>,
    /// Tests of a repository that are run at most, by whole files.
    pub max_tests: u32,
    /// The longest time of one test.
    pub test_seconds: u64,
}

impl BuildLimits {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.test_seconds)
    }
}

/// One repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryFacts {
    /// `owner/name`.
    pub name: String,
    pub commit: String,
    pub date: Option<String>,
    pub python: String,
    /// `name==version`.
    pub packages: Vec<String>,
    pub test_files: usize,
    /// Tests, each alone in its file.
    pub tests: Counts,
    /// Candidates by task.
    pub tasks: BTreeMap<Task, Counts>,
}

impl Manifest {
    /// Found, kept and dropped, with reasons.
    pub fn section(&self) -> Section {
        let mut found =
            Table::new("Tests, each alone in its file, and what of them became problems")
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
            let mut figures = vec![facts.test_files, facts.tests.found, facts.tests.kept];
            for task in Task::ALL {
                let counts = facts.tasks.get(&task).cloned().unwrap_or_default();
                figures.extend([counts.kept, counts.found]);
            }
            for (sum, figure) in sums.iter_mut().zip(&figures) {
                *sum += figure;
            }
            let name = format!(
                "{} {}",
                facts.name,
                facts.commit.get(..10).unwrap_or_default()
            );
            found.labelled(name, figures.iter().map(usize::to_string));
        }
        if self.repositories.len() > 1 {
            found.labelled("all", sums.iter().map(usize::to_string));
        }
        let mut dropped = Table::new("Why the others fell out")
            .words("of")
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
        Section::new("problems", "Problems", [found, dropped]).note("Of task I each operand of each assertion is a candidate, of tasks II and III each test.")
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
