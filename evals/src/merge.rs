//! Merges the results folders of shards, which were graded on parts of one dataset.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use testwright_sandboxes::plain_file::{LineReader, MAX_RECORDS};
use testwright_sandboxes::private;

use crate::folder::{read_below, write_atomically, write_below};
use crate::report::{ReportError, RunMetadata};
use crate::result::InstanceResult;
use crate::result::results_file::{FILE, ResultsFile, StoredResult};

/// Results folders that could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The results of a folder could not be read.
    #[error("read {path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The merged results could not be written.
    #[error("write {path}: {source}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The metadata of a folder could not be read or written.
    #[error(transparent)]
    Metadata(#[from] ReportError),
    /// The folders cannot be merged, for this reason.
    #[error("merge the results: {0}")]
    Conflict(String),
}

/// Results by prediction and instance, each with its folder.
type Lines<'f> = BTreeMap<(String, String), (&'f Path, StoredResult)>;

/// Merges results folders into a new folder, and returns its metadata. Reports are not written.
///
/// A result that several folders contain must have the same verdicts in all of them. A failure of the machine gives way
/// to a verdict. The metadata has a note if versions of the program or kinds of sandbox differ, if instances
/// of the dataset are missing, or if lines were ignored.
///
/// # Errors
///
/// Fails if the folders have different datasets, graders or verdicts, if the new folder already has results, or if a
/// file cannot be read or written.
pub fn merge(folders: &[&Path], out: &Path) -> Result<RunMetadata, MergeError> {
    if out.join(FILE).exists() {
        let message = format!("{} already has results", out.display());
        return Err(MergeError::Conflict(message));
    }
    let mut merged: Option<RunMetadata> = None;
    let mut lines = Lines::new();
    for folder in folders {
        let earlier: BTreeSet<String> = lines.keys().map(|(_, id)| id.clone()).collect();
        let (added, remarks) = add_lines(folder, &mut lines)?;
        let mut run = RunMetadata::read(folder)?;
        let of_folder = |remark: String| format!("{}: {remark}", folder.display());
        run.notes.extend(remarks.into_iter().map(of_folder));
        match &mut merged {
            None => merged = Some(run),
            Some(merged) => {
                let repeated = added.intersection(&earlier).count() as u64;
                merged.add_shard(run, repeated).map_err(|what| {
                    let folder = folder.display();
                    MergeError::Conflict(format!("{folder} was graded with another {what}"))
                })?;
            }
        }
    }
    let mut merged = merged.unwrap_or_default();
    merged.note_missing_instances();
    write(&lines, out).map_err(|source| MergeError::Write {
        path: out.join(FILE),
        source,
    })?;
    merged.write(out)?;
    Ok(merged)
}

/// Adds the results of a folder, and returns the ids of its instances and remarks on ignored lines.
fn add_lines<'f>(
    folder: &'f Path,
    lines: &mut Lines<'f>,
) -> Result<(BTreeSet<String>, Vec<String>), MergeError> {
    let path = folder.join(FILE);
    let read = LineReader::open(&path, MAX_RECORDS);
    let read = read.and_then(|mut lines| ResultsFile::read(&mut lines));
    let results = read.map_err(|source| MergeError::Read { path, source })?;
    let mut ids = BTreeSet::new();
    for (name, line) in results.by_name {
        ids.insert(name.1.clone());
        match lines.entry(name) {
            Entry::Vacant(place) => {
                place.insert((folder, line));
            }
            Entry::Occupied(mut place) => {
                let ((_, earlier), graded) = (place.get(), &line.graded);
                if earlier.graded.infrastructure.is_some() {
                    place.insert((folder, line));
                } else if graded.infrastructure.is_none() && !agree(&earlier.graded, graded) {
                    let (prediction, id) = place.key();
                    return Err(MergeError::Conflict(format!(
                        "{} has another result of `{prediction}` for `{id}`",
                        folder.display()
                    )));
                }
            }
        }
    }
    Ok((ids, results.remarks))
}

/// Returns whether two results have the same input and verdicts.
fn agree(a: &InstanceResult, b: &InstanceResult) -> bool {
    let verdicts = |g: &InstanceResult| (g.strict.fail_to_pass, g.swt.clone(), g.tdd.fail_to_pass);
    a.key == b.key && verdicts(a) == verdicts(b)
}

/// Writes the results, with the logs that exist.
fn write(lines: &Lines<'_>, out: &Path) -> io::Result<()> {
    private::create(out)?;
    for (folder, line) in lines.values() {
        let failed = line.graded.infrastructure.as_ref();
        let failed = failed.and_then(|failed| failed.log.as_ref());
        for log in line.graded.logs.values().chain(failed) {
            if let Ok(text) = read_below(folder, log) {
                write_below(out, log, &text)?;
            }
        }
    }
    write_atomically(&out.join(FILE), 0o644, |aside| {
        lines.values().try_for_each(|(_, line)| {
            aside.write_all(&line.text)?;
            aside.write_all(b"\n")
        })
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
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
        let folders: Vec<tempfile::TempDir> =
            results.chunks(1).map(|some| shard(some, "d")).collect();
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
        assert!(
            merged(&first, &shard(&[other], "d")).is_err_and(|e| e.contains("has another result"))
        );
    }
}
