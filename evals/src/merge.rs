//! Merges the results folders of shards, which were graded on parts of one dataset.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

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
    /// The metadata of a folder could not be read, or the merged folder could not be written.
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
    write(&lines, out).map_err(|source| ReportError::Write {
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
    let results = ResultsFile::open(&path).map_err(|source| MergeError::Read { path, source })?;
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
        for log in line.graded.log_paths() {
            if let Ok(text) = read_below(folder, log) {
                write_below(out, log, &text)?;
            }
        }
    }
    write_atomically(&out.join(FILE), 0o644, |aside| {
        let mut lines = lines.values();
        lines.try_for_each(|(_, line)| line.write(&mut *aside))
    })
    .map(drop)
}

#[cfg(test)]
mod tests;
