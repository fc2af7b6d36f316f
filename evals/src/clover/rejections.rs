//! Counts why tests and candidates were rejected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cases::CaseOutcome;

/// The reason why a test, or a candidate taken from one, was rejected.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The file does not parse.
    #[error("the file does not parse")]
    NotParsed,
    /// The test cannot be separated from its file.
    #[error("the test cannot be separated from its file")]
    NotSeparable,
    /// The file was not drawn, because there are more tests than the limit.
    #[error("its file was not drawn, because there are more tests than the limit")]
    NotDrawn,
    /// The test fails in isolation.
    #[error("it fails in isolation")]
    Failed,
    /// The setup of the test fails in isolation.
    #[error("its setup fails in isolation")]
    Error,
    /// The test is skipped, deselected or expected to fail.
    #[error("it is skipped, deselected or expected to fail")]
    NotRun,
    /// The test takes too long.
    #[error("it takes too long")]
    TimedOut,
    /// The process ends without a test report.
    #[error("its process ends without a test report")]
    Crashed,
    /// The outcome of the test varies.
    #[error("its outcome varies")]
    Flaky,
    /// The coverage of the test could not be measured.
    #[error("its coverage could not be measured")]
    NotMeasured,
    /// The assertion is in a nested function.
    #[error("the assertion is in a nested function")]
    NestedAssertion,
    /// The assertion compares more than two values.
    #[error("the assertion compares more than two values")]
    ChainedComparison,
    /// The assertion is trivial.
    #[error("the assertion is trivial")]
    TrivialAssertion,
    /// The reference makes up more than 1 % of the repository's references.
    #[error("the reference makes up more than 1 % of the repository's")]
    CommonReference,
    /// The context contains the same assertion.
    #[error("the context contains the same assertion")]
    InContext,
    /// The reference exceeds the maximum length of an answer.
    #[error("the reference exceeds the maximum length of an answer")]
    LongReference,
    /// Another operand of the assertion was already used.
    #[error("another operand of the assertion was already used")]
    SamePlace,
    /// The test calls no class or function of the repository.
    #[error("it calls no class or function of the repository")]
    NoTarget,
    /// The instructions and the file take more than 4,000 tokens.
    #[error("instructions and file take more than 4k tokens")]
    LongInstructions,
    /// The test alone covers no block of 5 lines.
    #[error("no block of 5 lines is covered by this test only")]
    NoBlock,
    /// The blocks span more than 10 files.
    #[error("its blocks span more than 10 files")]
    ManyFiles,
    /// The golden answer is not graded as correct.
    #[error("its golden answer is not graded as correct")]
    NotGolden,
    /// The repository already has the maximum number of problems.
    #[error("the repository already has the maximum number of problems")]
    OverCap,
}

impl DropReason {
    /// Returns the reason to reject a test with this outcome, or `None` if it passed.
    pub fn of_outcome(outcome: &CaseOutcome) -> Option<DropReason> {
        Some(match outcome {
            CaseOutcome::Passed => return None,
            CaseOutcome::Failed { .. } => DropReason::Failed,
            CaseOutcome::Error { .. } => DropReason::Error,
            CaseOutcome::NotRun { .. } => DropReason::NotRun,
            CaseOutcome::TimedOut => DropReason::TimedOut,
            CaseOutcome::Crashed { .. } => DropReason::Crashed,
            CaseOutcome::Flaky => DropReason::Flaky,
        })
    }
}

/// Number of tests or candidates that were found, kept, and dropped by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number found, before any rejection.
    pub found: usize,
    /// Number kept.
    pub selected: usize,
    /// Number dropped, by reason.
    pub dropped: BTreeMap<DropReason, usize>,
}

impl Counts {
    /// Counts a rejected test or candidate.
    pub fn drop(&mut self, why: DropReason) {
        *self.dropped.entry(why).or_default() += 1;
    }
}
