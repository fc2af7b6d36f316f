//! What is kept beside the dataset while it is made: with it, a command that was ended goes on and comes to the same file.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use testwright_evals::mine::{self, IssueText};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};
use testwright_sandboxes::private;

use testwright_config::error::{Error, Result};

/// What is mined. The newest commit is that of the first time: branches move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub repo: String,
    pub head: String,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub max_changed_lines: Option<usize>,
}

/// The folder `NAME.work`.
pub struct Work {
    folder: PathBuf,
}

impl Work {
    pub fn beside(out: &Path) -> Result<Work> {
        let folder = out.with_extension("work");
        if folder == out {
            return Err(Error::usage("make a dataset")
                .cause(format!("{} is the folder of what is kept", out.display()))
                .hint("name a file such as instances.jsonl with --out"));
        }
        let issues = folder.join("issues");
        private::create(&issues)
            .map_err(|error| Error::io(format!("make {}", issues.display()), &error))?;
        Ok(Work { folder })
    }

    /// Golden tests of the candidates, as they were graded.
    pub fn grading(&self) -> PathBuf {
        self.folder.join("grading")
    }

    /// The candidates, whether they turn or not.
    pub fn dataset(&self) -> PathBuf {
        self.folder.join("candidates.jsonl")
    }

    /// All that fell out.
    pub fn table(&self) -> PathBuf {
        self.folder.join("table.json")
    }

    /// What was begun here.
    pub fn plan(&self) -> Result<Option<Plan>> {
        let path = self.folder.join("plan.json");
        match plain_file::read(&path, Links::Refuse, MAX_DOCUMENT) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                Error::usage(format!("read {}", path.display()))
                    .cause(error)
                    .hint("remove the folder, or name another file with --out")
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("read {}", path.display()), &error)),
        }
    }

    /// Refuses to go on with another plan than what was begun.
    pub fn keep(&self, plan: &Plan, earlier: Option<&Plan>) -> Result<()> {
        match earlier {
            Some(earlier) if earlier == plan => Ok(()),
            Some(_) => Err(Error::usage(format!("go on in {}", self.folder.display()))
                .cause("it was begun with another repository, other dates or another limit")
                .hint("give the same, or another file with --out")),
            None => self.write("plan.json", plan),
        }
    }

    /// A text that was read before, as it was when the fix of this candidate came.
    pub fn issue(&self, candidate: &str, number: u64) -> Option<IssueText> {
        let path = self.folder.join(issue_name(candidate, number));
        let bytes = plain_file::read(&path, Links::Refuse, MAX_DOCUMENT).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub fn keep_issue(&self, candidate: &str, text: &IssueText) -> Result<()> {
        self.write(&issue_name(candidate, text.number), text)
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let path = self.folder.join(name);
        let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        mine::write_text(&path, &text)
            .map_err(|error| Error::io(format!("write {}", path.display()), &error))
    }
}

fn issue_name(candidate: &str, number: u64) -> String {
    format!("issues/{candidate}.{number}.json")
}
