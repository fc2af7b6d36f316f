//! What a folder of results holds when a command is cut short, and when it asks for something else.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::repository::GOOD;
use super::{Bench, ISSUE};
use crate::program::ended;

/// A bench of instances that run the same tests, so that one is graded as fast as many.
fn bench(instances: &[&str]) -> Bench {
    let bench = Bench::new(None);
    let all: Vec<Value> = instances
        .iter()
        .map(|id| bench.repository.instance(id, ISSUE))
        .collect();
    bench.dataset(&all);
    bench
}

/// The bytes of all files below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn report(bench: &Bench) -> Value {
    let output = bench
        .place
        .testwright()
        .args(["eval", "report", "--json"])
        .arg(bench.place.path("out"))
        .output()
        .unwrap();
    ended(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn results_that_are_not_asked_for_are_kept_and_the_command_is_refused() {
    let bench = bench(&["first", "second"]);
    let good = bench.repository.added(GOOD);
    bench.predictions(&[
        ("otter", "first", Some(&good)),
        ("otter", "second", Some(&good)),
    ]);
    ended(
        &bench
            .grade(&["--instances", "first"], "out")
            .output()
            .unwrap(),
        0,
    );
    let graded = report(&bench);
    assert_eq!(graded["summary"]["otter"]["instances"], 1);
    // The dataset has the other instance, which was not chosen.
    let remarks = graded["remarks"].to_string();
    assert!(!remarks.contains("no such instance"), "{remarks}");

    // More is no matter.
    ended(&bench.grade(&[], "out").output().unwrap(), 0);
    assert_eq!(bench.results("out").len(), 2);

    // As if a line had been cut short: that too is left as it is.
    let path = bench.place.path("out/results.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(b"{\"instance_id\": \"first\", \"predi");
    std::fs::write(&path, bytes).unwrap();
    let before = files(&bench.place.path("out"));
    let refused = |command: &mut Command, what: &str| {
        let output = command.output().unwrap();
        ended(&output, 2);
        let shown = String::from_utf8(output.stderr).unwrap();
        let out = bench.place.path("out");
        let cause = format!("{} holds {what}", out.display());
        assert!(shown.contains(&cause), "{shown}");
        assert!(shown.contains("--out"), "{shown}");
        assert!(files(&out) == before, "the folder was changed");
    };
    refused(
        &mut bench.grade(&["--instances", "first"], "out"),
        "1 result that this command does not ask for (otter: second)",
    );
    let both = "2 results that this command does not ask for (otter: first, second)";
    refused(&mut bench.command(&["verify"], "out"), both);
    bench.predictions(&[("beaver", "first", Some(&good))]);
    refused(&mut bench.grade(&[], "out"), both);
}
