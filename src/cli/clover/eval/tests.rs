use super::unique;

#[test]
fn names_keep_their_order_without_repetition() {
    assert_eq!(unique(["b", "a", "b", "a", "c"]), ["b", "a", "c"]);
}
