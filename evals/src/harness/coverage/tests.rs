#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use super::*;

fn coverage(statements: &[u32], executed: &[u32], called: &[u32]) -> Coverage {
    let lines = Ran {
        statements: statements.to_vec(),
        executed: executed.to_vec(),
        called: called.to_vec(),
        counts: BTreeMap::new(),
    };
    Coverage {
        files: [("a.py".to_owned(), lines)].into(),
        problem: None,
        lost: 0,
        contexts: Default::default(),
    }
}

fn changed(removed: &[u32], added: &[u32]) -> ChangedLines {
    let of = |lines: &[u32]| match lines {
        [] => Lines::new(),
        some => [("a.py".to_owned(), some.iter().copied().collect())].into(),
    };
    ChangedLines {
        removed: of(removed),
        added: of(added),
    }
}

#[test]
fn lines_that_no_suite_runs_are_excluded() {
    let nothing = coverage(&[1, 2, 3, 4], &[1], &[]);
    let golden = coverage(&[1, 2, 3, 4], &[1, 2, 3], &[2, 3]);
    let mine = coverage(&[1, 2, 3, 4], &[1, 2], &[2]);
    let side = SideCoverage {
        base: vec![&nothing],
        golden: Some(&golden),
        own: Some(&mine),
        changed: None,
    };
    // Line 1 runs during import, in the base suite too, so not more often with the prediction.
    assert_eq!(
        change_coverage(&changed(&[], &[1, 2, 3, 4]), &side, &side),
        Ok(LineCoverage { lines: 1, of: 3 })
    );
    // Without a base suite, only the prediction causes the import.
    let own = SideCoverage {
        base: Vec::new(),
        ..side.clone()
    };
    assert_eq!(
        change_coverage(&changed(&[], &[1, 2, 3, 4]), &own, &own),
        Ok(LineCoverage { lines: 2, of: 3 })
    );
    let none = change_coverage(&changed(&[4], &[]), &side, &side).unwrap();
    assert_eq!((none.of, none.share()), (0, None));
}

#[test]
fn lines_of_changed_tests_are_counted() {
    let base = coverage(&[1, 2, 3], &[1, 2], &[1, 2]);
    let mine = coverage(&[1, 2, 3], &[1, 2, 3], &[1, 2, 3]);
    let counted = |times: &[(u32, u64)]| {
        let mut counted = coverage(&[], &[], &[]);
        let lines = counted.files.get_mut("a.py").unwrap();
        lines.counts = times.iter().copied().collect();
        counted
    };
    let (before, after) = (
        counted(&[(1, 4), (2, 4)]),
        counted(&[(1, 4), (2, 5), (3, 1)]),
    );
    let side = SideCoverage {
        base: vec![&base],
        golden: Some(&mine),
        own: Some(&mine),
        changed: Some(ChangedTestCounts {
            before: &before,
            after: &after,
        }),
    };
    let delta = change_coverage(&changed(&[], &[1, 2, 3]), &side, &side);
    assert_eq!(delta, Ok(LineCoverage { lines: 2, of: 3 }));
}

#[test]
fn undecided_lines_need_the_base_suite() {
    let golden = coverage(&[1, 2, 3, 4], &[1, 2, 3], &[2, 3]);
    let own = coverage(&[1, 2, 3, 4], &[1, 2], &[2]);
    let lines = changed(&[], &[1, 2, 3, 4, 5]).added;
    let of = |golden: Option<&Coverage>, own: Option<&Coverage>| {
        let undecided_lines = undecided(&lines, golden, own);
        let lines = undecided_lines.into_values().flatten();
        lines.collect::<Vec<_>>()
    };
    // Line 1 runs only during import, no golden test runs line 4, and line 5 is not a statement.
    assert_eq!(of(Some(&golden), Some(&own)), [1, 4]);
    assert_eq!(of(Some(&golden), None), [4]);
    assert_eq!(of(None, Some(&own)), [0; 0]);
    let mut broken = own.clone();
    broken.problem = Some("the process ended".to_owned());
    assert_eq!(of(Some(&golden), Some(&broken)), [0; 0]);
    assert!(any_called(&lines, Some(&own)) && !any_called(&lines, None));
}

#[test]
fn adequacy_counts_statements_of_both_sides() {
    let old = coverage(&[1, 2, 5], &[1, 5], &[]);
    let new = coverage(&[1, 3], &[1, 3], &[]);
    let lines = changed(&[2, 4, 5], &[3]);
    let of = |lines: &ChangedLines| adequacy(lines, [Some(&old), Some(&new)], [None; 2]);
    assert_eq!(of(&lines).covered, LineCoverage { lines: 2, of: 3 });
    assert_eq!(of(&lines).problem, None);
    assert_eq!(of(&changed(&[4], &[2])).covered.share(), None);
    // Without a prediction, the golden tests show which lines are statements.
    let none = adequacy(&lines, [None; 2], [Some(&old), Some(&new)]);
    assert_eq!(none.covered, LineCoverage { lines: 0, of: 3 });
}

#[test]
fn killed_run_gives_no_figure() {
    let mut old = coverage(&[1], &[1], &[1]);
    old.problem = Some("the process ended".to_owned());
    let lines = changed(&[1], &[]);
    let result = adequacy(&lines, [Some(&old); 2], [None; 2]);
    assert_eq!(
        result.problem.unwrap().to_string(),
        "the contributed tests: the process ended"
    );
    // Lines that were seen to run still count.
    assert_eq!(result.covered, LineCoverage { lines: 1, of: 1 });
    // A killed process leaves only the name of the file.
    let mut ended = coverage(&[], &[], &[]);
    ended.problem = Some("the process ended".to_owned());
    let full_coverage = coverage(&[1, 2], &[1, 2], &[1, 2]);
    let result = adequacy(&lines, [Some(&ended); 2], [Some(&full_coverage); 2]);
    assert_eq!(result.covered, LineCoverage { lines: 0, of: 1 });
    // Lost child processes make ΔC unknown for the contributed tests, but not for the base suite.
    let (mut lost, fine) = (coverage(&[1], &[1], &[1]), coverage(&[1], &[], &[]));
    lost.lost = 1;
    let side = |base, own| SideCoverage {
        base: vec![base],
        golden: Some(&fine),
        own: Some(own),
        changed: None,
    };
    let of = |side: &SideCoverage<'_>| change_coverage(&lines, side, side);
    assert!(of(&side(&fine, &lost)).is_err());
    assert_eq!(
        of(&side(&lost, &fine)),
        Ok(LineCoverage { lines: 0, of: 1 })
    );
}
