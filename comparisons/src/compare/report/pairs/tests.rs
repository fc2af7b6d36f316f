use super::holm;

#[test]
fn holm_matches_published_example() {
    // Sorted: 0.005·4, 0.01·3, 0.03·2, 0.04·1, each raised to at least the previous value.
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    let expected = [0.03, 0.06, 0.06, 0.02];
    for (a, b) in adjusted.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12, "{adjusted:?}");
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}
