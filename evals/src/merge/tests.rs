#![allow(clippy::unwrap_used)]
use super::*;
use crate::predictions::{Warning, WarningKind};
use crate::report::{self, sample};
use crate::result::Infrastructure;

fn shard(results: &[InstanceResult], sha256: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = results
        .iter()
        .map(|g| serde_json::to_string(g).unwrap() + "\n")
        .collect();
    std::fs::write(folder.path().join(FILE), lines.concat()).unwrap();
    let run = RunMetadata {
        dataset_sha256: Some(sha256.to_owned()),
        instances: Some(3),
        seconds: Some(2.0),
        sets: vec!["a".to_owned()],
        ..RunMetadata::default()
    };
    run.write(folder.path()).unwrap();
    folder
}

fn merged(a: &tempfile::TempDir, b: &tempfile::TempDir) -> Result<(u64, u64), String> {
    let out = tempfile::tempdir().unwrap();
    let run = merge(&[a.path(), b.path()], out.path()).map_err(|e| e.to_string())?;
    assert_eq!(run.seconds, Some(4.0));
    let report = report::write(out.path(), &run).unwrap();
    let summary = &report.summary["a"];
    assert!(merge(&[a.path()], out.path()).is_err(), "it has results");
    Ok((summary.instances, summary.graded))
}

#[test]
fn merged_metadata_names_differences() {
    let results = sample::results(&["a"], 2, 1);
    let (first, second) = (shard(&results[..1], "d"), shard(&results[1..], "d"));
    let warning = |kind| Warning {
        model_name_or_path: "a".to_owned(),
        instance_id: "x".to_owned(),
        kind,
    };
    for (folder, version) in [(&first, "1.0.0"), (&second, "1.1.0")] {
        let run = RunMetadata {
            testwright: Some(version.to_owned()),
            sandbox: Some("local".to_owned()),
            predictions: vec![
                warning(WarningKind::Unknown),
                warning(WarningKind::Duplicate),
            ],
            ..RunMetadata::default()
        };
        run.write(folder.path()).unwrap();
    }
    let line = second.path().join(FILE);
    let text = std::fs::read_to_string(&line).unwrap();
    std::fs::write(&line, format!("{{}}\n{text}")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let run = merge(&[first.path(), second.path()], out.path()).unwrap();
    assert_eq!(
        (run.testwright, run.sandbox.as_deref()),
        (None, Some("local"))
    );
    assert_eq!(run.predictions.len(), 2);
    let has_note = |part: &str| run.notes.iter().any(|note| note.contains(part));
    assert!(
        has_note("different versions of testwright"),
        "{:?}",
        run.notes
    );
    assert!(has_note("line 1 of results.jsonl"), "{:?}", run.notes);
}

#[test]
fn overlapping_shards_count_instances_once() {
    let mut all = sample::results(&["a"], 3, 1);
    all.iter_mut().for_each(|g| g.infrastructure = None);
    all.sort_by(|a, b| a.instance_id.cmp(&b.instance_id));
    let ids: Vec<String> = all.iter().map(|g| g.instance_id.clone()).collect();
    // The first shard was interrupted before it graded the last of its instances.
    let (first, second) = (shard(&all[..1], "d"), shard(&all[1..], "d"));
    for (folder, selected) in [(&first, &ids[..2]), (&second, &ids[1..])] {
        let run = RunMetadata {
            instances: Some(selected.len() as u64),
            instance_ids: selected.to_vec(),
            ..RunMetadata::default()
        };
        run.write(folder.path()).unwrap();
    }
    let out = tempfile::tempdir().unwrap();
    let run = merge(&[first.path(), second.path()], out.path()).unwrap();
    assert_eq!((run.instances, &run.instance_ids), (Some(3), &ids));
    let report = report::write(out.path(), &run).unwrap();
    let summary = &report.summary["a"];
    assert_eq!((summary.instances, summary.graded), (3, 3));
}

#[test]
fn missing_shard_causes_note() {
    let results = sample::results(&["a"], 3, 1);
    let folders: Vec<tempfile::TempDir> = results.chunks(1).map(|some| shard(some, "d")).collect();
    for (folder, graded) in folders.iter().zip(&results) {
        let run = RunMetadata {
            instances: Some(1),
            dataset_instances: Some(3),
            instance_ids: vec![graded.instance_id.clone()],
            ..RunMetadata::default()
        };
        run.write(folder.path()).unwrap();
    }
    let out = tempfile::tempdir().unwrap();
    let notes = |folders: &[&Path], out: &str, parent: &Path| {
        merge(folders, &parent.join(out)).unwrap().notes
    };
    let [a, b, c] = [0, 1, 2].map(|at: usize| folders[at].path());
    assert_eq!(
        notes(&[a, b], "two", out.path()),
        ["the merged folders have 2 of the 3 instances of the dataset"]
    );
    let two = out.path().join("two");
    assert!(notes(&[two.as_path(), c], "three", out.path()).is_empty());
}

#[test]
fn shards_are_merged_unless_they_conflict() {
    let mut all = sample::results(&["a"], 5, 1);
    all.iter_mut().for_each(|g| g.infrastructure = None);
    let first = shard(&all[..3], "d");
    assert_eq!(merged(&first, &shard(&all[3..], "d")), Ok((6, 5)));
    // The same result counts once, and a failure of the machine gives way to a verdict.
    let mut failed = all[3].clone();
    failed.infrastructure = Some(Infrastructure::new("build", "no space".to_owned()));
    let broken = shard(&[all[2].clone(), failed], "d");
    assert_eq!(merged(&broken, &shard(&all[2..], "d")), Ok((4, 3)));
    assert!(
        merged(&first, &shard(&all[3..], "e"))
            .is_err_and(|e| e.contains("graded with another dataset"))
    );
    let mut other = all[0].clone();
    other.strict.fail_to_pass = !other.strict.fail_to_pass;
    assert!(merged(&first, &shard(&[other], "d")).is_err_and(|e| e.contains("has another result")));
}
