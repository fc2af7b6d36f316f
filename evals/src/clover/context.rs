//! The code that is shown with a problem: which files, in which order, and as much of them as a budget allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::extract::is_test_file;
use super::problem::{Budget, FileClass, Problem, named_files, sha256};
use super::selection::unit;
use crate::cases::{FileLines, Lines};

/// How long texts and prompts are.
pub trait Prompts: Send + Sync {
    /// Name of the tokenizer, for records.
    fn tokenizer(&self) -> &str;

    fn tokens(&self, text: &str) -> usize;

    /// Tokens of the prompt of a problem without its context.
    fn instructions(&self, problem: &Problem) -> usize;
}

type Files = BTreeMap<String, Arc<FileLines>>;

/// What each file that the test runs something of says about it: `base` is the test as it is, `empty` one that does nothing in
/// its place, `own` the lines that no other test of the file runs.
pub fn classes(base: &Files, empty: &Files, own: &Lines) -> BTreeMap<String, FileClass> {
    let none = BTreeSet::new();
    let hit = |files: &'_ Files, path: &str| -> BTreeSet<u32> {
        files
            .get(path)
            .map_or_else(|| none.clone(), |file| file.hit.clone())
    };
    let of_file = |path: &String| {
        let class = match own.get(path) {
            Some(lines) if !lines.is_empty() => FileClass::Peer,
            _ if hit(base, path) == hit(empty, path) => FileClass::Repository,
            _ => FileClass::Other,
        };
        (path.clone(), class)
    };
    base.keys()
        .filter(|path| !is_test_file(path))
        .map(of_file)
        .collect()
}

/// Files in the order in which they are shown: those that the task names, then the most informative; by chance within a class.
pub fn order(
    seed: u64,
    problem: &str,
    named: &[&str],
    mut classes: BTreeMap<String, FileClass>,
) -> Vec<(String, FileClass)> {
    for path in named {
        classes.insert((*path).to_owned(), FileClass::Named);
    }
    let mut files: Vec<(String, FileClass)> = classes.into_iter().collect();
    let key = |path: &str| unit(seed, &["context", problem, path]);
    files.sort_by(|a, b| {
        let by_class = a.1.cmp(&b.1);
        by_class.then_with(|| key(&a.0).total_cmp(&key(&b.0)))
    });
    files
}

/// The context of a problem: whole files as far as they fit, the first lines of the one after them. `None` where there is none
/// to show. `text` gives the files of the repository.
pub fn context<'t>(
    problem: &Problem,
    budget: Budget,
    prompts: &dyn Prompts,
    text: &dyn Fn(&str) -> Option<&'t str>,
) -> Option<String> {
    let room = budget.tokens()?;
    let taken = problem.task.room() + prompts.instructions(problem);
    let files = problem.context.iter();
    let files = files.filter_map(|file| Some((file.path.as_str(), text(&file.path)?)));
    Some(fill(files, room.saturating_sub(taken), prompts))
}

fn fill<'t>(
    files: impl Iterator<Item = (&'t str, &'t str)>,
    room: usize,
    prompts: &dyn Prompts,
) -> String {
    let mut shown = String::new();
    let mut left = room;
    for (path, text) in files {
        let file = format!("### {path}\n{}\n\n", text.trim_end());
        let tokens = prompts.tokens(&file);
        if tokens <= left {
            shown += &file;
            left -= tokens;
            continue;
        }
        let mut cut = String::new();
        for line in file.split_inclusive('\n') {
            let tokens = prompts.tokens(line);
            if tokens > left {
                break;
            }
            left -= tokens;
            cut += line;
        }
        // A name alone says nothing.
        if cut.lines().count() > 1 {
            shown += &cut;
        }
        break;
    }
    shown
}

