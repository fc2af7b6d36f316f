//! Commands in a repository's files that install or test it, as advice for the repair of its environment.

use super::detect::text;
use crate::pattern::Pattern;
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

static COMMAND: Pattern = Pattern::new(concat!(
    r"\b(?:pip3?|uv pip|conda|mamba|poetry|pdm|apt|apt-get|npm|brew)\s+(?:-\S+\s+)*install\b|session\.install",
    r"|\buv (?:sync|run)\b|\bpdm sync\b|\b(?:py\.?test|unittest|nose2?|tox|nox|runtests\.py|manage\.py)\b",
    r"|\bsetup\.py (?:develop|install|build|build_ext)\b|\bcargo (?:build|install)\b|DJANGO_SETTINGS_MODULE",
));

/// Further lines of files that are not prose.
static SETTING: Pattern = Pattern::new(
    r"\bmake [a-z]|\bimage:\s*\S|^FROM \S|\b[A-Z][A-Z_]*(?:URL|HOST|PORT|SECRET_KEY)\s*[:=]",
);

/// Lines that state the Python version.
static PYTHON: Pattern = Pattern::new(r"requires-python|python_requires|^python(?:-|\s*=\s*.)?\d");

/// Returns the commands, of the files that state them most reliably first. Lines with one of the `names` count too,
/// such as a variable that an error names.
///
/// # Errors
///
/// Fails if the archive of the code cannot be read.
pub fn stated_commands(tree: &Tree, names: &[String]) -> Result<Vec<StatedCommand>> {
    let mut paths: Vec<(usize, &str)> = tree
        .paths()
        .filter_map(|path| Some((rank(path)?, path)))
        .collect();
    paths.sort_unstable();
    let mut commands = Vec::new();
    for (rank, path) in paths {
        let text = text(tree, path)?.unwrap_or_default();
        commands.extend(commands_of(path, rank, &text, names));
    }
    let has_name = |command: &StatedCommand| names.iter().any(|name| command.text.contains(name));
    commands.sort_by_key(|command| !has_name(command));
    Ok(commands)
}

/// Rank of files of which only the Python version counts.
const METADATA: usize = 1;
/// Rank from which on files are prose.
const PROSE: usize = 4;

/// Returns how reliably a file states the commands, 0 for the most reliable, or `None` for other files.
fn rank(path: &str) -> Option<usize> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lower = name.to_lowercase();
    let is_yaml = lower.ends_with(".yml") || lower.ends_with(".yaml");
    match (folder, lower.as_str()) {
        (".github/workflows" | ".circleci" | ".ci" | "ci", _) if is_yaml => Some(0),
        ("", ".travis.yml" | ".gitlab-ci.yml" | "azure-pipelines.yml" | "appveyor.yml") => Some(0),
        ("", "pyproject.toml" | "setup.cfg" | "setup.py" | ".python-version" | "runtime.txt") => {
            Some(METADATA)
        }
        ("", "tox.ini" | "noxfile.py" | "makefile" | "gnumakefile" | "justfile") => Some(2),
        ("" | ".devcontainer", _)
            if lower.contains("dockerfile") || (is_yaml && lower.contains("compose")) =>
        {
            Some(3)
        }
        ("" | "docs" | "doc" | ".github", _)
            if lower.starts_with("contributing") || lower.starts_with("develop") =>
        {
            Some(PROSE)
        }
        ("", _) if lower.starts_with("readme") || lower.starts_with("install") => Some(PROSE + 1),
        _ => None,
    }
}

fn commands_of(path: &str, rank: usize, text: &str, names: &[String]) -> Vec<StatedCommand> {
    let counts = |line: &str| match rank {
        METADATA => PYTHON.is_match(line),
        rank => {
            COMMAND.is_match(line)
                || (rank < PROSE && SETTING.is_match(line))
                || names.iter().any(|name| line.contains(name))
        }
    };
    let mut commands: Vec<StatedCommand> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_repeated = commands.iter().any(|command| command.text == line);
        if line.starts_with('#') || is_repeated || !counts(line) {
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
        let commands = commands_of("ci.yml", 0, text, &[]);
        let lines: Vec<_> = commands.iter().map(|command| command.line).collect();
        assert_eq!(lines, [3, 5, 7, 8]);
        assert_eq!(commands[2].text, "- run: pip install -r dev.txt");
    }

    #[test]
    fn prose_and_metadata_state_little() {
        let count = |rank, text: &str, names: &[String]| commands_of("x", rank, text, names).len();
        assert_eq!(
            count(PROSE, "Make sure to make a star.\nRun `pytest`.\n", &[]),
            1
        );
        assert_eq!(count(3, "FROM python:3.6-alpine\n", &[]), 1);
        let metadata = "dependencies = [\"pytest\"]\nrequires-python = \">=3.8\"\n";
        assert_eq!(count(METADATA, metadata, &[]), 1);
        let names = ["COOKIE_SECRET".to_owned()];
        assert_eq!(count(3, "  COOKIE_SECRET: abc\n", &names), 1);
    }

    #[test]
    fn workflows_rank_before_readme() {
        assert_eq!(rank(".github/workflows/test.yaml"), Some(0));
        assert_eq!(rank("pyproject.toml"), Some(METADATA));
        assert_eq!(rank("Makefile"), Some(2));
        assert_eq!(rank("Dockerfile.dev"), Some(3));
        assert_eq!(rank("README.md"), Some(PROSE + 1));
        assert_eq!(rank(".restyled.yaml"), None);
        assert_eq!(rank("src/readme.py"), None);
    }
}
