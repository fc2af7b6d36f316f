//! `runs.jsonl`: a line a run, appended when it ends.

use std::collections::BTreeMap;
use std::path::Path;

use super::RUNS;
use super::run_record::{RunKey, RunRecord};
use crate::record_file::RecordFile;
use testwright_config::error::Result;

/// The runs of a folder, open for more.
pub type RunsFile = RecordFile<RunRecord>;

pub fn open(folder: &Path) -> Result<RunsFile> {
    RecordFile::open(folder.join(RUNS))
}

/// The runs of a folder that nothing is added to.
pub fn stored(folder: &Path) -> Result<BTreeMap<RunKey, RunRecord>> {
    RunsFile::read(&folder.join(RUNS))
}
