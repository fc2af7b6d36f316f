use super::*;

/// Returns a result for the instance `i`.
pub(super) fn sample(
    tests: &str,
    patch: &str,
    passed: &[&str],
    failed: &[&str],
) -> SelectionResult {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    SelectionResult {
        instance_id: "i".to_owned(),
        tests: tests.to_owned(),
        patch: patch.to_owned(),
        passed: names(passed),
        failed: names(failed),
        ..SelectionResult::default()
    }
}

fn result(
    instance: &str,
    patch: &str,
    passed: &[&str],
    failed: &[&str],
    resolves: bool,
) -> SelectionResult {
    SelectionResult {
        instance_id: instance.to_owned(),
        resolves: Some(resolves),
        ..sample("t", patch, passed, failed)
    }
}

#[test]
fn choices_need_several_patches() {
    let all = [
        result("i", "p1", &["a"], &["b"], false),
        result("i", "p2", &["a", "b"], &[], true),
        result("j", "p1", &["a"], &[], true),
        result("k", "p1", &[], &["a"], false),
        result("k", "p2", &[], &["a"], false),
    ];
    let actual = choices(&all);
    assert_eq!(
        actual,
        [Choice {
            instance_id: "i".to_owned(),
            tests: "t".to_owned(),
            patch: "p2".to_owned(),
            resolves: Some(true),
            tied: vec!["p2".to_owned()],
        }]
    );
    assert_eq!(summaries(&all)[0].codet.denominator, 1);
}

#[test]
fn tied_patches_share_rank() {
    let mut all = [
        result("i", "p1", &["a"], &[], true),
        result("i", "p2", &["a"], &[], true),
        result("i", "p3", &["a"], &[], true),
        result("i", "p4", &[], &["a"], true),
        result("j", "p1", &[], &[], true),
    ];
    all[2].regresses = vec!["b".to_owned()];
    let ranks: Vec<_> = rankings(&all)
        .into_iter()
        .map(|of| (of.patch, of.rank, of.verdict, of.reasons.join("; ")))
        .collect();
    let expected = [
        ("p1", Some(1), SelectionVerdict::Kept, ""),
        ("p2", Some(1), SelectionVerdict::Kept, ""),
        ("p3", Some(3), SelectionVerdict::Regresses, "breaks b"),
        ("p4", None, SelectionVerdict::Dropped, ""),
        (
            "p1",
            None,
            SelectionVerdict::Undecided,
            "no test fails on the old code",
        ),
    ]
    .map(|(patch, rank, verdict, reasons)| (patch.to_owned(), rank, verdict, reasons.to_owned()));
    assert_eq!(ranks, expected);
}

#[test]
fn instance_without_existing_tests_is_listed() {
    let new = |instance: &str| SelectionResult {
        no_existing_tests: true,
        ..result(instance, "p", &["a"], &[], true)
    };
    let old = result("j", "p", &["a"], &[], true);
    assert_eq!(without_existing_tests(&[new("i"), new("j"), old]), ["i"]);
}

#[test]
fn forged_patches_are_not_selected() {
    let all = [
        result("i", "right", &["a"], &[], true),
        SelectionResult {
            regresses: vec!["b".to_owned()],
            ..result("i", "breaks", &["a"], &[], false)
        },
        SelectionResult {
            forged: Some("x".to_owned()),
            ..result("i", "forges", &[], &["a"], false)
        },
    ];
    let summary = &summaries(&all)[0];
    let counts = (
        summary.selected,
        summary.regressing,
        summary.forged,
        summary.dropped,
        summary.undecided,
    );
    assert_eq!(counts, (2, 1, 1, 0, 0));
    let verdicts = summary.kept() + summary.regressing + summary.forged;
    assert_eq!(verdicts, summary.patches);
    assert_eq!(summary.precision.denominator, 2);
    assert_eq!(summary.codet.numerator, 1);
}

#[test]
fn precision_and_recall_match_the_papers() {
    let mut all = vec![
        result("i", "p", &["a"], &[], true),
        result("j", "p", &["a"], &["b"], false),
        result("k", "p", &[], &["a"], true),
        result("l", "p", &[], &[], true),
    ];
    all.push(SelectionResult {
        infrastructure: Some("build".to_owned()),
        ..result("m", "p", &[], &[], false)
    });
    let summary = &summaries(&all)[0];
    let counts = (
        summary.patches,
        summary.selected,
        summary.dropped,
        summary.undecided,
        summary.infrastructure,
    );
    assert_eq!(counts, (4, 2, 1, 1, 1));
    assert_eq!(
        (summary.precision.numerator, summary.precision.denominator),
        (1, 2)
    );
    assert_eq!(
        (summary.recall.numerator, summary.recall.denominator),
        (1, 3)
    );
    assert_eq!(summary.codet.denominator, 0);
}
