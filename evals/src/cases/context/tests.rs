#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::cases::{CaseOutcome, FileLines, Verification};

/// Tokenizer that counts each word as a token.
struct Words;

impl Tokenizer for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn first<'t>(&self, text: &'t str, most: usize) -> &'t str {
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            if self.count(&text[..end + line.len()]) > most {
                break;
            }
            end += line.len();
        }
        &text[..end]
    }
}

fn lines(files: &[(&str, &[u32])]) -> Lines {
    let of = |(path, lines): &(&str, &[u32])| ((*path).to_owned(), lines.iter().copied().collect());
    files.iter().map(of).collect()
}

fn coverage(files: &[(&str, &[u32])]) -> CaseCoverage {
    let of = |(path, hit): (String, BTreeSet<u32>)| {
        let missed = BTreeSet::new();
        (path, Arc::new(FileLines { hit, missed }))
    };
    CaseCoverage {
        verification: Verification {
            id: "a".to_owned(),
            outcome: CaseOutcome::Passed,
            seconds: 0.0,
        },
        files: lines(files).into_iter().map(of).collect(),
        contexts: BTreeMap::new(),
        problem: None,
    }
}

#[test]
fn files_are_ordered_by_class() {
    let base = coverage(&[
        ("a.py", &[1, 2]),
        ("b.py", &[1, 2]),
        ("c.py", &[1]),
        ("d.py", &[1]),
    ]);
    let empty = coverage(&[("a.py", &[1]), ("b.py", &[1]), ("c.py", &[1])]);
    let classes = classes(&base, &empty, &lines(&[("b.py", &[2])]));
    let actual: Vec<_> = classes.iter().map(|(p, c)| (p.as_str(), *c)).collect();
    let expected = [
        ("a.py", ContextClass::Other),
        ("b.py", ContextClass::Peer),
        ("c.py", ContextClass::Repository),
        ("d.py", ContextClass::Other),
    ];
    assert_eq!(actual, expected);
    let named_paths = ["c.py", "c.py"];
    let ordered = order(&classes, &named_paths, 1, "id");
    let paths: Vec<&str> = ordered.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths[..2], ["c.py", "b.py"]);
    assert_eq!(ordered, order(&classes, &named_paths, 1, "id"));
    // Different seeds give both orders of the two files in the same class.
    let last = |seed| order(&classes, &named_paths, seed, "id").pop().unwrap().0;
    let lasts: BTreeSet<String> = (0..20).map(last).collect();
    assert_eq!(lasts.len(), 2);
}

#[test]
fn context_stays_within_budget() {
    let files = [
        ("a.py", "one two\nthree\n"),
        ("b.py", "four five\nsix\n"),
        ("c.py", "seven\n"),
    ];
    let order: Vec<_> = files
        .iter()
        .map(|(path, _)| ((*path).to_owned(), Some(ContextClass::Other)))
        .collect();
    let mut read = |path: &str| {
        let matching_file = files.iter().find(|(name, _)| *name == path);
        matching_file.map(|(_, text)| (*text).to_owned())
    };
    for budget in 0..20 {
        for frame in [0, 2] {
            let shown = fill(&order, budget, frame, &Words, &mut read);
            let tokens = shown
                .iter()
                .map(|file| frame + Words.count(&file.path) + Words.count(&file.text));
            assert!(tokens.sum::<usize>() <= budget, "{budget}: {shown:?}");
        }
    }
    let mut texts = |budget, frame| -> Vec<(String, bool)> {
        let shown = fill(&order, budget, frame, &Words, &mut read).into_iter();
        shown.map(|file| (file.text, file.is_whole)).collect()
    };
    let (whole, cut) = ("one two\nthree\n", "four five\n");
    let expected = [(whole.to_owned(), true), (cut.to_owned(), false)];
    assert_eq!(texts(7, 0), expected);
    assert_eq!(texts(11, 2), expected);
    assert_eq!(texts(100, 2).len(), 3);
    // Files that the task names are included regardless of the budget.
    let named_order = [("b.py".to_owned(), None), order[0].clone()];
    let shown = fill(&named_order, 0, 0, &Words, &mut read);
    assert_eq!(shown.len(), 1);
    assert!(shown[0].is_whole && shown[0].path == "b.py");
}
