//! Commands in a repository's files that install or test it, as advice for the repair of its environment.

use std::sync::LazyLock;

use regex::Regex;

use super::MAX_FILE_LEN;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Maximum commands of one file.
const MAX_PER_FILE: usize = 12;
/// Maximum characters of a command.
const MAX_LEN: usize = 160;

/// A line of a repository's file with a command or a variable for its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedCommand {
    /// Path relative to the repository.
    pub path: String,
    /// Number of the line, counted from 1.
    pub line: usize,
    /// The line, truncated.
    pub text: String,
}

static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\b(?:pip3?|uv pip|conda|mamba|poetry|pdm|apt|apt-get|npm|brew)\s+(?:-\S+\s+)*install\b|session\.install",
        r"|\buv (?:sync|run)\b|\bpdm sync\b|\b(?:py\.?test|unittest|nose2?|tox|nox|runtests\.py|manage\.py)\b",
        r"|\bsetup\.py (?:develop|install|build|build_ext)\b|\bmake [a-z]|\bcargo (?:build|install)\b",
        r"|DJANGO_SETTINGS_MODULE|\bimage:\s*\S|\b[A-Z][A-Z_]*(?:URL|HOST|PORT|SECRET_KEY)\s*[:=]",
    ))
    .ok()
});

/// Returns the commands, of the files that state them most reliably first.
///
/// # Errors
///
/// Fails if the archive of the code cannot be read.
pub fn stated_commands(tree: &Tree) -> Result<Vec<StatedCommand>> {
    let mut paths: Vec<(usize, &str)> = tree
        .paths()
        .filter_map(|path| Some((rank(path)?, path)))
        .collect();
    paths.sort_unstable();
    let mut commands = Vec::new();
    for (_, path) in paths {
        if tree.is_larger(path, MAX_FILE_LEN) {
            continue;
        }
        let text = tree.text(path)?.unwrap_or_default();
        commands.extend(commands_of(path, &text));
    }
    Ok(commands)
}

/// Returns how reliably a file states the commands, 0 for the most reliable, or `None` for other files.
fn rank(path: &str) -> Option<usize> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lower = name.to_lowercase();
    let is_yaml = lower.ends_with(".yml") || lower.ends_with(".yaml");
    match (folder, lower.as_str()) {
        (".github/workflows" | ".circleci" | ".ci" | "ci", _) if is_yaml => Some(0),
        ("", ".travis.yml" | ".gitlab-ci.yml" | "azure-pipelines.yml" | "appveyor.yml") => Some(0),
        ("", "tox.ini" | "noxfile.py" | "makefile" | "gnumakefile" | "justfile") => Some(1),
        ("" | ".devcontainer", _) if lower.contains("dockerfile") || is_yaml => Some(2),
        ("" | "docs" | "doc" | ".github", _)
            if lower.starts_with("contributing") || lower.starts_with("develop") =>
        {
            Some(3)
        }
        ("", _) if lower.starts_with("readme") || lower.starts_with("install") => Some(4),
        _ => None,
    }
}

fn commands_of(path: &str, text: &str) -> Vec<StatedCommand> {
    let Some(pattern) = COMMAND.as_ref() else {
        return Vec::new();
    };
    let mut commands: Vec<StatedCommand> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('#')
            || !pattern.is_match(line)
            || commands.iter().any(|command| command.text == line)
        {
            continue;
        }
        commands.push(StatedCommand {
            path: path.to_owned(),
            line: at + 1,
            text: line.chars().take(MAX_LEN).collect(),
        });
        if commands.len() == MAX_PER_FILE {
            break;
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_variables_are_extracted() {
        let text = "on: push\nenv:\n  DATABASE_URL: postgres://localhost\nsteps:\n  - run: sudo apt-get -y install libpq-dev\n  \
                    # - run: pip install no\n  - run: pip install -r dev.txt\n  - run: python manage.py test\n  - uses: \
                    actions/checkout@v4\n  - run: pip install -r dev.txt\n";
        let commands = commands_of("ci.yml", text);
        let lines: Vec<_> = commands.iter().map(|command| command.line).collect();
        assert_eq!(lines, [3, 5, 7, 8]);
        assert_eq!(commands[2].text, "- run: pip install -r dev.txt");
    }

    #[test]
    fn workflows_rank_before_readme() {
        assert_eq!(rank(".github/workflows/test.yaml"), Some(0));
        assert_eq!(rank("Makefile"), Some(1));
        assert_eq!(rank("Dockerfile.dev"), Some(2));
        assert_eq!(rank("README.md"), Some(4));
        assert_eq!(rank("src/readme.py"), None);
    }
}
