//! Search for the migrations that a file runs before its tests.
//!
//! The commands of a file count in the order of its lines. Scripts of the repository and targets of its Makefile are
//! read at the place where a command calls them.

use std::cell::Cell;

use super::{Migration, base_name};
use crate::pattern::Pattern;
use crate::recipe::detect::{command_files, join, text};
use crate::repository::Tree;
use crate::sandbox::Result;

/// Maximum depth of scripts and targets that call others.
const MAX_DEPTH: usize = 3;

/// Maximum scripts and targets to read for all calls of a repository.
const MAX_CALLS: usize = 100;

/// Maximum migrations before tests.
const MAX_MIGRATIONS: usize = 10;

/// Maximum scripts that are searched although no command calls them.
const MAX_SCRIPTS: usize = 20;

/// Files with targets that commands call by `make` or `just`.
const MAKEFILES: [&str; 4] = ["Makefile", "makefile", "GNUmakefile", "justfile"];

/// A command that starts tests.
static TESTS: Pattern = Pattern::new(concat!(
    r#"(?:^|[\s"'/=])(?:pytest|py\.test|unittest|nosetests|nose2|tox|nox|run_?tests(?:\.py)?)(?:$|[\s"',)])"#,
    r"|manage\.py test\b|\b(?:make|just|invoke|inv|task|hatch|poe|pdm)\s+(?:run\s+)?\S*(?:test|check|cov)",
    r"|test\S*\.sh\b|\bscripts/\S*test",
));

/// The default folder of a workflow's steps.
static DEFAULT_FOLDER: Pattern =
    Pattern::new(r"defaults:\s+run:\s+(?:shell:[^\n]*\s+)?(working-directory:[^\n]*)");

/// Returns the migrations of the first file that runs some before its tests.
pub(super) fn migrations(tree: &Tree) -> Result<Vec<Migration>> {
    let mut targets = String::new();
    if let Some(makefile) = MAKEFILES.into_iter().find(|path| tree.contains(path)) {
        targets = joined_lines(tree, makefile)?;
    }
    let search = Search {
        tree,
        targets,
        calls: Cell::default(),
    };
    let scripts = tree.paths().filter(|path| is_test_script(path));
    for path in command_files(tree).chain(scripts.take(MAX_SCRIPTS)) {
        let migrations = search.in_file(path)?;
        if !migrations.is_empty() {
            return Ok(migrations);
        }
    }
    Ok(Vec::new())
}

/// Returns the text of a file, with each command on one line.
fn joined_lines(tree: &Tree, path: &str) -> Result<String> {
    let text = text(tree, path)?.unwrap_or_default();
    Ok(text.replace("\\\n", " "))
}

fn is_test_script(path: &str) -> bool {
    path.ends_with(".sh") && base_name(path).contains("test") && path.matches('/').count() <= 2
}

/// Division of a file into parts with commands of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Jobs of a workflow.
    Workflow,
    /// Targets of a Makefile.
    Targets,
    /// Sections of `tox.ini`.
    Tox,
    /// Functions of `noxfile.py`.
    Nox,
    /// A single part: shell scripts and the files of other CI services.
    Script,
}

impl Layout {
    fn of(path: &str) -> Layout {
        match path {
            "tox.ini" => Layout::Tox,
            "noxfile.py" => Layout::Nox,
            _ if path.starts_with(".github/workflows/") => Layout::Workflow,
            _ if MAKEFILES.contains(&path) => Layout::Targets,
            _ => Layout::Script,
        }
    }

    /// Returns whether a part begins at a line.
    fn begins_part(self, line: &str) -> bool {
        let content = line.trim_start();
        let indentation = line.len() - content.len();
        let has_content = !content.is_empty() && !content.starts_with('#');
        match self {
            Layout::Workflow => has_content && indentation <= 2,
            Layout::Targets | Layout::Nox => has_content && indentation == 0,
            Layout::Tox => line.starts_with('['),
            Layout::Script => false,
        }
    }
}

