#![allow(clippy::unwrap_used)]
use super::*;
use crate::statistics::SplitMix;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn mcnemar_matches_manual_values() {
    assert!(close(mcnemar(0, 0), 1.0));
    assert!(close(mcnemar(5, 0), 2.0 / 32.0));
    // 2 · (1 + 12 + 66) / 4096
    assert!(close(mcnemar(10, 2), 158.0 / 4096.0));
    assert!(close(mcnemar(2, 10), 158.0 / 4096.0));
    assert!(close(mcnemar(4, 4), 1.0));
    assert!(mcnemar(1500, 1000) < 1e-20 && mcnemar(1500, 1000) > 0.0);
}

#[test]
fn pairs_are_counted() {
    let paired = PairedComparison::from_pairs([
        (true, true),
        (true, false),
        (true, false),
        (false, true),
        (false, false),
    ]);
    assert_eq!(
        (
            paired.both,
            paired.only_first,
            paired.only_second,
            paired.neither
        ),
        (1, 2, 1, 1)
    );
    assert!(close(paired.difference.unwrap(), 0.2));
    assert_eq!(PairedComparison::from_pairs([]).difference, None);
}

/// Checks by simulation that the test detects the minimum difference in four of five trials.
#[test]
fn smallest_difference_has_stated_power() {
    let (instances, discordant) = (449, 0.25);
    let difference = minimum_detectable_difference(instances, discordant).unwrap();
    let first = (discordant + difference) / 2.0;
    let mut random = SplitMix(7);
    let trials = 1000;
    let detections = (0..trials)
        .filter(|_| {
            let (mut b, mut c) = (0, 0);
            for _ in 0..instances {
                let at = random.below(1_000_000) as f64 / 1e6;
                b += u64::from(at < first);
                c += u64::from(at >= first && at < discordant);
            }
            mcnemar(b, c) < 0.05
        })
        .count();
    // The exact test is slightly more conservative than the formula.
    let power = detections as f64 / f64::from(trials);
    assert!((0.74..=0.84).contains(&power), "{difference}: {power}");
}

#[test]
fn few_instances_show_nothing() {
    assert_eq!(minimum_detectable_difference(0, 0.2), None);
    assert_eq!(
        minimum_detectable_difference(10, DISAGREEMENT_OF_RERUNS),
        None
    );
    assert_eq!(minimum_detectable_difference(100, 0.0), None);
    let some = minimum_detectable_difference(433, DISAGREEMENT_OF_RERUNS).unwrap();
    assert!((0.04..0.07).contains(&some), "{some}");
}
