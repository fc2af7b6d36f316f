#![allow(clippy::unwrap_used)]
use super::{build_log, file_name};

#[test]
fn long_log_keeps_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.log");
    std::fs::write(&path, b"0123456789\xff").unwrap();
    let cut = "01234567\n== 3 bytes omitted ==\n";
    assert_eq!(build_log(&path, 8).unwrap(), cut);
    assert_eq!(build_log(&path, 11).unwrap(), "0123456789\u{fffd}");
}

#[test]
fn different_names_never_collide() {
    assert_eq!(file_name("otter-1.0_b"), "otter-1.0_b");
    let names = [
        "a/b", "a_b", "a b", "..", ".", "", "instance", ".hidden", "../a",
    ];
    let mut names: std::collections::BTreeSet<String> =
        names.iter().map(|name| (*name).to_owned()).collect();
    names.extend(["x", "y"].map(|end| "x".repeat(90) + end));
    // A converted name is a valid name, too.
    for name in names.clone() {
        names.insert(file_name(&name));
    }
    let all: Vec<String> = names.iter().map(|name| file_name(name)).collect();
    let set: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(set.len(), all.len(), "{all:?}");
    for name in &all {
        assert!(!name.is_empty() && !name.starts_with('.') && !name.contains('/'));
        assert!(name != "instance" && name.len() < 120);
    }
}
