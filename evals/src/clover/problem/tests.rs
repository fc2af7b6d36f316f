#![allow(clippy::unwrap_used)]
use super::*;

/// Builds a problem that belongs to no real repository.
pub(crate) fn problem(path: &str, test: &str, text: SingleTest, question: Question) -> Problem {
    let task = match question {
        Question::Assertion { .. } => Task::Assertion,
        Question::Target { .. } => Task::Target,
        Question::Blocks { .. } => Task::Blocks,
    };
    Problem {
        id: format!("own__package-{}-001", task.number()),
        task,
        repository: "own/package".to_owned(),
        commit: "0".repeat(40),
        path: path.to_owned(),
        test: test.to_owned(),
        text,
        question,
        context: Vec::new(),
        budgets: task.budgets().to_vec(),
        provenance: Provenance {
            version: super::super::VERSION.to_owned(),
            seed: 0,
            python: "3.11".to_owned(),
            tokenizer: "characters".to_owned(),
            source_sha256: String::new(),
            packages_sha256: String::new(),
            golden_sha256: String::new(),
            context_sha256: BTreeMap::new(),
        },
    }
}

/// Returns the text of a test `test_x` that does nothing.
pub(crate) fn passing_test() -> SingleTest {
    SingleTest {
        before: String::new(),
        header: "def test_x():\n".to_owned(),
        body: "    pass\n".to_owned(),
        after: String::new(),
        indent: "    ".to_owned(),
    }
}

#[test]
fn problems_of_two_commits_have_different_ids() {
    let text = passing_test();
    let blocks = Question::Blocks { blocks: Vec::new() };
    let mut of = problem("test_a.py", "test_x", text, blocks);
    let mut id = |commit: &str| {
        of.commit = commit.to_owned();
        of.numbered_id(7)
    };
    assert_eq!(id(&"0".repeat(40)), "own__package-0000000000-3-007");
    assert_eq!(id(&"1".repeat(40)), "own__package-1111111111-3-007");
    assert_eq!(id(""), "own__package-3-007");
}

#[test]
fn budgets_and_tasks_parse_by_name() {
    assert_eq!("po".parse(), Ok(Budget::ProblemOnly));
    assert_eq!("16k".parse::<Budget>().unwrap().tokens(), Some(16_000));
    assert!(
        "17k"
            .parse::<Budget>()
            .unwrap_err()
            .to_string()
            .contains("po, 4k")
    );
    assert_eq!("2".parse(), Ok(Task::Target));
    assert_eq!("III".parse(), Ok(Task::Blocks));
    assert!("4".parse::<Task>().is_err());
    let names: Vec<String> = Task::Blocks
        .budgets()
        .iter()
        .map(Budget::to_string)
        .collect();
    assert_eq!(names, ["64k", "128k"]);
}