/// A command that matters for the order.
enum Step {
    Migration(Migration),
    Tests,
}

struct Search<'a> {
    tree: &'a Tree,
    /// Text of the Makefile.
    targets: String,
    /// Number of scripts and targets read for calls so far.
    calls: Cell<usize>,
}

impl Search<'_> {
    /// Returns the migrations before the first tests in the same part of a file.
    fn in_file(&self, path: &str) -> Result<Vec<Migration>> {
        let text = joined_lines(self.tree, path)?;
        let layout = Layout::of(path);
        let lines: Vec<&str> = text.lines().collect();
        let default = match layout {
            Layout::Workflow => default_folder(&text).unwrap_or_default(),
            _ => String::new(),
        };
        let mut folder = default.clone();
        let mut pending = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let begins_part = layout.begins_part(line);
            if begins_part {
                pending.clear();
            }
            match layout {
                Layout::Workflow if line.trim_start().starts_with("- ") => {
                    folder = step_folder(&lines[at..]).unwrap_or_else(|| default.clone());
                }
                Layout::Workflow | Layout::Script => {}
                // Each of these commands has a shell of its own.
                Layout::Targets | Layout::Tox | Layout::Nox => folder.clear(),
            }
            let line = match layout {
                Layout::Targets if begins_part => prerequisites(line),
                _ => (*line).to_owned(),
            };
            for step in self.steps(&line, layout, &mut folder, MAX_DEPTH)? {
                match step {
                    Step::Tests if pending.is_empty() => {}
                    Step::Tests => return Ok(pending),
                    Step::Migration(migration) => {
                        if pending.len() < MAX_MIGRATIONS && !pending.contains(&migration) {
                            pending.push(migration);
                        }
                    }
                }
            }
        }
        Ok(Vec::new())
    }

    /// Returns the steps of a line. `cd` changes the folder.
    fn steps(
        &self,
        line: &str,
        layout: Layout,
        folder: &mut String,
        depth: usize,
    ) -> Result<Vec<Step>> {
        let line = line.trim().trim_start_matches(['-', '@', ' ']);
        let mut steps = Vec::new();
        // Names of steps are prose.
        if line.starts_with('#') || line.starts_with("name:") {
            return Ok(steps);
        }
        for segment in line.split(['&', ';', '|']) {
            let words = words(segment, layout);
            if let [.., command, target] = words.as_slice()
                && command == "cd"
            {
                if !target.contains('$') {
                    *folder = join(folder, target).unwrap_or_default();
                }
                continue;
            }
            if let Some(migration) = Migration::parse(&words, folder) {
                steps.push(Step::Migration(migration));
                continue;
            }
            if depth > 0 {
                for script in self.called_scripts(&words, folder)? {
                    let mut place = folder.clone();
                    for line in script.lines() {
                        steps.extend(self.steps(line, Layout::Script, &mut place, depth - 1)?);
                    }
                }
            }
            let is_installed = words.iter().any(|word| word == "install" || word == "add");
            if TESTS.is_match(segment) && !is_installed {
                steps.push(Step::Tests);
            }
        }
        Ok(steps)
    }

    /// Returns the scripts of the repository that a command runs, and the lines of the targets that it makes.
    fn called_scripts(&self, words: &[String], folder: &str) -> Result<Vec<String>> {
        let mut scripts = Vec::new();
        if let Some(at) = words
            .iter()
            .position(|word| word == "make" || word == "just")
        {
            for target in &words[at + 1..] {
                if self.may_call() {
                    scripts.extend(self.target(target));
                }
            }
        }
        for word in words {
            let is_script = word.ends_with(".sh") || word.contains("scripts/");
            let path = join(folder, word).filter(|_| is_script);
            if let Some(path) = path.filter(|path| self.tree.contains(path))
                && self.may_call()
            {
                scripts.push(joined_lines(self.tree, &path)?);
            }
        }
        Ok(scripts)
    }

    /// Counts a call. Returns false if there were too many, because targets can require each other in many ways.
    fn may_call(&self) -> bool {
        let calls = self.calls.get();
        self.calls.set(calls + 1);
        calls < MAX_CALLS
    }

    /// Returns the lines of a target, each with a shell of its own, after what it requires.
    fn target(&self, name: &str) -> Vec<String> {
        let is_head = |line: &str| {
            let head = line.split_once(':').map_or("", |(head, _)| head);
            !line.starts_with([' ', '\t']) && head.split_whitespace().any(|word| word == name)
        };
        let mut lines = self.targets.lines().skip_while(|line| !is_head(line));
        let Some(head) = lines.next() else {
            return Vec::new();
        };
        let body = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
        let mut all = vec![prerequisites(head)];
        all.extend(body.map(str::to_owned));
        all
    }
}

