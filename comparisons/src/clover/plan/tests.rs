#![allow(clippy::unwrap_used)]
use super::*;

fn plan(limit: Option<usize>) -> Plan {
    Plan {
        version: "2".to_owned(),
        problems_sha256: "a".to_owned(),
        models: vec!["m".to_owned()],
        approaches: single_call(),
        tasks: vec![Task::Assertion],
        budgets: vec![Budget::ProblemOnly],
        part: false,
        limit,
    }
}

#[test]
fn plan_is_replaced_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new");
    plan(None).write(&out).unwrap();
    // The earlier file is never rewritten, so a crash cannot cut it off.
    std::fs::hard_link(out.join(PLAN), out.join("earlier")).unwrap();
    plan(Some(1)).write(&out).unwrap();
    assert_eq!(Plan::read(&out).unwrap(), Some(plan(Some(1))));
    let earlier = std::fs::read_to_string(out.join("earlier")).unwrap();
    assert!(earlier.contains("\"limit\": null"), "{earlier}");
}

#[test]
fn folder_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = serde_json::to_value(plan(None)).unwrap();
    for version in ["1", ""] {
        recorded["version"] = version.into();
        std::fs::write(folder.path().join(PLAN), recorded.to_string()).unwrap();
        let error = plan(None).write(folder.path()).unwrap_err();
        assert_eq!(
            error.cause.unwrap(),
            "the folder contains answers to contexts of another version of testwright"
        );
        assert!(error.hint.unwrap().contains("--out"));
    }
    recorded.as_object_mut().unwrap().remove("version");
    let unversioned: Plan = serde_json::from_value(recorded).unwrap();
    assert!(unversioned.difference(&plan(None)).is_some());
    assert_eq!(plan(Some(1)).difference(&plan(None)), None);
}
