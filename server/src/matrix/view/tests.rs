#![allow(clippy::unwrap_used)]
use super::*;

fn result(tests: &str, patch: &str, passed: &[&str], failed: &[&str]) -> SelectionResult {
    serde_json::from_value(serde_json::json!({
            "instance_id": "i", "tests": tests, "patch": patch, "passed": passed, "failed": failed, "resolves": null,
        }))
        .unwrap()
}

#[test]
fn test_sets_are_scored_together() {
    let results = [
        result("a", "half", &["t"], &[]),
        result("b", "half", &[], &["t"]),
        result("a", "whole", &["t"], &[]),
        result("b", "whole", &["t"], &[]),
        result("a", "none", &[], &["t"]),
        result("b", "none", &[], &[]),
    ];
    let all: Vec<&SelectionResult> = results.iter().collect();
    let ranked = rank_patches(&all);
    let of = |name: &str| {
        let patch = patch_result(name, &ranked);
        let sets = (patch.passed_sets, patch.decisive_sets);
        (patch.verdict, patch.score, sets)
    };
    use PatchVerdict::{Dropped, Kept, Waiting};
    assert_eq!(of("half"), (Kept, 1.0, (1, 2)));
    assert_eq!(of("whole"), (Kept, 2.0, (2, 2)));
    assert_eq!(of("none"), (Dropped, 0.0, (0, 1)));
    assert_eq!(of("waiting"), (Waiting, 0.0, (0, 0)));
    assert_eq!(ranking(&ranked), ["whole", "half"]);
    assert!(ties(&ranked).is_empty());
}

#[test]
fn equal_patches_share_the_first_place() {
    let mut results = [
        result("a", "one", &["t"], &[]),
        result("a", "two", &["t"], &[]),
        result("a", "breaks", &["t"], &[]),
        result("a", "none", &[], &["t"]),
    ];
    results[2].regresses = vec!["u".to_owned()];
    let all: Vec<&SelectionResult> = results.iter().collect();
    assert_eq!(ties(&rank_patches(&all)), ["one", "two"]);
    assert!(ties(&rank_patches(&all[3..])).is_empty());
}