/// Returns the call of `make` for what the first line of a target requires; empty for other lines.
fn prerequisites(line: &str) -> String {
    match line.split_once(':') {
        Some((head, required))
            if !head.contains('=') && !head.starts_with('.') && !required.starts_with('=') =>
        {
            let required = required.split('#').next().unwrap_or(required);
            format!("make {}", required.trim())
        }
        _ => String::new(),
    }
}

/// Splits a command into words. The arguments of nox are Python strings.
fn words(segment: &str, layout: Layout) -> Vec<String> {
    let is_separator =
        |c: char| c.is_whitespace() || (layout == Layout::Nox && "()[]\"',".contains(c));
    let words = segment.split(is_separator);
    let words = words.map(|word| word.trim_matches(['"', '\'']));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the working directory of the step that begins at the first line.
fn step_folder(lines: &[&str]) -> Option<String> {
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        if at > 0 && line.starts_with("- ") {
            return None;
        }
        if let Some(folder) = working_directory(line.trim_start_matches("- ")) {
            return Some(folder);
        }
    }
    None
}

fn default_folder(workflow: &str) -> Option<String> {
    working_directory(&DEFAULT_FOLDER.captures(workflow)?[1])
}

fn working_directory(line: &str) -> Option<String> {
    let value = line.trim().strip_prefix("working-directory:")?;
    let value = value.split(" #").next().unwrap_or(value);
    let value = value.trim().trim_matches(['"', '\'']);
    if value.contains('$') {
        return None;
    }
    join("", value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_require_others() {
        for (line, expected) in [
            ("test: migrate lint # all", "make migrate lint"),
            (".PHONY: test migrate", ""),
            ("URL := x", ""),
            ("URL = http://x", ""),
            ("migrate:", "make "),
        ] {
            assert_eq!(prerequisites(line), expected, "{line}");
        }
    }

    #[test]
    fn working_directories_are_found() {
        let steps = [
            "- name: Migrate",
            "  run: alembic upgrade head",
            "  working-directory: ./backend # here",
            "- run: pytest",
            "  working-directory: other",
        ];
        assert_eq!(step_folder(&steps).as_deref(), Some("backend"));
        assert_eq!(step_folder(&steps[..2]), None);
        let workflow = "defaults:\n  run:\n    shell: bash\n    working-directory: \"api\"\n";
        assert_eq!(default_folder(workflow).as_deref(), Some("api"));
    }

    #[test]
    fn commands_that_start_tests_are_recognized() {
        let is_match = |text: &str| TESTS.is_match(text);
        for text in [
            "run: pytest -q",
            "session.run(\"pytest\")",
            "poetry run coverage run -m pytest",
            "make test",
            "bash scripts/tests-start.sh",
            "commands=pytest {posargs}",
            "hatch run cov",
        ] {
            assert!(is_match(text), "{text}");
        }
        for text in ["uses: x/pytest-action@v1", "alembic check", "echo testing"] {
            assert!(!is_match(text), "{text}");
        }
    }
}
