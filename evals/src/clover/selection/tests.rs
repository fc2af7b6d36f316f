use super::*;

#[test]
fn heavy_items_come_first_more_often() {
    let mut first = [0; 2];
    for seed in 0..2_000 {
        let order = weighted_shuffle(seed, vec![0usize, 1], usize::to_string, |item| {
            [1.0, 3.0][*item]
        });
        first[order[0]] += 1;
    }
    assert!((450..550).contains(&first[0]), "{first:?}");
    let items = || (0..50usize).collect::<Vec<_>>();
    let order = |seed| weighted_shuffle(seed, items(), usize::to_string, |_| 1.0);
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
    let mut all = order(7);
    all.sort_unstable();
    assert_eq!(all, items());
}

#[test]
fn unit_depends_on_name_boundaries() {
    assert_ne!(
        unit(0, &["a", "b"]).to_bits(),
        unit(0, &["ab", ""]).to_bits()
    );
    assert!(
        (0..1000).all(|seed| (0.0..1.0).contains(&unit(seed, &["x"])) && unit(seed, &[]) > 0.0)
    );
}
