use std::collections::BTreeMap;

use super::*;
use crate::formats::ProposedFiles;

fn sample(path: &str, text: &str, is_of_issue: bool) -> FailingSample {
    FailingSample {
        draft: Draft {
            proposed: ProposedFiles {
                files: [(path.to_owned(), Some(text.to_owned()))].into(),
                repairs: Vec::new(),
            },
            reply: String::new(),
        },
        is_of_issue,
    }
}

#[test]
fn shortest_preferred_sample_is_chosen() {
    let old = BTreeMap::new();
    let all = [
        sample("t.py", "a", false),
        sample("t.py", "abc", true),
        sample("t.py", "ab", true),
        sample("t.py", "cd", true),
    ];
    assert_eq!(choose(&all, &old), Some(2));
    assert_eq!(choose(&all[..1], &old), Some(0));
    assert_eq!(choose(&[], &old), None);
}

#[test]
fn existing_lines_do_not_count() {
    let large = "x = 1\n".repeat(100);
    let old = BTreeMap::from([("large.py".to_owned(), large.clone())]);
    let short = format!("{large}def test():\n    f()\n");
    let all = [
        sample("new.py", "def test():\n    f()\n    g()\n", true),
        sample("large.py", &short, true),
        // One more line than the file already has counts as added.
        sample("large.py", &format!("{short}x = 1\n"), true),
    ];
    assert_eq!(choose(&all, &old), Some(1));
    let added: Vec<usize> = all.iter().map(|s| s.draft.proposed.added(&old)).collect();
    assert_eq!(added, [28, 20, 26]);
}
