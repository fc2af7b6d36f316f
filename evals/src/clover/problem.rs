//! A problem: a test file with one test, the question about it, and the code that may be shown with it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use testwright_tools::python::SingleTest;

use crate::cases::context::ContextClass;

/// Placeholder for the missing statements.
pub const PLACEHOLDER: &str = "...";

/// A CLOVER task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Fill the blank of an assertion.
    Assertion,
    /// Write a test that calls a given class or function.
    Target,
    /// Write a test that covers given blocks.
    Blocks,
}

impl Task {
    /// All tasks, in the order of the paper.
    pub const ALL: [Task; 3] = [Task::Assertion, Task::Target, Task::Blocks];

    /// Returns the number of the task in the paper.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// Returns the number of the task as a Roman numeral.
    pub fn numeral(self) -> &'static str {
        ["I", "II", "III"][self as usize]
    }

    /// Returns the maximum number of problems per repository.
    pub fn max_problems(self) -> usize {
        match self {
            Task::Assertion => 50,
            Task::Target | Task::Blocks => 25,
        }
    }

    /// Returns the maximum tokens of an answer.
    pub fn max_answer_tokens(self) -> usize {
        match self {
            Task::Assertion => 200,
            Task::Target | Task::Blocks => 4_000,
        }
    }

    /// Returns the context budgets for the problems of the task.
    pub fn budgets(self) -> &'static [Budget] {
        match self {
            Task::Assertion | Task::Target => &Budget::ALL,
            Task::Blocks => &Budget::ALL[5..],
        }
    }
}

/// A text that names no task.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task `{0}`; the tasks are 1, 2 and 3")]
pub struct UnknownTask(String);

impl FromStr for Task {
    type Err = UnknownTask;

    fn from_str(text: &str) -> Result<Task, UnknownTask> {
        let task = Task::ALL
            .into_iter()
            .find(|task| text == task.number().to_string() || text == task.numeral());
        task.ok_or_else(|| UnknownTask(text.to_owned()))
    }
}

/// Maximum length of a prompt and its answer, in thousands of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Budget {
    /// The prompt contains no context.
    ProblemOnly,
    /// Limit in thousands of tokens, for the prompt and its answer.
    Tokens(u32),
}

impl Budget {
    /// All budgets, in ascending order.
    pub const ALL: [Budget; 7] = [
        Budget::ProblemOnly,
        Budget::Tokens(4),
        Budget::Tokens(8),
        Budget::Tokens(16),
        Budget::Tokens(32),
        Budget::Tokens(64),
        Budget::Tokens(128),
    ];

    /// Returns the budget in tokens, or `None` if no context is shown.
    pub fn tokens(self) -> Option<usize> {
        match self {
            Budget::ProblemOnly => None,
            Budget::Tokens(thousands) => Some(thousands as usize * 1_000),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::ProblemOnly => f.write_str("po"),
            Budget::Tokens(thousands) => write!(f, "{thousands}k"),
        }
    }
}

/// A text that names no budget.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown context `{0}`; the contexts are {all}", all = Budget::ALL.map(|budget| budget.to_string()).join(", "))]
pub struct UnknownBudget(String);

impl FromStr for Budget {
    type Err = UnknownBudget;

    fn from_str(text: &str) -> Result<Budget, UnknownBudget> {
        let budget = Budget::ALL
            .into_iter()
            .find(|budget| budget.to_string() == text);
        budget.ok_or_else(|| UnknownBudget(text.to_owned()))
    }
}

impl TryFrom<String> for Budget {
    type Error = UnknownBudget;

    fn try_from(text: String) -> Result<Budget, UnknownBudget> {
        text.parse()
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> String {
        budget.to_string()
    }
}

/// The question about the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// Fill a blank. The assertion is `prefix`, `reference` and `suffix`, joined; it is the last line of the test.
    Assertion {
        /// Text of the assertion before the blank.
        prefix: String,
        /// Golden content of the blank.
        reference: String,
        /// Text of the assertion after the blank.
        suffix: String,
    },
    /// Write a test that calls this class or function.
    Target {
        /// Path of the file that defines the target.
        path: String,
        /// Names of the enclosing classes and of the target, joined by dots.
        qualified_name: String,
        /// Whether the target is a class; otherwise it is a function.
        is_class: bool,
    },
    /// Write a test that covers these blocks.
    Blocks {
        /// Blocks of lines to cover.
        blocks: Vec<Block>,
    },
}

