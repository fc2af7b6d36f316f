#![allow(clippy::unwrap_used)]
use super::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-4
}

#[test]
fn wilson_matches_published_values() {
    // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for (k, n, low, high) in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ] {
        let [a, b] = wilson(k, n).unwrap();
        assert!(close(a, low) && close(b, high), "{k}/{n}: {a} {b}");
    }
    assert_eq!(wilson(0, 0), None);
    assert_eq!(Rate::new(0, 0).rate, None);
}

#[test]
fn bootstrap_contains_mean_and_is_deterministic() {
    let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
    let mean = Mean::from_values(&values);
    let [low, high] = mean.interval.unwrap();
    let true_half = 1.96 * (1.0f64 / 12.0 / 100.0).sqrt();
    assert!((high - low - 2.0 * true_half).abs() < 0.01, "{low} {high}");
    assert!(low < mean.mean.unwrap() && mean.mean.unwrap() < high);
    assert_eq!(mean, Mean::from_values(&values));
    assert_eq!(Mean::from_values(&[]).interval, None);
    assert_eq!(Mean::from_values(&[0.3; 7]).interval, None);
}
