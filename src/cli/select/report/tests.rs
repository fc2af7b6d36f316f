use super::*;

#[test]
fn selected_patch_is_one_line() {
    let choice = |resolves, tied: &[&str]| Choice {
        instance_id: "i".to_owned(),
        tests: "otter".to_owned(),
        patch: "p2".to_owned(),
        resolves,
        tied: tied.iter().map(|name| (*name).to_owned()).collect(),
    };
    assert_eq!(
        format_choice(&choice(None, &["p2"])),
        "i: best patch by otter: p2\n"
    );
    assert_eq!(
        format_choice(&choice(Some(false), &["p2"])),
        "i: best patch by otter: p2, which does not resolve the issue\n"
    );
    assert_eq!(
        format_choice(&choice(None, &["p2", "p3"])),
        "i: best patch by otter: p2; tied with p3; p2 is taken because it comes first\n"
    );
}

#[test]
fn each_ranked_patch_has_a_line() {
    let result = |tests: &str, patch: &str, passed: &[&str], failed: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        SelectionResult {
            instance_id: "i".to_owned(),
            tests: tests.to_owned(),
            patch: patch.to_owned(),
            passed: names(passed),
            failed: names(failed),
            ..SelectionResult::default()
        }
    };
    let mut results = vec![
        result("a", "right", &["t"], &[]),
        result("b", "right", &["t"], &[]),
        result("a", "wrong", &["t"], &[]),
        result("b", "wrong", &[], &["t"]),
        result("a", "forges", &[], &["t"]),
    ];
    results[2].regresses = vec!["u".to_owned()];
    results[4].forged = Some("it passes everything".to_owned());
    assert_eq!(
        format_rankings(&results),
        "i: right   kept       2 of 2 failing tests pass, passes 2 of 2 test sets, score 2\n\
         i: wrong   regresses  1 of 2 failing tests pass, passes 1 of 2 test sets, score 1; breaks u\n\
         i: forges  forged     0 of 1 failing tests pass, passes 0 of 1 test sets; it passes everything\n"
    );
    let line = "i: right  kept       2 of 2 failing tests pass, passes 2 of 2 test sets, score 2\n";
    assert_eq!(format_rankings(&results[..2]), line);
    let mut several = results[..2].to_vec();
    several[1].instance_id = "j".to_owned();
    assert_eq!(format_rankings(&several), "");
    results[0].probability = Some(0.5);
    results[1].probability = Some(0.126);
    let text = format_rankings(&results);
    assert!(text.contains("2 of 2 test sets, score 0.63\n"), "{text}");
}
