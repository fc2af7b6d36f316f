#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn effort_applies_to_approaches_with_levels() {
    let mut variants = ["testwright", "testwright:fix=on", "otter", "libro"]
        .map(|name| Variant::parse(name).unwrap());
    let note = at_effort(&mut variants, Effort::Low).unwrap();
    assert_eq!(note, "these approaches have no effort levels: otter, libro");
    let names: Vec<String> = variants.iter().map(Variant::name).collect();
    assert_eq!(
        names,
        [
            "testwright:fix=off:review=off",
            "testwright:review=off",
            "otter",
            "libro"
        ]
    );
    assert_eq!(at_effort(&mut variants[..1], Effort::High), None);
}
