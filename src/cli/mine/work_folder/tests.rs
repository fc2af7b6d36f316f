#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn dataset_cannot_take_the_place_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let begin = |name: &str| WorkFolder::beside(&folder.path().join(name));
    for name in ["fresh.work", "fresh.md"] {
        assert!(begin(name).is_err(), "{name}");
    }
    assert!(!folder.path().join("fresh.work").exists());
    let work = begin("fresh.jsonl").unwrap();
    assert_eq!(work.grading(), folder.path().join("fresh.work/grading"));
}
