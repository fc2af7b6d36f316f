use super::*;
use crate::compare::report::data::{Judgement, ScoredRun, Verdict};
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

fn system_runs(runs: Vec<Vec<Option<ScoredRun>>>) -> SystemRuns {
    SystemRuns {
        system: System {
            approach: "otter".to_owned(),
            model: "m".to_owned(),
            oracle_samples: None,
            extra_inputs: Vec::new(),
            predictions: None,
        },
        runs,
    }
}

#[test]
fn every_level_withholds_and_keeps_some_tests() {
    let submitted = |n: i32| vec![run(RunStatus::Submitted, Some(f64::from(n) / 50.0), true)];
    let points = points(&system_runs((0..25).map(submitted).collect()));
    let last = points
        .last()
        .map(|p| (p.min_confidence, p.precision.denominator));
    assert_eq!(last, Some((Some(0.45), 2)));
}

/// Checks that a missing confidence counts as 0, as in `--min-confidence`.
#[test]
fn rejected_tests_are_withheld_first() {
    let runs = vec![
        vec![run(RunStatus::Submitted, Some(0.0), false)],
        vec![run(RunStatus::Submitted, None, true)],
        vec![run(RunStatus::Submitted, Some(0.5), true)],
    ];
    let rows: Vec<_> = points(&system_runs(runs))
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
    let rows: Vec<_> = points(&system_runs(runs))
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
