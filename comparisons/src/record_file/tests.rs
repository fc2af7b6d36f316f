#![allow(clippy::unwrap_used)]
use serde::Deserialize;

use super::*;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Named {
    name: String,
    value: u32,
}

impl Record for Named {
    type Key = String;
    const WHAT: &'static str = "a named value";

    fn key(&self) -> String {
        self.name.clone()
    }
}

fn named(name: &str, value: u32) -> Named {
    Named {
        name: name.to_owned(),
        value,
    }
}

#[test]
fn records_survive_and_incomplete_line_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/values.jsonl");
    assert!(RecordFile::<Named>::read(&path).unwrap().is_empty());
    let file = RecordFile::open(path.clone()).unwrap();
    let again = RecordFile::<Named>::open(path.clone());
    assert!(again.is_err(), "it is locked");
    for record in [named("a", 1), named("b", 2), named("a", 3)] {
        file.add(record).unwrap();
    }
    drop(file);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"name\":");
    std::fs::write(&path, text).unwrap();
    let file = RecordFile::open(path.clone()).unwrap();
    assert_eq!(file.get(&"a".to_owned()), Some(named("a", 3)));
    assert_eq!(file.find(|r: &Named| r.value < 3), Some(named("b", 2)));
    file.add(named("c", 4)).unwrap();
    assert_eq!(RecordFile::<Named>::read(&path).unwrap().len(), 3);
    let records = file.retain(["c", "gone", "a"].map(str::to_owned).into_iter());
    assert_eq!(records.unwrap(), [named("c", 4), named("a", 3)]);
    let again = RecordFile::<Named>::open(path.clone());
    assert!(again.is_err(), "it is still locked");
    file.add(named("d", 5)).unwrap();
    let lines = std::fs::read_to_string(&path).unwrap();
    let names: Vec<char> = lines.lines().filter_map(|l| l.chars().nth(20)).collect();
    assert_eq!(names, ['c', 'a', 'd']);
}

#[test]
fn invalid_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.jsonl");
    std::fs::write(&path, "\n{\"name\": 1}\n").unwrap();
    let error = RecordFile::<Named>::read(&path).unwrap_err();
    let cause = error.cause.unwrap();
    assert!(
        cause.starts_with("line 2 is not a named value: "),
        "{cause}"
    );
}
