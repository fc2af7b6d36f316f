//! Task III: blocks of lines that exactly one test of a file covers.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::Block;
use super::rejections::DropReason;
use crate::cases::{FileLines, Lines};

/// Minimum executable lines of a block.
const MIN_BLOCK_LINES: usize = 5;
/// Maximum files that the blocks of one problem span.
const MAX_FILES: usize = 10;

/// Returns, for each test, the lines that no other of these tests runs.
pub fn unique_lines(tests: &BTreeMap<String, Lines>) -> BTreeMap<String, Lines> {
    let mut times: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    for (path, lines) in tests.values().flatten() {
        for line in lines {
            *times.entry((path, *line)).or_default() += 1;
        }
    }
    let of_file = |(path, lines): (&String, &BTreeSet<u32>)| {
        let once = |line: &&u32| times.get(&(path.as_str(), **line)) == Some(&1);
        let own: BTreeSet<u32> = lines.iter().filter(once).copied().collect();
        (!own.is_empty()).then(|| (path.clone(), own))
    };
    let of_test = |lines: &Lines| lines.iter().filter_map(of_file).collect();
    tests
        .iter()
        .map(|(test, lines)| (test.clone(), of_test(lines)))
        .collect()
}

/// Returns the blocks in a test's own lines. Lines that cannot be executed do not end a block; lines that other tests
/// run do.
///
/// # Errors
///
/// Fails if there are no blocks, or they span too many files.
pub fn blocks<'f>(
    own: &Lines,
    statements: impl Fn(&str) -> Option<&'f FileLines>,
) -> Result<Vec<Block>, DropReason> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut files = 0;
    for (path, lines) in own {
        let Some(file) = statements(path) else {
            continue;
        };
        let mut run: Vec<u32> = Vec::new();
        let before = blocks.len();
        let mut end = |run: &mut Vec<u32>| {
            if run.len() >= MIN_BLOCK_LINES
                && let (Some(first), Some(last)) = (run.first(), run.last())
            {
                blocks.push(Block {
                    path: path.clone(),
                    first: *first,
                    last: *last,
                    lines: run.clone(),
                    source: String::new(),
                });
            }
            run.clear();
        };
        for line in file.hit.union(&file.missed) {
            match lines.contains(line) {
                true => run.push(*line),
                false => end(&mut run),
            }
        }
        end(&mut run);
        files += usize::from(blocks.len() > before);
    }
    match files {
        0 => Err(DropReason::NoBlock),
        files if files > MAX_FILES => Err(DropReason::ManyFiles),
        _ => Ok(blocks),
    }
}

impl Block {
    /// Adds the block's lines from the text of its file.
    pub fn with_source(self, text: &str) -> Block {
        let (skipped, line_count) = (self.first.saturating_sub(1), self.last + 1 - self.first);
        let lines = text
            .lines()
            .skip(skipped as usize)
            .take(line_count as usize);
        let source = lines.collect::<Vec<_>>().join("\n");
        Block { source, ..self }
    }
}

/// Returns whether all lines of all blocks ran.
pub fn are_covered<'f>(blocks: &[Block], lines: impl Fn(&str) -> Option<&'f FileLines>) -> bool {
    blocks.iter().all(|block| {
        let hit = lines(&block.path).map(|file| &file.hit);
        hit.is_some_and(|hit| block.lines.iter().all(|line| hit.contains(line)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &[u32])]) -> Lines {
        let set = |lines: &[u32]| lines.iter().copied().collect();
        files
            .iter()
            .map(|(path, lines)| ((*path).to_owned(), set(lines)))
            .collect()
    }

    #[test]
    fn blocks_are_lines_of_a_single_test() {
        let tests = BTreeMap::from([
            (
                "test_x".to_owned(),
                lines(&[("a.py", &[2, 3, 4, 6, 7, 8, 12, 13]), ("b.py", &[1])]),
            ),
            ("test_y".to_owned(), lines(&[("a.py", &[8, 20])])),
        ]);
        let unique = unique_lines(&tests);
        assert_eq!(
            unique["test_x"],
            lines(&[("a.py", &[2, 3, 4, 6, 7, 12, 13]), ("b.py", &[1])])
        );
        assert_eq!(unique["test_y"], lines(&[("a.py", &[20])]));
        let file = FileLines {
            hit: [1, 2, 3, 4, 6, 7, 8, 12, 13].into(),
            missed: [14].into(),
        };
        let actual =
            blocks(&unique["test_x"], |path| (path == "a.py").then_some(&file)).unwrap_or_default();
        let expected = Block {
            path: "a.py".to_owned(),
            first: 2,
            last: 7,
            lines: vec![2, 3, 4, 6, 7],
            source: String::new(),
        };
        assert_eq!(actual, [expected]);
        let block = actual[0].clone().with_source("1\n2\n3\n4\n5\n6\n7\n8\n");
        assert_eq!(block.source, "2\n3\n4\n5\n6\n7");
        assert_eq!(
            blocks(&unique["test_y"], |_| Some(&file)),
            Err(DropReason::NoBlock)
        );
        assert!(are_covered(&actual, |_| Some(&file)));
        let less = FileLines {
            hit: [2, 3, 4, 7].into(),
            missed: [6].into(),
        };
        assert!(!are_covered(&actual, |_| Some(&less)));
        assert!(!are_covered(&actual, |_| None));
    }

    #[test]
    fn blocks_in_too_many_files_are_rejected() {
        let run: Vec<u32> = (1..=5).collect();
        let file = FileLines {
            hit: run.iter().copied().collect(),
            missed: BTreeSet::new(),
        };
        let of = |files: usize| -> Lines {
            (0..files)
                .map(|n| (format!("f{n}.py"), run.iter().copied().collect()))
                .collect()
        };
        assert_eq!(
            blocks(&of(10), |_| Some(&file)).map(|list| list.len()),
            Ok(10)
        );
        assert_eq!(blocks(&of(11), |_| Some(&file)), Err(DropReason::ManyFiles));
    }
}