/// Hashes of the contexts of all budgets.
pub fn hashes<'t>(
    problem: &Problem,
    prompts: &dyn Prompts,
    text: &dyn Fn(&str) -> Option<&'t str>,
) -> BTreeMap<Budget, String> {
    let budgets = problem.budgets.iter();
    let hash = |budget: &Budget| {
        let shown = context(problem, *budget, prompts, text)?;
        Some((*budget, sha256(&shown)))
    };
    budgets.filter_map(hash).collect()
}

/// The paths that are shown in any case.
pub fn is_named(problem: &Problem, path: &str) -> bool {
    named_files(&problem.question).contains(&path)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::clover::problem::tests::problem;
    use crate::clover::problem::{Block, ContextFile, Question, TestText};

    /// A token is a character.
    pub struct Characters;

    impl Prompts for Characters {
        fn tokenizer(&self) -> &str {
            "characters"
        }

        fn tokens(&self, text: &str) -> usize {
            text.chars().count()
        }

        fn instructions(&self, _: &Problem) -> usize {
            100
        }
    }

    fn files(given: &[(&str, &[u32])]) -> Files {
        let lines = |hit: &[u32]| {
            Arc::new(FileLines {
                hit: hit.iter().copied().collect(),
                missed: BTreeSet::new(),
            })
        };
        given
            .iter()
            .map(|(path, hit)| ((*path).to_owned(), lines(hit)))
            .collect()
    }

    #[test]
    fn the_most_informative_files_come_first() {
        let base = files(&[
            ("a.py", &[1, 2]),
            ("b.py", &[1]),
            ("c.py", &[1, 5]),
            ("d.py", &[1]),
            ("test_e.py", &[1]),
        ]);
        let empty = files(&[
            ("a.py", &[1]),
            ("b.py", &[1]),
            ("c.py", &[1]),
            ("d.py", &[1]),
        ]);
        let own = Lines::from([("c.py".to_owned(), BTreeSet::from([5]))]);
        let classes = classes(&base, &empty, &own);
        let order = |seed: u64| order(seed, "p", &["z.py"], classes.clone());
        let first: Vec<String> = order(1).into_iter().take(3).map(|(path, _)| path).collect();
        assert_eq!(first, ["z.py", "c.py", "a.py"]);
        let last = |seed: u64| order(seed).pop().map(|(path, _)| path);
        let seen: BTreeSet<Option<String>> = (0..20).map(last).collect();
        assert_eq!(seen.len(), 2, "by chance, of b.py and d.py");
        assert_eq!(order(3), order(3));
    }

    #[test]
    fn a_budget_is_filled_and_not_passed() {
        let text = TestText {
            before: String::new(),
            header: "def test_x():\n".to_owned(),
            body: "    pass\n".to_owned(),
            after: String::new(),
            indent: "    ".to_owned(),
        };
        let blocks = vec![Block {
            path: "a.py".to_owned(),
            first: 1,
            last: 5,
            lines: vec![1, 2, 3, 4, 5],
        }];
        let mut of = problem("test_a.py", "test_x", text, Question::Blocks { blocks });
        of.context = ["a.py", "b.py", "gone.py"]
            .map(|path| ContextFile {
                path: path.to_owned(),
                class: FileClass::Other,
                sha256: String::new(),
            })
            .to_vec();
        let (a, b) = ("x = 1\n".repeat(100), "y = 2\n".repeat(100_000));
        let text = |path: &str| match path {
            "a.py" => Some(a.as_str()),
            "b.py" => Some(b.as_str()),
            _ => None,
        };
        assert_eq!(context(&of, Budget::ProblemOnly, &Characters, &text), None);
        for budget in [Budget::Tokens(64), Budget::Tokens(128)] {
            let shown = context(&of, budget, &Characters, &text).unwrap_or_default();
            let room = budget.tokens().unwrap_or_default() - 4_000 - 100;
            assert!((room - 6..=room).contains(&shown.len()), "{}", shown.len());
            assert!(shown.contains("### b.py\ny = 2\n") && shown.ends_with("y = 2\n"));
        }
        assert_eq!(hashes(&of, &Characters, &text).len(), 2);
    }
}
