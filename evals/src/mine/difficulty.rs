//! How large a fix, its tests and its issue are: facts by which instances can be chosen.

use serde::Serialize;

use super::split::Paths;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difficulty {
    /// Files of the code patch that are code.
    pub code_files: usize,
    /// Lines that the code patch adds and removes in them.
    pub code_lines: usize,
    /// Hunks of the whole code patch.
    pub code_hunks: usize,
    pub test_files: usize,
    /// Lines that the test patch adds and removes.
    pub test_lines: usize,
    /// Characters of the issue's text.
    pub issue_characters: usize,
}

impl Difficulty {
    pub fn of(paths: &Paths, is_code: fn(&str) -> bool, patch: &str, test_patch: &str) -> Self {
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

/// The parts of a patch by the path that their header ends with.
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

/// Lines inside of hunks that begin with a sign: headers come before the first hunk of a file.
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
    fn lines_of_code_are_counted_and_prose_is_not() {
        let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n--- was a remark\n+x\n y\n\
                     diff --git a/N.md b/N.md\n--- a/N.md\n+++ b/N.md\n@@ -1 +1,3 @@\n+a\n+b\n c\n";
        let paths = Paths {
            code: vec!["a.py".to_owned(), "N.md".to_owned()],
            ..Paths::default()
        };
        let facts = Difficulty::of(&paths, is_code, patch, patch);
        assert_eq!((facts.code_files, facts.code_lines), (1, 2));
        assert_eq!((facts.code_hunks, facts.test_lines), (2, 4));
    }
}