/// A range of lines in one file, numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Block {
    /// Path in the repository.
    pub path: String,
    /// First line.
    pub first: u32,
    /// Last line, included in the block.
    pub last: u32,
    /// Executable lines of the block.
    pub lines: Vec<u32>,
    /// Text of the block, including lines that cannot be executed.
    pub source: String,
}

/// A file that may be shown as context, if the budget allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFile {
    /// Path in the repository.
    pub path: String,
    /// Relevance of the file; `None` if the task names the file.
    pub class: Option<ContextClass>,
    /// SHA-256 of the file's text, in hexadecimal.
    pub sha256: String,
}

/// A problem to be solved by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Unique id of the problem, such as `owner__name-0123abcdef-1-001`.
    pub id: String,
    /// Task that the question belongs to.
    pub task: Task,
    /// Repository as `owner/name`.
    pub repository: String,
    /// Full hash of the commit.
    pub commit: String,
    /// Path of the test file.
    pub path: String,
    /// The test as `Class::function`.
    pub test: String,
    /// The test file with this test only. In task I, the test ends before the assertion.
    pub text: SingleTest,
    /// The question about the test.
    pub question: Question,
    /// Context files in display order.
    pub context: Vec<ContextFile>,
    /// Context budgets that the problem may be asked with.
    pub budgets: Vec<Budget>,
    /// Origin of the problem.
    pub provenance: Provenance,
}

/// The origin of a problem, which makes it reproducible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the generator, [`super::VERSION`].
    pub version: String,
    /// Seed for all random choices.
    pub seed: u64,
    /// Python version that ran the tests.
    pub python: String,
    /// Name of the tokenizer that counted the tokens.
    pub tokenizer: String,
    /// Hash of the repository's files at the commit.
    pub source_sha256: String,
    /// Hash of the installed packages, one `name==version` per line.
    pub packages_sha256: String,
    /// Hash of the test file with the golden answer.
    pub golden_sha256: String,
    /// Hash of the context for each budget.
    pub context_sha256: BTreeMap<Budget, String>,
}

impl Problem {
    /// Returns the id of the problem with this number in its task. It includes the commit, because a benchmark can have
    /// problems of several commits of a repository.
    pub(super) fn numbered_id(&self, number: usize) -> String {
        let repository = self.repository.replace('/', "__");
        // A source that is not a commit has none.
        let commit = self.commit.get(..10).map(|commit| format!("-{commit}"));
        let commit = commit.unwrap_or_default();
        format!("{repository}{commit}-{}-{number:03}", self.task.number())
    }

    /// Returns the test file with the golden answer.
    pub fn golden(&self) -> String {
        golden(&self.text, &self.question)
    }

    /// Returns the test file with [`PLACEHOLDER`] in place of the test's statements.
    pub fn without_statements(&self) -> String {
        let gap = match self.text.header.ends_with('\n') {
            true => self.text.indent.as_str(),
            false => " ",
        };
        self.text.with_body(&format!("{gap}{PLACEHOLDER}\n"))
    }

    /// Returns the name of the test without its classes.
    pub fn name(&self) -> &str {
        self.test.rsplit("::").next().unwrap_or(&self.test)
    }
}

/// Returns the test file with the golden answer to a question.
pub fn golden(text: &SingleTest, question: &Question) -> String {
    match question {
        Question::Assertion {
            prefix,
            reference,
            suffix,
        } => text.with_body(&format!("{}{prefix}{reference}{suffix}\n", text.body)),
        _ => text.text(),
    }
}

/// Returns the files that the task names, which are always shown.
pub fn named_files(question: &Question) -> Vec<&str> {
    let mut paths: Vec<&str> = match question {
        Question::Assertion { .. } => Vec::new(),
        Question::Target { path, .. } => vec![path],
        Question::Blocks { blocks } => blocks.iter().map(|block| block.path.as_str()).collect(),
    };
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Returns the SHA-256 of a text, in hexadecimal.
pub fn sha256(text: &str) -> String {
    testwright_sandboxes::hex::hex(&Sha256::digest(text))
}

#[cfg(test)]
pub(super) mod tests;
