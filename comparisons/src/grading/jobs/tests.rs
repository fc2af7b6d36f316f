#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

fn result(has_patch: bool) -> InstanceResult {
    InstanceResult {
        instance_id: "i".to_owned(),
        prediction: "m".to_owned(),
        key: "k".to_owned(),
        repo: "own/package".to_owned(),
        has_patch,
        applied: has_patch,
        ..InstanceResult::default()
    }
}

#[test]
fn failed_runs_of_earlier_versions_are_dropped() {
    let instance: Instance = serde_json::from_value(json!({
        "instance_id": "i", "repo": "own/package", "base_commit": "0123abc", "problem_statement": "It fails"
    }))
    .unwrap();
    let jobs = [Job {
        instance: &instance,
        predictions: Vec::new(),
    }];
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::open(folder.path()).unwrap();
    let check = |results: &mut Results, model: &str| {
        let set = Predictions {
            model: model.to_owned(),
            ..Predictions::default()
        };
        check_folder(&jobs, &[set], results, folder.path())
    };
    results.add(result(false)).unwrap();
    assert!(check(&mut results, "other").is_err());
    assert_eq!(results.all().count(), 1);
    check(&mut results, "m").unwrap();
    assert_eq!(results.all().count(), 0);
    results.add(result(true)).unwrap();
    assert!(check(&mut results, "m").is_err());
}
