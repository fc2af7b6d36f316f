//! Measures the repository code that tests run: all tests of a file together, and single tests compared with an empty
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use testwright_sandboxes::sandbox::Result;

use super::{BuildOptions, ProgressFn};
use crate::cases::context::{ContextClass, classes};
use crate::cases::{
    self, Case, CaseCoverage, CaseEnvironment, CaseOptions, FileLines, Lines, empty_test,
};
use crate::clover::blocks::unique_lines;
use crate::clover::extract::{IsolatedTest, is_test_file};

type CoveredFiles = BTreeMap<String, Arc<FileLines>>;

/// Timeout of a whole file, in multiples of the timeout of a test.
const FILE_TIMEOUT_FACTOR: u32 = 10;

pub(super) struct TestCoverage<'a> {
    place: &'a CaseEnvironment,
    options: &'a BuildOptions,
    /// Lines that each test (`path::Class::function`) runs in its file's run.
    pub lines: BTreeMap<String, Lines>,
    /// Lines that each test runs and no other test of its file does.
    pub own: BTreeMap<String, Lines>,
    /// Statements of the files that each test file runs.
    statements: BTreeMap<String, CoveredFiles>,
    /// Coverage of each test run alone, and of an empty test in its place.
    alone: BTreeMap<String, (CaseCoverage, CaseCoverage)>,
}

impl<'a> TestCoverage<'a> {
    pub(super) fn new(place: &'a CaseEnvironment, options: &'a BuildOptions) -> Self {
        TestCoverage {
            place,
            options,
            lines: BTreeMap::new(),
            own: BTreeMap::new(),
            statements: BTreeMap::new(),
            alone: BTreeMap::new(),
        }
    }

    pub(super) fn case(&self, test: &IsolatedTest, source: String) -> Case {
        Case {
            id: test.name(),
            path: test.path.clone(),
            source,
            tests: vec![test.id.clone()],
            timeout: self.options.limits.timeout(),
        }
    }

    fn options(&self, contexts: bool) -> CaseOptions {
        CaseOptions {
            workers: self.options.workers,
            contexts,
            ..CaseOptions::default()
        }
    }

    /// Measures whole test files, by test.
    pub(super) async fn measure_files(
        &mut self,
        texts: &BTreeMap<String, String>,
        paths: &BTreeSet<&str>,
        report: ProgressFn<'_>,
    ) -> Result<()> {
        let case = |path: &&str| {
            Some(Case {
                id: (*path).to_owned(),
                path: (*path).to_owned(),
                source: texts.get(*path)?.clone(),
                tests: Vec::new(),
                timeout: self.options.limits.timeout() * FILE_TIMEOUT_FACTOR,
            })
        };
        let cases: Vec<Case> = paths.iter().filter_map(case).collect();
        let options = self.options(true);
        let all = cases.len();
        let done = |done: usize| report(&format!("measuring {all} test files: {done}"));
        for ran in cases::run(self.place, &cases, &options, true, &done).await? {
            let path = ran.verification.id.clone();
            let tests = by_test(&path, &ran);
            self.own.extend(unique_lines(&tests));
            self.lines.extend(tests);
            self.statements.insert(path, ran.files);
        }
        Ok(())
    }

    /// Measures single tests, and an empty test in the place of each.
    pub(super) async fn alone(&mut self, tests: &[&IsolatedTest]) -> Result<()> {
        let mut cases = Vec::new();
        let mut seen_names = BTreeSet::new();
        for test in tests {
            let text = test.text.text();
            if !self.alone.contains_key(&test.name())
                && seen_names.insert(test.name())
                && let Some(empty) = empty_test(&text, &test.id)
            {
                cases.push(self.case(test, text));
                cases.push(self.case(test, empty));
            }
        }
        let options = self.options(false);
        let mut ran = cases::cov(self.place, &cases, &options).await?.into_iter();
        while let (Some(base), Some(empty)) = (ran.next(), ran.next()) {
            self.alone
                .insert(base.verification.id.clone(), (base, empty));
        }
        Ok(())
    }

    /// Returns the statements of a file, as seen in the run of a test file.
    pub(super) fn statements(&self, test_file: &str, path: &str) -> Option<&FileLines> {
        Some(self.statements.get(test_file)?.get(path)?.as_ref())
    }

    /// Returns the relevance of each file to a test, without other test files.
    pub(super) fn classes(&self, test: &str) -> Option<BTreeMap<String, ContextClass>> {
        let (base, empty) = self.alone.get(test)?;
        let none = Lines::new();
        let mut classes = classes(base, empty, self.own.get(test).unwrap_or(&none));
        classes.retain(|path, _| !is_test_file(path));
        Some(classes)
    }
}

/// Groups lines by test; the parameters of one test are merged.
fn by_test(path: &str, ran: &CaseCoverage) -> BTreeMap<String, Lines> {
    let mut tests: BTreeMap<String, Lines> = BTreeMap::new();
    for (id, lines) in &ran.contexts {
        let id = id.split('[').next().unwrap_or(id);
        let name = match id.split_once("::") {
            Some((_, test)) => format!("{path}::{test}"),
            None => continue,
        };
        let of_test = tests.entry(name).or_default();
        for (file, lines) in lines {
            of_test.entry(file.clone()).or_default().extend(lines);
        }
    }
    tests
}
