use super::*;

fn item(id: &str, line: usize) -> CollectedItem {
    CollectedItem {
        id: id.to_owned(),
        file: "tests/data.yaml".to_owned(),
        line,
    }
}

fn change(base: Option<&str>, now: &str) -> FileChange {
    FileChange {
        path: "tests/data.yaml".to_owned(),
        change: Change::Modified,
        base: base.map(|text| text.as_bytes().to_vec()),
        now: Some(now.as_bytes().to_vec()),
        base_mode: None,
        mode: None,
        oversized: None,
    }
}

fn found(base: &str, now: &str, before: &[CollectedItem], after: &[CollectedItem]) -> Vec<String> {
    let tests = compared(&[change(Some(base), now)], before, after);
    let summaries = tests.iter().map(|test| match test.change {
        Change::Added => format!("+{}", test.id),
        _ => format!("~{}", test.id),
    });
    summaries.collect()
}

#[test]
fn new_and_changed_parts_are_contributed() {
    let one = [item("d::a", 1)];
    let two = [item("d::a", 1), item("d::b", 3)];
    assert_eq!(found("a: 1\n", "a: 1\n\nb: 2\n", &one, &two), ["+d::b"]);
    assert_eq!(
        found("a: 1\n", "a: 2\n\nb: 2\n", &one, &two),
        ["~d::a", "+d::b"]
    );
    assert_eq!(found("a: 1\n", "a: 1\n", &one, &one), [""; 0]);
    // Without lines, each test is the whole file.
    let unknown = [item("d::a", 0)];
    assert_eq!(found("a: 1\n", "a: 2\n", &unknown, &unknown), ["~d::a"]);
    let more = [item("d::a", 0), item("d::b", 0)];
    assert_eq!(found("a: 1\n", "a: 1\nb: 2\n", &unknown, &more), ["+d::b"]);
    let sets = [item("d::a[x]", 1), item("d::a[y]", 1)];
    assert_eq!(found("", "a: 1\n", &[], &sets), ["+d::a"]);
}

#[test]
fn data_files_are_named_by_patterns() {
    let text = "files = find(pattern='check-*.test', exclude=[\"*.pyc\"])";
    assert!(quoted_globs(text).any(|glob| matches(glob, "data/check-a.test", "check-a.test")));
    assert!(!quoted_globs(text).any(|glob| matches(glob, "data/a.test", "a.test")));
}
