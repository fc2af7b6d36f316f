//! Bisection of lists whose verdicts are known in advance.

use super::*;
use Verdict::{CannotTell, Fails, Passes};

/// Reads a list: `P` passes, `F` fails, `?` cannot tell.
fn oracle(list: &str) -> Vec<Verdict> {
    let verdict = |letter| match letter {
        'P' => Passes,
        'F' => Fails,
        _ => CannotTell,
    };
    list.chars().map(verdict).collect()
}

/// Bisects a list whose last verdict is known. Returns the result and the number of questions.
fn bisect(list: &str, before: Verdict) -> (Boundary, usize) {
    let oracle = oracle(list);
    let mut verdicts = vec![None; oracle.len()];
    let last = oracle.len() - 1;
    verdicts[last] = Some(oracle[last]);
    let mut asked = 0;
    while let Some(at) = next(&verdicts, before) {
        assert_eq!(verdicts[at], None, "{list}: {at} was asked twice");
        verdicts[at] = Some(oracle[at]);
        asked += 1;
    }
    (boundary(&verdicts, before), asked)
}

fn found(before: Option<usize>, after: usize) -> Boundary {
    Boundary { before, after }
}

#[test]
fn monotonic_list_is_bisected() {
    let list = format!("{}{}", "P".repeat(40), "F".repeat(60));
    let (boundary, asked) = bisect(&list, Passes);
    assert_eq!(boundary, found(Some(39), 40));
    assert!(asked <= 1 + questions(100), "{asked}");
    assert_eq!(bisect("PF", Passes), (found(Some(0), 1), 1));
    assert_eq!(bisect("F", Passes), (found(None, 0), 0));
}

#[test]
fn fix_is_found_like_introduction() {
    for fix in 1..12 {
        let list = format!("{}{}", "F".repeat(fix), "P".repeat(12 - fix));
        assert_eq!(bisect(&list, Fails).0, found(Some(fix - 1), fix), "{list}");
    }
}

#[test]
fn failing_oldest_commit_ends_search() {
    assert_eq!(bisect("FFFFFF", Passes), (found(None, 0), 1));
}

#[test]
fn untestable_commits_leave_range() {
    assert_eq!(bisect("PP???FF", Passes).0, found(Some(1), 5));
    assert_eq!(bisect("PP?F?FF", Passes).0, found(Some(1), 3));
    assert_eq!(bisect("P?F", Passes).0, found(Some(0), 2));
    // Commits without a verdict elsewhere do not matter.
    assert_eq!(bisect("P?PPF?F?F", Passes).0, found(Some(3), 4));
}

#[test]
fn untestable_oldest_commits_are_skipped() {
    assert_eq!(bisect("??PPFF", Passes).0, found(Some(3), 4));
    assert_eq!(bisect("??FFFF", Passes).0, found(None, 2));
    let (boundary, asked) = bisect(&format!("{}F", "?".repeat(50)), Passes);
    assert_eq!(
        (boundary, asked),
        (found(None, 50), MAX_SKIPS_WITHOUT_START)
    );
}

/// Often only the newest releases of an old project can be tested.
#[test]
fn search_starts_at_newest_commits() {
    let list = format!("{}PFF", "?".repeat(97));
    let (boundary, asked) = bisect(&list, Passes);
    assert_eq!(boundary, found(Some(97), 98));
    assert!(asked <= 4, "{asked}");
    let list = format!("{}PPPPP{}", "?".repeat(60), "F".repeat(35));
    assert_eq!(bisect(&list, Passes).0, found(Some(64), 65));
    // A single release that cannot be tested does not end the search.
    let list = format!("{}PP?F", "?".repeat(50));
    assert_eq!(bisect(&list, Passes).0, found(Some(51), 53));
}

#[test]
fn search_leaves_block_of_untestable_commits() {
    let list = format!("{}{}{}", "P".repeat(30), "?".repeat(40), "F".repeat(30));
    let (boundary, _) = bisect(&list, Passes);
    assert_eq!(boundary, found(Some(29), 70));
    let list = format!("P{}{}", "?".repeat(9), "F".repeat(90));
    let (boundary, asked) = bisect(&list, Passes);
    assert_eq!(boundary, found(Some(0), 10));
    assert!(asked < 20, "{asked}");
}

/// The answers of a list with several changes decide, not the order in which they were found.
#[test]
fn newest_change_is_reported() {
    let verdicts: Vec<_> = oracle("PPFFPPFF").into_iter().map(Some).collect();
    assert_eq!(boundary(&verdicts, Passes), found(Some(5), 6));
    assert_eq!(next(&verdicts, Passes), None);
    let verdicts = [Some(Fails), None, Some(Passes), None, Some(Fails)];
    assert_eq!(next(&verdicts, Passes), Some(3));
}
