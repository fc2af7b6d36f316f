//! The work folder beside the dataset. It lets an interrupted command resume and produce the same file.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use testwright_evals::folder::write_file;
use testwright_evals::mine::IssueText;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};
use testwright_sandboxes::private;

use testwright_comparisons::record_file::read_document;
use testwright_config::error::{Error, Result};

/// Parameters of a mining command. `head` is fixed at the first start, because branches move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MiningPlan {
    pub repo: String,
    pub head: String,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub max_changed_lines: Option<usize>,
}

/// The work folder, `NAME.work`.
pub(super) struct WorkFolder {
    folder: PathBuf,
}

impl WorkFolder {
    pub(super) fn beside(out: &Path) -> Result<WorkFolder> {
        for (ending, what) in [
            ("work", "the work folder"),
            ("md", "the table of rejected changes"),
        ] {
            if out.with_extension(ending) == out {
                return Err(Error::usage("create the dataset")
                    .cause(format!("{} is the path of {what}", out.display()))
                    .hint("pass a file such as instances.jsonl with --out"));
            }
        }
        let folder = out.with_extension("work");
        let issues = folder.join("issues");
        private::create(&issues)
            .map_err(|error| Error::io(format!("create {}", issues.display()), &error))?;
        Ok(WorkFolder { folder })
    }

    /// Returns the folder with the graded golden tests of the candidates.
    pub(super) fn grading(&self) -> PathBuf {
        self.folder.join("grading")
    }

    /// Returns the path of the dataset of all candidates, fail-to-pass or not.
    pub(super) fn dataset(&self) -> PathBuf {
        self.folder.join("candidates.jsonl")
    }

    /// Returns the path of the table of rejected candidates.
    pub(super) fn table(&self) -> PathBuf {
        self.folder.join("table.json")
    }

    /// Reads the plan of the command that created this folder.
    pub(super) fn plan(&self) -> Result<Option<MiningPlan>> {
        let hint = "remove the folder, or pass another file with --out";
        read_document(&self.folder.join("plan.json"), Some(hint))
    }

    /// Writes the plan, or checks that the earlier one is the same.
    pub(super) fn write_or_check_plan(
        &self,
        plan: &MiningPlan,
        earlier: Option<&MiningPlan>,
    ) -> Result<()> {
        match earlier {
            Some(earlier) if earlier == plan => Ok(()),
            Some(_) => Err(Error::usage(format!("resume in {}", self.folder.display()))
                .cause("it was started with another repository, other dates or another limit")
                .hint("pass the same options, or another file with --out")),
            None => self.write("plan.json", plan),
        }
    }

    /// Returns a stored issue text, as it was at the time of this candidate's fix.
    pub(super) fn issue(&self, candidate: &str, number: u64) -> Option<IssueText> {
        let path = self.folder.join(issue_name(candidate, number));
        let bytes = plain_file::read(&path, Links::Refuse, MAX_DOCUMENT).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(super) fn write_issue(&self, candidate: &str, text: &IssueText) -> Result<()> {
        self.write(&issue_name(candidate, text.number), text)
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let path = self.folder.join(name);
        let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        write_file(&path, text.as_bytes())
            .map_err(|error| Error::io(format!("write {}", path.display()), &error))
    }
}

fn issue_name(candidate: &str, number: u64) -> String {
    format!("issues/{candidate}.{number}.json")
}

#[cfg(test)]
mod tests;
