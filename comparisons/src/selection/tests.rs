#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn tables_show_ties_and_reasons() {
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
        result("a", "p1", &["t", "u"], &[]),
        result("a", "p2", &["t", "u"], &[]),
        result("a", "p3", &["t"], &["u"]),
        result("b", "=p1", &[], &[]),
    ];
    results[2].regresses = vec!["v".to_owned()];
    let text = String::from_utf8(csv(&results).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "i,a,p1,kept,2,0,0,4,true,,",
            "i,a,p2,kept,2,0,0,4,true,,",
            "i,a,p3,regresses,1,1,1,1,false,,breaks v",
            "i,b,'=p1,undecided,0,0,0,0,false,,no test fails on the old code",
        ]
    );
    let text = report(&[("Repository", "slugs".to_owned())], &results);
    for part in [
        "- Repository: slugs\n",
        "| i | p3 | regresses | 1 of 2 | 0 of 1 | 1 | breaks v |\n",
        "| i | a | p1 | p2 |\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The verdicts of a set of tests add up to its patches.
    assert!(text.contains("| a | 3 | 2 | 1 | 0 | 0 | 0 |\n"), "{text}");
    assert!(!text.contains("Precision"), "{text}");
    results[0].resolves = Some(true);
    assert!(report(&[], &results).contains("| Precision |"), "{text}");
}
