#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn plan_is_replaced_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |limit| Plan {
        problems_sha256: "a".to_owned(),
        models: vec!["m".to_owned()],
        approaches: single_call(),
        tasks: vec![Task::Assertion],
        budgets: vec![Budget::ProblemOnly],
        part: false,
        limit,
    };
    let out = folder.path().join("new");
    plan(None).write(&out).unwrap();
    // The earlier file is never rewritten, so a crash cannot cut it off.
    std::fs::hard_link(out.join(PLAN), out.join("earlier")).unwrap();
    plan(Some(1)).write(&out).unwrap();
    assert_eq!(Plan::read(&out).unwrap(), Some(plan(Some(1))));
    let earlier = std::fs::read_to_string(out.join("earlier")).unwrap();
    assert!(earlier.contains("\"limit\": null"), "{earlier}");
}
