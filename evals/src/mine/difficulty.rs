//! Sizes of a fix, its tests and its issue, by which instances can be selected.

use serde::Serialize;

use super::split::{Paths, is_code};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Difficulty {
    /// Number of code files in the code patch.
    pub code_files: usize,
    /// Lines that the code patch adds and removes in code files.
    pub code_lines: usize,
    /// Hunks in the whole code patch.
    pub code_hunks: usize,
    pub test_files: usize,
    /// Lines that the test patch adds and removes.
    pub test_lines: usize,
    /// Characters of the issue's text.
    pub issue_characters: usize,
}

impl Difficulty {
    pub(super) fn from_patches(paths: &Paths, patch: &str, test_patch: &str) -> Self {
        let files = sections(patch);
        let code = files.iter().filter(|(path, _)| is_code(path));
        Difficulty {
            code_files: paths.code.iter().filter(|path| is_code(path)).count(),
            code_lines: code.map(|(_, section)| changed_lines(section)).sum(),
            code_hunks: hunks(patch),
            test_files: paths.tests.len(),
            test_lines: sections(test_patch)
                .iter()
                .map(|(_, section)| changed_lines(section))
                .sum(),
            issue_characters: 0,
        }
    }
}

/// Splits a patch by file, using the path at the end of each header.
fn sections(patch: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in patch.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let path = names.rsplit_once(" b/").map_or(names, |(_, path)| path);
            sections.push((path, Vec::new()));
        } else if let Some((_, lines)) = sections.last_mut() {
            lines.push(line);
        }
    }
    sections
}

/// Counts the added and removed lines inside hunks. Headers precede the first hunk of a file.
fn changed_lines(section: &[&str]) -> usize {
    let inside = section.iter().skip_while(|line| !line.starts_with("@@ "));
    inside.filter(|line| line.starts_with(['+', '-'])).count()
}

fn hunks(patch: &str) -> usize {
    patch.lines().filter(|line| line.starts_with("@@ ")).count()
}

#[cfg(test)]
mod tests;
