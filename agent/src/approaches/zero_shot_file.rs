//! Otter's baseline (Otter §4.3): the repository's name and the issue, one call, a complete new test file.

use testwright_agent_prompts::{Prompt, ZeroShotFileSystem, ZeroShotTask};

use super::stages::{system_and_user, write_and_hand_in};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::{FormatError, OldFiles, ProposedFiles, code_block};

/// Name of the new module.
const NAME: &str = "test_issue";

pub(super) static APPROACH: Approach = Approach::new(
    "zero-shot-file",
    "one call: only the issue, answered by a new test file",
    Workflow::Pipeline {
        stages: &["write"],
        model_calls: "1",
        prompts: &[ZeroShotFileSystem::NAME, ZeroShotTask::NAME],
    },
    |run, context| Box::pin(execute(run, context)),
);

async fn execute(run: &mut Run, _: &ApproachContext) -> Flow<Outcome> {
    let tree = run.tree()?;
    let task = ZeroShotTask {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        ..ZeroShotTask::default()
    };
    let messages = system_and_user(&ZeroShotFileSystem {}, &task)?;
    write_and_hand_in(run, &tree, messages, 0.0, new_file).await
}

/// Puts the code into the folder with most test files.
fn new_file(reply: &str, old: &dyn OldFiles) -> Result<ProposedFiles, FormatError> {
    let code = code_block::code(reply)?;
    Ok(ProposedFiles {
        files: [(new_path(&old.paths()), Some(code))].into(),
        repairs: Vec::new(),
    })
}

/// Returns a path for the new test file that no other file has.
pub(super) fn new_path(paths: &[String]) -> String {
    let folder = test_folder(paths).map_or_else(String::new, |folder| format!("{folder}/"));
    let mut path = format!("{folder}{NAME}.py");
    let mut number = 1;
    while paths.contains(&path) {
        number += 1;
        path = format!("{folder}{NAME}_{number}.py");
    }
    path
}

/// Returns the folder with the most test files; on a tie, the one higher up.
fn test_folder(paths: &[String]) -> Option<&str> {
    let is_test = |name: &str| name.starts_with("test_") || name.ends_with("_test.py");
    let folders = paths
        .iter()
        .filter(|path| path.ends_with(".py"))
        .filter_map(|path| {
            let (folder, name) = path.rsplit_once('/')?;
            is_test(name).then_some(folder)
        });
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for folder in folders {
        *counts.entry(folder).or_default() += 1;
    }
    let depth = |folder: &str| folder.matches('/').count();
    let most = counts
        .into_iter()
        .max_by_key(|(folder, count)| (*count, usize::MAX - depth(folder)));
    most.map(|(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn file_goes_into_test_folder() {
        let old: BTreeMap<String, String> = [
            "pkg/a.py",
            "tests/test_a.py",
            "tests/test_b.py",
            "pkg/x/test_c.py",
        ]
        .map(|path| (path.to_owned(), String::new()))
        .into();
        let proposed = new_file("```python\ndef test():\n    assert 0\n```", &old).unwrap();
        let content = Some("def test():\n    assert 0\n".to_owned());
        assert_eq!(
            proposed.files,
            [("tests/test_issue.py".to_owned(), content)].into()
        );
        assert_eq!(test_folder(&["a.py".to_owned()]), None);
        let existing = ["tests/test_issue.py".to_owned()];
        assert_eq!(new_path(&existing), "tests/test_issue_2.py");
        assert!(new_file("", &old).is_err());
    }
}
