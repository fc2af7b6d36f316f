//! The result files of a run.

use testwright_evals::folder::Versioned;

use super::{REVISION_FILE, Record};
use crate::outcome::Outcome;
use crate::trajectory::RunFolder;
use testwright_config::error::Result;

/// Names of the files that a run writes besides its trajectory.
pub const RESULT_FILES: [&str; 7] = [
    "run.json",
    "test.patch",
    "evidence.json",
    "refused.patch",
    "withheld.patch",
    "recipe.toml",
    REVISION_FILE,
];

/// Writes the files of a run next to its trajectory.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_results(folder: &RunFolder, record: &Record) -> Result<()> {
    write_outcome(folder, &record.outcome)?;
    Ok(folder.write_json("run.json", &Versioned::new(record))?)
}

/// Writes only the files of the outcome, for a run without a record.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_outcome(folder: &RunFolder, outcome: &Outcome) -> Result<()> {
    let (file, patch, evidence) = match outcome {
        Outcome::Accepted { patch, evidence } => ("test.patch", patch, Some(evidence)),
        Outcome::Refused { patch, .. } => ("refused.patch", patch, None),
        Outcome::Withheld {
            patch, evidence, ..
        } => ("withheld.patch", patch, evidence.as_ref()),
        Outcome::Abstained { .. } => {
            return Ok(folder.write_json("evidence.json", &Versioned::new(outcome))?);
        }
        _ => return Ok(()),
    };
    folder.write(file, patch.as_bytes())?;
    if let Some(evidence) = evidence {
        folder.write_json("evidence.json", &Versioned::new(evidence))?;
    }
    Ok(())
}
