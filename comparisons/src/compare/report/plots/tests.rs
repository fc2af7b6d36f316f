use super::plain_figure;

#[test]
fn figures_have_three_digits() {
    for (number, expected) in [
        (0.0, "0"),
        (1620.0, "1620"),
        (1620.4, "1620"),
        (100.0, "100"),
        (99.94, "99.9"),
        (12.0, "12"),
        (12.34, "12.3"),
        (2.5, "2.5"),
        (1.0, "1"),
        (0.25, "0.25"),
        (0.012345, "0.0123"),
        (0.0001, "0.0001"),
    ] {
        assert_eq!(plain_figure(number), expected);
    }
}
