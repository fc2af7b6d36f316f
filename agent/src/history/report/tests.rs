use super::*;

fn point(commit: &str, day: i64, name: Option<&str>) -> Point {
    Point {
        commit: commit.to_owned(),
        committed: day * 24 * 3600,
        name: name.map(str::to_owned),
    }
}

fn entry(commit: &str, day: i64, name: Option<&str>, verdict: Verdict) -> Entry {
    Entry {
        point: point(commit, day, name),
        answer: Answer {
            verdict,
            reason: String::new(),
            is_external: false,
        },
    }
}

fn report(head: Verdict) -> HistoryReport {
    HistoryReport {
        base: "base".to_owned(),
        head: "head".to_owned(),
        branch: "main".to_owned(),
        answers: vec![
            entry("old", 1, Some("1.0"), Verdict::Fails),
            entry("base", 5, None, Verdict::Fails),
            entry("head", 9, Some("main"), head),
        ],
        ..HistoryReport::default()
    }
}

fn summary(mut report: HistoryReport) -> String {
    report.summarize();
    report.summary
}

#[test]
fn summary_names_versions_and_commits() {
    let mut exact = report(Verdict::Fails);
    assert_eq!(
        summary(exact.clone()),
        "Fails at base; still fails on main."
    );
    let mut introduced = Change {
        bounded: false,
        last_release_before: Some("1.0".to_owned()),
        first_release_after: Some("1.1".to_owned()),
        commits: vec![point("abc", 2, None)],
    };
    exact.introduced = Some(introduced.clone());
    assert_eq!(
        summary(exact.clone()),
        "Fails since 1.1 or earlier; still fails on main."
    );
    introduced.bounded = true;
    exact.introduced = Some(introduced);
    assert_eq!(
        summary(exact.clone()),
        "Fails since 1.1, introduced by abc (1970-01-03); still fails on main."
    );
    exact.fixed = Some(Change {
        bounded: true,
        last_release_before: Some("1.1".to_owned()),
        first_release_after: None,
        commits: vec![
            point("d", 6, None),
            point("e", 7, None),
            point("f", 8, None),
        ],
    });
    exact.notes = vec!["The verdict changes more than once".to_owned()];
    assert_eq!(
        summary(exact),
        "Fails since 1.1, introduced by abc (1970-01-03); fixed by one of 3 commits: d..f, not released yet. \
         The verdict changes more than once."
    );
}

#[test]
fn unknown_head_is_not_called_fixed() {
    let mut unknown = report(Verdict::CannotTell);
    unknown.answers[2].answer.reason = "no environment".to_owned();
    assert_eq!(
        summary(unknown),
        "Fails at base; cannot tell on main: no environment."
    );
}

#[test]
fn table_has_line_per_answer() {
    let lines = report(Verdict::Passes).table();
    assert_eq!(
        lines,
        [
            "version  commit  date        verdict  reason",
            "1.0      old     1970-01-02  fails",
            "         base    1970-01-06  fails",
            "main     head    1970-01-10  passes",
        ]
    );
    let page = report(Verdict::Passes).markdown();
    assert!(
        page.contains("| main | head | 1970-01-10 | passes |"),
        "{page}"
    );
}
