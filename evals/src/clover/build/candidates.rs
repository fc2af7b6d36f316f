//! Candidates for problems, in the order of the draw.

use testwright_tools::python::{RepositoryIndex, SingleTest};

use super::measured::TestCoverage;
use crate::clover::blanks::{Blank, blanks, without_common};
use crate::clover::blocks;
use crate::clover::extract::IsolatedTest;
use crate::clover::problem::Question;
use crate::clover::rejections::{Counts, DropReason};
use crate::clover::repository::Repository;
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
    pub text: SingleTest,
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
            text: test.text.clone(),
            question,
            place: test.name(),
        }
    }
}

/// Draws candidates for task I. Longer references are more likely, since they test more knowledge.
pub(super) fn assertions(seed: u64, tests: &[IsolatedTest], counts: &mut Counts) -> Vec<Candidate> {
    let all = tests.iter().flat_map(|test| blanks(test, counts)).collect();
    let drawn = weighted_shuffle(
        seed,
        without_common(all, counts),
        |blank| format!("assertion {}", blank.name()),
        |blank| blank.reference().chars().count() as f64,
    );
    let candidate = |blank: Blank| Candidate {
        name: blank.name(),
        place: blank.assertion_name(),
        path: blank.path,
        test: blank.test,
        text: blank.text,
        question: blank.question,
    };
    drawn.into_iter().map(candidate).collect()
}

/// Draws candidates for task II, one target per test.
pub(super) fn targets(
    seed: u64,
    tests: &[IsolatedTest],
    index: &RepositoryIndex,
    measured: &TestCoverage<'_>,
    counts: &mut Counts,
) -> Vec<Candidate> {
    draw(seed, "target", tests, counts, |test| {
        let name = test.name();
        let covered = measured.lines.get(&name).ok_or(DropReason::NotMeasured)?;
        let chance = |qualified: &str| unit(seed, &["target", &name, qualified]);
        let all = targets::targets(index, test, covered);
        let one = (all.iter()).min_by(|a, b| chance(&a.qualified).total_cmp(&chance(&b.qualified)));
        one.map(targets::question).ok_or(DropReason::NoTarget)
    })
}

/// Draws candidates for task III.
pub(super) fn blocks(
    seed: u64,
    tests: &[IsolatedTest],
    measured: &TestCoverage<'_>,
    repository: &Repository,
    counts: &mut Counts,
) -> Vec<Candidate> {
    draw(seed, "blocks", tests, counts, |test| {
        let own = measured.own.get(&test.name());
        let mut own = own.cloned().ok_or(DropReason::NotMeasured)?;
        own.retain(|path, _| !repository.layout.is_test_path(path));
        let blocks = blocks::blocks(&own, |path| measured.statements(&test.path, path))?;
        let blocks = blocks.into_iter().map(|block| {
            let text = repository.texts.get(&block.path);
            block.with_source(text.map_or("", String::as_str))
        });
        Ok(Question::Blocks {
            blocks: blocks.collect(),
        })
    })
}

/// Draws one candidate for each test about which there is a question.
fn draw(
    seed: u64,
    task: &str,
    tests: &[IsolatedTest],
    counts: &mut Counts,
    question: impl Fn(&IsolatedTest) -> Result<Question, DropReason>,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for test in tests {
        counts.found += 1;
        match question(test) {
            Ok(question) => candidates.push(Candidate::new(test, question)),
            Err(why) => counts.drop(why),
        }
    }
    weighted_shuffle(seed, candidates, |c| format!("{task} {}", c.name), |_| 1.0)
}
