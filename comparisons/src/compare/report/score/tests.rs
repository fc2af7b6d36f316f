use super::*;
use crate::compare::report::data::{Judgement, ScoredRun};
use crate::compare::{RunStatus, System};

#[test]
fn pass_at_k_matches_counting() {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    // With 2 successes in 5 samples, 3 of the 10 pairs contain no success.
    assert!(close(misses(5, 2, 2), 0.3));
    assert!(close(misses(5, 2, 1), 0.6));
    assert!(close(misses(5, 0, 3), 1.0));
    assert!(close(misses(5, 3, 3), 0.0));
}

/// Returns a system with these scores by instance and sample. A score above 0 is a fail-to-pass.
fn system(scores: &[&[f64]], oracle_samples: Option<u32>) -> SystemRuns {
    let run = |score: &f64| {
        Some(ScoredRun {
            folder: String::new(),
            status: RunStatus::Submitted,
            outcome: String::new(),
            confidence: None,
            cost: Default::default(),
            stages: Default::default(),
            judgement: Judgement::Verdict(Verdict {
                fail_to_pass: *score > 0.0,
                tdd_score: *score,
                ..Verdict::default()
            }),
        })
    };
    SystemRuns {
        system: System {
            oracle_samples,
            ..System::of_predictions("m", "")
        },
        runs: scores
            .iter()
            .map(|samples| samples.iter().map(run).collect())
            .collect(),
    }
}

#[test]
fn samples_do_not_narrow_intervals_of_means() {
    let score = |verdict: &Verdict| Some(verdict.tdd_score);
    let one = mean_of(&system(&[&[1.0], &[0.0], &[0.5]], None), score);
    let copies = mean_of(&system(&[&[1.0; 5], &[0.0; 5], &[0.5; 5]], None), score);
    assert_eq!(one, copies);
    assert_eq!((one.mean, one.denominator), (Some(0.5), 3));
}

#[test]
fn upper_bound_counts_the_best_sample() {
    let bound = system(&[&[0.0, 0.5], &[0.0, 0.0]], Some(2));
    assert_eq!(mean_of(&bound, |v| Some(v.tdd_score)).mean, Some(0.25));
    let score = Score::from_system(&bound, |v| v.fail_to_pass);
    assert_eq!(
        (score.value, score.instances, score.runs),
        (Some(0.5), 2, 2)
    );
    assert_eq!(pass_at(&bound, 1), Some(0.25));
}

#[test]
fn samples_are_not_counted_as_instances() {
    let one = Score::of_counts(&[(1, 1), (0, 1), (1, 1), (0, 1)]);
    let copies = Score::of_counts(&[(5, 5), (0, 5), (5, 5), (0, 5)]);
    assert_eq!(one.value, copies.value);
    assert_eq!((copies.instances, copies.runs), (4, 20));
    let width = |score: Score| score.interval.map(|[low, high]| high - low);
    assert!(width(copies) > Some(0.5), "{copies:?}");
    let none = Score::of_counts(&[(0, 5); 12]);
    let is_wilson = |[low, high]: [f64; 2]| low < 1e-9 && (0.2..0.3).contains(&high);
    assert!(none.interval.is_some_and(is_wilson), "{none:?}");

    let runs = |samples: usize| {
        (0..4 * samples).map(move |n| (n / samples, (n / samples).is_multiple_of(2)))
    };
    let (one, copies) = (rate_of_runs(runs(1)), rate_of_runs(runs(5)));
    assert_eq!(one.interval, wilson(2, 4));
    assert_eq!((copies.numerator, copies.denominator), (10, 20));
    assert_eq!(
        copies.interval,
        Score::of_counts(&[(5, 5), (0, 5), (5, 5), (0, 5)]).interval
    );
}
