//! Counts why tests and candidates were rejected.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cases::CaseOutcome;

/// The reason why a test, or a candidate taken from one, was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    NotParsed,
    NotSeparable,
    NotDrawn,
    Failed,
    Error,
    NotRun,
    TimedOut,
    Crashed,
    Flaky,
    NotMeasured,
    NestedAssertion,
    ChainedComparison,
    TrivialAssertion,
    CommonReference,
    InContext,
    LongReference,
    SamePlace,
    NoTarget,
    LongInstructions,
    NoBlock,
    ManyFiles,
    NotGolden,
    OverCap,
}

impl DropReason {
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

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropReason::NotParsed => "the file does not parse",
            DropReason::NotSeparable => "the test cannot be separated from its file",
            DropReason::NotDrawn => {
                "its file was not drawn, because there are more tests than the limit"
            }
            DropReason::Failed => "it fails in isolation",
            DropReason::Error => "its setup fails in isolation",
            DropReason::NotRun => "it is skipped, deselected or expected to fail",
            DropReason::TimedOut => "it takes too long",
            DropReason::Crashed => "its process ends without a test report",
            DropReason::Flaky => "its outcome varies",
            DropReason::NotMeasured => "its coverage could not be measured",
            DropReason::NestedAssertion => "the assertion is in a nested function",
            DropReason::ChainedComparison => "the assertion compares more than two values",
            DropReason::TrivialAssertion => "the assertion is trivial",
            DropReason::CommonReference => {
                "the reference makes up more than 1 % of the repository's"
            }
            DropReason::InContext => "the context contains the same assertion",
            DropReason::LongReference => "the reference exceeds the maximum length of an answer",
            DropReason::SamePlace => "another operand of the assertion was already used",
            DropReason::NoTarget => "it calls no class or function of the repository",
            DropReason::LongInstructions => "instructions and file take more than 4k tokens",
            DropReason::NoBlock => "no block of 5 lines is covered by this test only",
            DropReason::ManyFiles => "its blocks span more than 10 files",
            DropReason::NotGolden => "its golden answer is not graded as correct",
            DropReason::OverCap => "the repository already has the maximum number of problems",
        })
    }
}

/// Number of tests or candidates that were found, kept, and dropped by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub found: usize,
    pub kept: usize,
    pub dropped: BTreeMap<DropReason, usize>,
}

impl Counts {
    pub fn drop(&mut self, why: DropReason) {
        *self.dropped.entry(why).or_default() += 1;
    }
}
