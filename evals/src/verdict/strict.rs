//! The strict verdict. The same node id must fail on the old code and pass on the new code. No contributed test may fail
//! or error on the new code, and no test that passed before may fail after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{Outcome, belongs_to_test};

use super::{Condition, Observations, Pair, Repeat, fails, word};

/// The strict verdict on one prediction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Strict {
    /// Whether a contributed test goes from fail to pass, and no other test breaks.
    pub fail_to_pass: bool,
    /// Explanation of the verdict, positive or negative.
    pub reason: String,
}

impl Strict {
    fn rejected(reason: String) -> Strict {
        Strict {
            fail_to_pass: false,
            reason,
        }
    }
}

pub(super) fn strict(observations: &Observations) -> Strict {
    if observations.contributed.is_empty() {
        return Strict::rejected("the patch contributes no test".to_owned());
    }
    if let Some(fault) = observations.foreign.first() {
        return Strict::rejected(format!("not a test patch: it {fault}"));
    }
    if observations.contributed().next().is_none() {
        return Strict::rejected("none of the contributed tests was found".to_owned());
    }
    if let Some((id, pair)) = observations
        .contributed()
        .find(|(id, pair)| observations.fails(id, pair.new))
    {
        let end = match pair.new {
            Outcome::Failed => "failed".to_owned(),
            other => format!("is {}", word(other)),
        };
        return Strict::rejected(format!("{id} {end} on the new code"));
    }
    if let Some(why) = observations.forged.first() {
        return Strict::rejected(format!("the outcomes of the run are contradictory: {why}"));
    }
    // Tests broken by the code patch, or also broken without the prediction, do not count against the prediction.
    let broken = observations.others().find(|(id, pair)| {
        pair.old == Outcome::Passed
            && fails(pair.new)
            && observations
                .base
                .get(*id)
                .is_none_or(|base| !fails(base.new))
    });
    if let Some((id, _)) = broken {
        return Strict::rejected(format!("{id} passed on the old code and fails on the new"));
    }
    let turned = observations
        .contributed()
        .filter(|(id, pair)| reproduces(observations, id, *pair));
    let mut first_contradiction = None;
    let mut confirmed = None;
    for (id, pair) in turned {
        match contradiction(observations, id) {
            None => {
                confirmed = Some((id, pair));
                break;
            }
            why => first_contradiction = first_contradiction.or(why),
        }
    }
    if let (None, Some(why)) = (&confirmed, first_contradiction) {
        return Strict::rejected(why);
    }
    match confirmed {
        Some((id, pair)) if pair.old == Outcome::Failed => Strict {
            fail_to_pass: true,
            reason: format!("{id} failed on the old code and passed on the new"),
        },
        Some((id, _)) => Strict {
            fail_to_pass: true,
            reason: format!(
                "{id} needs a name that the issue asks for: it could not run on the old code and passed on the new"
            ),
        },
        None => Strict::rejected(no_reproduction_reason(observations)),
    }
}

/// Returns how a repeat contradicts the success of a test.
fn contradiction(observations: &Observations, id: &str) -> Option<String> {
    let mut repeats = observations.repeats.iter();
    repeats.find_map(|repeat| contradiction_of(observations, repeat, id))
}

fn contradiction_of(observations: &Observations, repeat: &Repeat, id: &str) -> Option<String> {
    let pair = repeat.pairs.get(id);
    let (old, new) = pair.map_or((Outcome::Absent, Outcome::Absent), |p| (p.old, p.new));
    let (fault, condition) = match repeat.condition {
        Condition::HashSeed => ("is flaky", "in a repeat"),
        Condition::Placebo => (
            "reads the code instead of running it",
            "after a change that only affects the text of the code",
        ),
    };
    if !fails(old) {
        let verb = verb(old);
        return Some(format!(
            "{id} {fault}: it fails on the old code, but {verb} there {condition}"
        ));
    }
    if new != Outcome::Passed {
        let verb = verb(new);
        return Some(format!(
            "{id} {fault}: it passes on the new code, but {verb} there {condition}"
        ));
    }
    // A placebo may disturb contributed tests that do not show the issue.
    let is_repeat = repeat.condition == Condition::HashSeed;
    let mut contributed = (repeat.pairs.iter()).filter(|(id, _)| observations.is_contributed(id));
    let flaky = contributed.find(|(id, pair)| is_repeat && observations.fails(id, pair.new));
    flaky.map(|(id, _)| {
        format!("{id} is flaky: it passes on the new code, but fails there in a repeat")
    })
}

fn verb(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passes",
        Outcome::Failed => "fails",
        Outcome::Error => "has an error",
        Outcome::Skipped => "is skipped",
        Outcome::Xfailed => "is xfailed",
        Outcome::Xpassed => "is xpassed",
        Outcome::Absent => "is absent",
    }
}

fn reproduces(observations: &Observations, id: &str, pair: Pair) -> bool {
    let failed = match pair.old {
        Outcome::Failed => true,
        Outcome::Error | Outcome::Absent => observations
            .missing_names
            .iter()
            .any(|test| belongs_to_test(id, test)),
        _ => false,
    };
    failed && pair.new == Outcome::Passed
}

/// Explains why no test goes from failed to passed, based on the test that came closest.
fn no_reproduction_reason(observations: &Observations) -> String {
    let rank = |pair: Pair| match (pair.old, pair.new) {
        (Outcome::Error | Outcome::Absent, Outcome::Passed) => 4,
        (Outcome::Failed, _) => 3,
        (Outcome::Skipped, Outcome::Passed) => 2,
        (Outcome::Passed, Outcome::Passed) => 1,
        _ => 0,
    };
    let Some((id, pair)) = observations
        .contributed()
        .max_by_key(|(_, pair)| rank(*pair))
    else {
        return "none of the contributed tests was found".to_owned();
    };
    match (pair.old, pair.new) {
        (Outcome::Passed, Outcome::Passed) => {
            "the contributed tests already pass on the old code".to_owned()
        }
        (old, new) => format!(
            "{id} was {} on the old code and {} on the new",
            word(old),
            word(new)
        ),
    }
}
