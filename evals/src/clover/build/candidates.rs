//! Candidates for problems, in the order of the draw.

use std::collections::BTreeMap;

use testwright_tools::python::RepositoryIndex;
use testwright_tools::workspace::Layout;

use super::measured::TestCoverage;
use crate::clover::blanks::{blanks, without_common};
use crate::clover::blocks;
use crate::clover::extract::IsolatedTest;
use crate::clover::problem::{Question, TestText};
use crate::clover::rejections::{Counts, DropReason};
use crate::clover::selection::{unit, weighted_shuffle};
use crate::clover::targets;

pub(super) struct Candidates {
    pub drawn: Vec<Candidate>,
    pub counts: Counts,
}

/// A question about a test.
pub(super) struct Candidate {
    /// Unique name, used for random draws.
    pub name: String,
    pub path: String,
    pub test: String,
    pub text: TestText,
    pub question: Question,
    /// Place that at most one problem may use.
    pub place: String,
}

impl Candidate {
    pub(super) fn test_name(&self) -> String {
        format!("{}::{}", self.path, self.test)
    }

    fn new(test: &IsolatedTest, question: Question) -> Candidate {
        Candidate {
            name: test.name(),
            path: test.path.clone(),
            test: test.id.clone(),
            text: test.text.clone().into(),
            question,
            place: test.name(),
        }
    }
}

/// Draws candidates for task I. Longer references are more likely, since they test more knowledge.
pub(super) fn assertions(seed: u64, tests: &[IsolatedTest], counts: &mut Counts) -> Vec<Candidate> {
    let assertion_blanks = tests.iter().flat_map(|test| blanks(test, counts)).collect();
    let assertion_blanks = without_common(assertion_blanks, counts);
    let assertion_blanks = weighted_shuffle(
        seed,
        assertion_blanks,
        |blank| format!("assertion {}", blank.name()),
        |blank| blank.reference().chars().count() as f64,
    );
    let candidate = |blank: crate::clover::blanks::Blank| Candidate {
        name: blank.name(),
        place: blank.assertion_name(),
        path: blank.path,
        test: blank.test,
        text: blank.text,
        question: blank.question,
    };
    assertion_blanks.into_iter().map(candidate).collect()
}

/// Draws candidates for task II, one target per test.
pub(super) fn targets(
    seed: u64,
    tests: &[IsolatedTest],
    index: &RepositoryIndex,
    measured: &TestCoverage<'_>,
    counts: &mut Counts,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for test in tests {
        counts.found += 1;
        let Some(covered) = measured.lines(&test.name()) else {
            counts.drop(DropReason::NotMeasured);
            continue;
        };
        let name = test.name();
        let all = targets::targets(index, test, covered);
        let chance = |qualified: &str| unit(seed, &["target", &name, qualified]);
        let one = all
            .iter()
            .min_by(|a, b| chance(&a.qualified).total_cmp(&chance(&b.qualified)));
        match one {
            Some(target) => candidates.push(Candidate::new(test, targets::question(target))),
            None => counts.drop(DropReason::NoTarget),
        }
    }
    weighted_shuffle(seed, candidates, |c| format!("target {}", c.name), |_| 1.0)
}

/// Draws candidates for task III.
pub(super) fn blocks(
    seed: u64,
    tests: &[IsolatedTest],
    measured: &TestCoverage<'_>,
    texts: &BTreeMap<String, String>,
    layout: &Layout,
    counts: &mut Counts,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for test in tests {
        counts.found += 1;
        let Some(mut own) = measured.own_lines(&test.name()).cloned() else {
            counts.drop(DropReason::NotMeasured);
            continue;
        };
        own.retain(|path, _| !layout.is_test_path(path));
        match blocks::blocks(&own, |path| measured.statements(&test.path, path)) {
            Ok(blocks) => {
                let text = |path: &str| texts.get(path).map_or("", String::as_str);
                let blocks = blocks.into_iter().map(|block| {
                    let text = text(&block.path);
                    block.with_source(text)
                });
                let blocks = blocks.collect();
                candidates.push(Candidate::new(test, Question::Blocks { blocks }));
            }
            Err(why) => counts.drop(why),
        }
    }
    weighted_shuffle(seed, candidates, |c| format!("blocks {}", c.name), |_| 1.0)
}
