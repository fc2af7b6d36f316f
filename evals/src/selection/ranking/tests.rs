#![allow(clippy::unwrap_used)]
use super::*;
use crate::selection::tests::sample as result;

fn ranking(all: &[SelectionResult]) -> Vec<(String, &'static str, f64)> {
    let all: Vec<&SelectionResult> = all.iter().collect();
    let place = |ranked: RankedPatch| {
        let verdict = ranked.result.verdict().as_str();
        (ranked.result.patch, verdict, ranked.score)
    };
    rank_patches(&all).into_iter().map(place).collect()
}

#[test]
fn codet_maximizes_patches_times_tests() {
    let all = [
        result("t", "p1", &["a"], &["b"]),
        result("t", "p2", &["a", "b"], &[]),
        result("t", "p3", &["a"], &["b"]),
        result("t", "p4", &[], &["a", "b"]),
    ];
    let of: Vec<&SelectionResult> = all.iter().collect();
    // 2 patches × 1 test against 1 patch × 2 tests: the first group.
    assert_eq!(tied_patches(&of)[0].patch, "p1");
    assert_eq!(tied_patches(&of[1..])[0].patch, "p2");
    assert!(tied_patches(&of[3..]).is_empty());
    let tied: Vec<&str> = tied_patches(&of).iter().map(|r| r.patch.as_str()).collect();
    assert_eq!(tied, ["p1", "p3", "p2"]);
}

#[test]
fn rule_all_drops_partial_patches() {
    let rule = |result: SelectionResult| SelectionResult {
        rule: KeepRule::All,
        ..result
    };
    let all = [
        rule(result("weak", "none", &["a"], &[])),
        rule(result("strong", "none", &[], &["b"])),
        rule(result("weak", "right", &["a"], &[])),
        rule(result("strong", "right", &["b"], &[])),
    ];
    let expected = [
        ("right".to_owned(), "kept", 2.0),
        ("none".to_owned(), "dropped", 0.0),
    ];
    assert_eq!(ranking(&all), expected);
}

#[test]
fn clean_patches_rank_first() {
    let text = || vec!["x".to_owned()];
    let all = [
        SelectionResult {
            regresses: text(),
            ..result("t", "breaks", &["a", "b"], &[])
        },
        SelectionResult {
            suspicions: text(),
            ..result("t", "equals", &["a", "b"], &[])
        },
        SelectionResult {
            forged: Some("x".to_owned()),
            ..result("t", "forges", &[], &["a", "b"])
        },
        result("t", "drops", &[], &["a", "b"]),
        result("t", "clean", &["a"], &["b"]),
    ];
    let expected = [
        ("clean", "kept", 1.0),
        ("breaks", "regresses", 4.0),
        ("equals", "kept", 4.0),
        ("drops", "dropped", 0.0),
        ("forges", "forged", 0.0),
    ];
    let expected = expected.map(|(patch, verdict, score)| (patch.to_owned(), verdict, score));
    assert_eq!(ranking(&all), expected);
    let of: Vec<&SelectionResult> = all.iter().collect();
    assert_eq!(tied_patches(&of)[0].patch, "clean");
}

#[test]
fn test_sets_are_scored_together() {
    let all = [
        result("a", "half", &["t"], &[]),
        result("b", "half", &[], &["t"]),
        result("a", "whole", &["t"], &[]),
        result("b", "whole", &["t"], &[]),
        result("a", "none", &[], &["t"]),
        result("b", "none", &[], &[]),
    ];
    let of: Vec<&SelectionResult> = all.iter().collect();
    let ranked = rank_patches(&of);
    let sets: Vec<(&str, f64, usize, usize)> = ranked
        .iter()
        .map(|of| (of.result.patch.as_str(), of.score, of.passed_sets, of.sets))
        .collect();
    assert_eq!(
        sets,
        [
            ("whole", 2.0, 2, 2),
            ("half", 1.0, 1, 2),
            ("none", 0.0, 0, 1)
        ]
    );
}

#[test]
fn probabilities_weigh_test_sets() {
    let ranked =
        |names: [(&str, f64); 2]| names.map(|(patch, score)| (patch.to_owned(), "kept", score));
    let mut all = [
        result("unlikely", "wrong", &["t"], &[]),
        result("likely", "wrong", &[], &["t"]),
        result("unlikely", "right", &[], &["t"]),
        result("likely", "right", &["t"], &[]),
    ];
    assert_eq!(ranking(&all), ranked([("wrong", 1.0), ("right", 1.0)]));
    for result in &mut all {
        let is_likely = result.tests == "likely";
        result.probability = Some(if is_likely { 0.9 } else { 0.2 });
    }
    assert_eq!(ranking(&all), ranked([("right", 0.9), ("wrong", 0.2)]));
    // A set that was not checked weighs 1.
    for result in all.iter_mut().filter(|of| of.tests == "unlikely") {
        result.probability = None;
    }
    assert_eq!(ranking(&all), ranked([("wrong", 1.0), ("right", 0.9)]));
}

#[test]
fn equal_sums_of_weights_tie() {
    let weighed = |tests: &str, patch: &str, probability| SelectionResult {
        probability: Some(probability),
        ..result(tests, patch, &["t"], &[])
    };
    let all = [
        weighed("d", "one set", 0.6),
        weighed("a", "three sets", 0.1),
        weighed("b", "three sets", 0.2),
        weighed("c", "three sets", 0.3),
    ];
    let scores: Vec<f64> = ranking(&all).iter().map(|ranked| ranked.2).collect();
    assert_eq!(scores, [0.6, 0.6]);
    assert_eq!(ranking(&all)[0].0, "one set");
}

#[test]
fn reasons_name_broken_tests() {
    let broken = SelectionResult {
        regresses: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        left_out: vec!["conftest.py: it is test support".to_owned()],
        ..result("t", "p", &["x"], &[])
    };
    assert_eq!(
        broken.reasons(),
        [
            "breaks a, b, c, 1 more",
            "left out conftest.py: it is test support"
        ]
    );
    let uncollected = SelectionResult {
        uncollected: Some("the tests cannot be collected: SyntaxError".to_owned()),
        left_out: Vec::new(),
        ..broken
    };
    let reason = "the tests cannot be collected: SyntaxError";
    assert_eq!(uncollected.reasons(), [reason]);
}
