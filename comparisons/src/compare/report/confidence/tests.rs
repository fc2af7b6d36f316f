use super::*;
use crate::compare::report::data::{Judgement, Verdict};
use crate::compare::{RunStatus, System};

fn run(status: RunStatus, confidence: Option<f64>, fail_to_pass: bool) -> Option<ScoredRun> {
    Some(ScoredRun {
        folder: String::new(),
        status,
        outcome: String::new(),
        confidence,
        cost: Default::default(),
        stages: Default::default(),
        judgement: Judgement::Verdict(Verdict {
            fail_to_pass,
            ..Verdict::default()
        }),
    })
}

/// Checks that a missing confidence counts as 0, as in `--min-confidence`.
#[test]
fn rejected_tests_are_withheld_first() {
    let runs = vec![
        vec![run(RunStatus::Submitted, Some(0.0), false)],
        vec![run(RunStatus::Submitted, None, true)],
        vec![run(RunStatus::Submitted, Some(0.5), true)],
    ];
    let system = System {
        approach: "otter".to_owned(),
        model: "m".to_owned(),
        oracle_samples: None,
        extra_inputs: Vec::new(),
        predictions: None,
    };
    let rows: Vec<_> = points(&SystemRuns { system, runs })
        .iter()
        .map(|p| {
            (
                p.min_confidence,
                p.precision.numerator,
                p.precision.denominator,
            )
        })
        .collect();
    assert_eq!(rows, [(None, 2, 3), (Some(0.5), 1, 1)]);
}

#[test]
fn withheld_tests_lower_only_recall() {
    use RunStatus::{NothingSubmitted, Submitted};
    let runs = vec![
        vec![run(Submitted, Some(0.75), true)],
        vec![run(Submitted, Some(0.75), true)],
        vec![run(Submitted, Some(0.5), false)],
        vec![run(Submitted, Some(0.25), true)],
        vec![run(NothingSubmitted, None, false)],
        vec![None],
    ];
    let system = System {
        approach: "testwright".to_owned(),
        model: "m".to_owned(),
        oracle_samples: None,
        extra_inputs: Vec::new(),
        predictions: None,
    };
    let rows: Vec<_> = points(&SystemRuns { system, runs })
        .iter()
        .map(|p| {
            let (precision, recall) = (&p.precision, &p.recall);
            (
                p.min_confidence,
                precision.numerator,
                precision.denominator,
                recall.numerator,
                recall.denominator,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (None, 3, 4, 3, 5),
            (Some(0.5), 2, 3, 2, 5),
            (Some(0.75), 2, 2, 2, 5)
        ]
    );
}
