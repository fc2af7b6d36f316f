use std::collections::BTreeSet;

use super::*;

#[test]
fn api_description_is_stable() {
    let description = serde_json::to_string_pretty(&description()).unwrap();
    insta::assert_snapshot!(description);
}

#[test]
fn operation_names_are_unique() {
    let description = serde_json::to_value(description()).unwrap();
    let mut names = BTreeSet::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} {path}");
        }
    }
    assert!(names.contains("runs_list") && names.contains("gradings_list"));
}
