//! Sizes of a fix, its tests and its issue, by which instances can be selected.

use serde::Serialize;

use super::split::Paths;

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
    pub(super) fn from_patches(
        paths: &Paths,
        is_code: fn(&str) -> bool,
        patch: &str,
        test_patch: &str,
    ) -> Self {
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
mod tests {
    use super::super::split::is_code;
    use super::*;

    #[test]
    fn only_code_lines_are_counted() {
        let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n--- was a remark\n+x\n y\n\
                     diff --git a/N.md b/N.md\n--- a/N.md\n+++ b/N.md\n@@ -1 +1,3 @@\n+a\n+b\n c\n";
        let paths = Paths {
            code: vec!["a.py".to_owned(), "N.md".to_owned()],
            ..Paths::default()
        };
        let facts = Difficulty::from_patches(&paths, is_code, patch, patch);
        assert_eq!((facts.code_files, facts.code_lines), (1, 2));
        assert_eq!((facts.code_hunks, facts.test_lines), (2, 4));
    }
}
