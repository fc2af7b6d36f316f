//! `describe`: facts about a workspace for the host's first prompt.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::line_numbers::count;
use crate::process::{self, Command};
use crate::tool::{Audience, Context, NoArguments, Reply, Result, Tool};

/// Maximum number of test folders named in the answer.
const TEST_FOLDERS: usize = 3;

/// A tool that returns facts about the workspace, for the host.
pub struct Describe;

/// Facts about a workspace, for the first prompt.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WorkspaceFacts {
    /// `None` if the interpreter did not answer.
    python: Option<String>,
    pytest: Option<String>,
    files: usize,
    test_files: usize,
    /// Numbers of Python files and of test files, for each top-level folder with Python files.
    folders: BTreeMap<String, [usize; 2]>,
    /// Folders with test files and the number of these, highest number first.
    test_folders: Vec<(String, usize)>,
}

impl Tool for Describe {
    type Args = NoArguments;
    type Data = WorkspaceFacts;
    const NAME: &'static str = "describe";
    const DESCRIPTION: &'static str =
        "Versions of Python and pytest, the repository's folders, and where its tests are.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, context: &mut Context<'_>, _: Self::Args) -> Result<Reply<Self::Data>> {
        let mut facts = WorkspaceFacts::default();
        let mut test_folders: BTreeMap<String, usize> = BTreeMap::new();
        for path in context.workspace.files() {
            facts.files += 1;
            if !path.ends_with(".py") {
                continue;
            }
            let is_test = context.workspace.layout().is_test_file(&path);
            let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
            let top = folder.split('/').next().unwrap_or(folder).to_owned();
            let count = facts.folders.entry(top).or_default();
            count[0] += 1;
            if is_test {
                count[1] += 1;
                facts.test_files += 1;
                *test_folders.entry(folder.to_owned()).or_default() += 1;
            }
        }
        facts.test_folders = test_folders.into_iter().collect();
        facts
            .test_folders
            .sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (facts.python, facts.pytest) = versions(context)?;
        Ok(Reply::new(text(&facts), facts))
    }
}

fn versions(context: &Context<'_>) -> Result<(Option<String>, Option<String>)> {
    let config = context.workspace.config();
    process::make_home(&config.scratch)?;
    // The folder name of an installed package contains its version; importing pytest takes much longer.
    const QUESTION: &str = "import os, sys
print('%d.%d.%d' % sys.version_info[:3])
names = [n for p in sys.path if os.path.isdir(p) for n in sorted(os.listdir(p))]
found = [n[len('pytest-'):-len('.dist-info')] for n in names if n.startswith('pytest-') and n.endswith('.dist-info')]
if found:
    print(found[0])
else:
    import pytest; print(pytest.__version__)";
    // Do not run in the workspace: the repository may be pytest itself, in the middle of an edit.
    let mut command = Command::python(config, vec!["-c".into(), QUESTION.into()], &config.scratch);
    command.merge = false;
    command.max_output_bytes = 1000;
    let deadline = context.deadline_after(Duration::from_secs(20));
    // A sandbox without an interpreter still has files to inspect.
    let printed = process::run(&command, deadline)
        .map(|f| f.stdout.text())
        .unwrap_or_default();
    let mut lines = printed.lines().map(str::to_owned);
    Ok((lines.next(), lines.next()))
}

fn text(facts: &WorkspaceFacts) -> String {
    let mut lines = Vec::new();
    match (&facts.python, &facts.pytest) {
        (Some(python), Some(pytest)) => lines.push(format!("Python {python}, pytest {pytest}.")),
        (Some(python), None) => lines.push(format!("Python {python}; pytest is not installed.")),
        _ => lines.push("There is no working Python interpreter.".to_owned()),
    }
    if facts.test_files == 0 {
        lines.push("There are no test files yet.".to_owned());
    } else {
        let listed_folders: Vec<String> = facts
            .test_folders
            .iter()
            .take(TEST_FOLDERS)
            .map(|(folder, count)| match folder.as_str() {
                "." => format!("the root ({count})"),
                folder => format!("{folder}/ ({count})"),
            })
            .collect();
        let remaining = facts.test_folders.len().saturating_sub(TEST_FOLDERS);
        let suffix = match remaining {
            0 => String::new(),
            more => format!(" and {more} more folders"),
        };
        lines.push(format!(
            "{}, in {}{suffix}.",
            count(facts.test_files, "test file"),
            listed_folders.join(", ")
        ));
    }
    lines.join("\n")
}
