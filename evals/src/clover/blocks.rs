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
mod tests;
