//! Commands that create the tables of a database before the tests, such as `alembic upgrade head`.
//!
//! They are read from the files in which CI and developers start the tests. Only the programs in one table count,
//! because other commands of these files deploy, install or format code.

mod before_tests;

use super::detect::join;
use super::named_requirements::named_requirements;
use super::named_variables::named_variables;
use super::{Recipe, normalized_name};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::{Result, quote};

/// A program that creates tables.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// Name and subcommand. Options of the program may be between them.
    words: &'static [&'static str],
    /// Whether `python -m` runs it too. The code in the folder is then on the import path.
    is_module: bool,
    /// File in the folder from which it runs; empty for any folder.
    file: &'static str,
    /// Variable that names the application; empty for none.
    variable: &'static str,
    /// Plugin of pytest that creates the tables for tests; empty for none.
    plugin: &'static str,
}

static PROGRAMS: [Program; 8] = [
    Program {
        words: &["alembic", "upgrade"],
        is_module: true,
        file: "alembic.ini",
        variable: "",
        plugin: "",
    },
    Program {
        words: &["flask", "db", "upgrade"],
        is_module: true,
        file: "migrations/alembic.ini",
        variable: "FLASK_APP",
        plugin: "",
    },
    Program {
        words: &["litestar", "database", "upgrade"],
        is_module: true,
        file: "",
        variable: "LITESTAR_APP",
        plugin: "",
    },
    Program {
        words: &["aerich", "upgrade"],
        is_module: false,
        file: "",
        variable: "",
        plugin: "",
    },
    Program {
        words: &["piccolo", "migrations", "forwards"],
        is_module: false,
        file: "piccolo_conf.py",
        variable: "PICCOLO_CONF",
        plugin: "",
    },
    Program {
        words: &["yoyo", "apply"],
        is_module: false,
        file: "yoyo.ini",
        variable: "",
        plugin: "",
    },
    Program {
        words: &["manage.py", "migrate"],
        is_module: false,
        file: "manage.py",
        variable: "DJANGO_SETTINGS_MODULE",
        plugin: "pytest-django",
    },
    Program {
        words: &["django-admin", "migrate"],
        is_module: false,
        file: "",
        variable: "DJANGO_SETTINGS_MODULE",
        plugin: "pytest-django",
    },
];

/// Words that may come before a program: shells, and tools that run it in an environment.
static LAUNCHERS: Pattern = Pattern::new(concat!(
    "^(?:bash|command|commands|commands_pre|env|exec|hatch|pdm|pipenv|pixi|poetry|run|rye|script",
    r"|session\.run|session\.run_always|sh|sudo|time|uv)$|^python",
));

/// Arguments of nox after those of the program.
const NOX_ARGUMENTS: [&str; 4] = ["env=", "external=", "silent=", "success_codes="];

/// A command that creates tables, as a file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Migration {
    program: &'static Program,
    /// Folder in which it runs, relative to the repository.
    folder: String,
    /// Variables that it sets, such as `FLASK_APP=shop`.
    assignments: Vec<String>,
    arguments: Vec<String>,
}

/// Returns the commands that create tables before the tests.
pub(super) fn commands(tree: &Tree, recipe: &Recipe) -> Result<Vec<String>> {
    if recipe.runner.kind != "pytest" {
        return Ok(Vec::new());
    }
    let mut migrations = before_tests::migrations(tree)?;
    if migrations.iter().any(|m| !m.program.plugin.is_empty()) {
        let named = named_requirements(tree)?;
        let is_required = |package: &str| {
            let mut lines = recipe.requirements.iter();
            named.contains_key(package) || lines.any(|line| normalized_name(line) == package)
        };
        migrations.retain(|m| m.program.plugin.is_empty() || !is_required(m.program.plugin));
    }
    let mut commands = Vec::new();
    for migration in migrations {
        let command = migration.command(tree, recipe)?;
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    Ok(commands)
}

impl Migration {
    /// Reads a command from its words. Returns `None` for other commands, and for those whose arguments are variables.
    fn parse(words: &[String], folder: &str) -> Option<Migration> {
        PROGRAMS
            .iter()
            .find_map(|program| Migration::of_program(program, words, folder))
    }

    fn of_program(program: &'static Program, words: &[String], folder: &str) -> Option<Migration> {
        let (name, subcommand) = program.words.split_first()?;
        let at = words.iter().position(|word| base_name(word) == *name)?;
        let (before, after) = (&words[..at], &words[at + 1..]);
        let arguments: Vec<String> = after
            .iter()
            .take_while(|word| !ends_arguments(word))
            .cloned()
            .collect();
        let is_subcommand = |part: &[String]| {
            part.iter()
                .map(String::as_str)
                .eq(subcommand.iter().copied())
        };
        let options = arguments
            .windows(subcommand.len())
            .position(is_subcommand)?;
        let has_only_options = options == 0 || arguments[0].starts_with('-');
        let is_literal = arguments.iter().all(|word| is_literal(word));
        if !has_only_options || !is_literal || !is_launched(before) {
            return None;
        }
        let folder = match words[at].rsplit_once('/') {
            Some((parent, _)) if *name == "manage.py" => join(folder, parent)?,
            _ => folder.to_owned(),
        };
        // The variables of a container can name other containers.
        let is_of_container =
            |at: usize| at > 0 && ["-e", "--env"].contains(&before[at - 1].as_str());
        let assignments = before
            .iter()
            .enumerate()
            .filter(|(at, word)| is_assignment(word) && !is_of_container(*at));
        Some(Migration {
            program,
            folder,
            assignments: assignments.map(|(_, word)| word.clone()).collect(),
            arguments,
        })
    }

    /// Returns the command for a shell in the root of the repository.
    fn command(&self, tree: &Tree, recipe: &Recipe) -> Result<String> {
        let variable = self.program.variable;
        let prefix = format!("{variable}=");
        let is_stated = self.assignments.iter().any(|a| a.starts_with(&prefix))
            || self.arguments.iter().any(|a| a.starts_with("--app"))
            || recipe.env.contains_key(variable);
        let mut words = Vec::new();
        if !variable.is_empty()
            && !is_stated
            && let Some(named) = named_variables(tree)?.get(variable)
            && !named.value.contains(char::is_control)
        {
            words.push(format!("{prefix}{}", quote(&named.value)));
        }
        let assignments = self.assignments.iter().filter_map(|a| a.split_once('='));
        words.extend(assignments.map(|(name, value)| format!("{name}={}", quote(value))));
        let name = self.program.words.first().copied().unwrap_or_default();
        words.push(match self.program.is_module {
            true => format!("python -m {name}"),
            false if name == "manage.py" => format!("python {name}"),
            false => name.to_owned(),
        });
        words.extend(self.arguments.iter().map(|argument| quote(argument)));
        let command = words.join(" ");
        Ok(match self.place(tree).as_str() {
            "" => command,
            folder => format!("cd {} && {command}", quote(folder)),
        })
    }

    /// Returns the folder to run in: the stated one, or the only other one that has the program's file.
    fn place(&self, tree: &Tree) -> String {
        // The folders of a container may have other names.
        let folder = match tree.has_folder(&self.folder) {
            true => self.folder.as_str(),
            false => "",
        };
        let file = self.program.file;
        let path = join(folder, file).unwrap_or_default();
        let names_file = |word: &String| word == "-c" || word.starts_with("--config");
        if file.is_empty() || tree.contains(&path) || self.arguments.iter().any(names_file) {
            return folder.to_owned();
        }
        let ending = format!("/{file}");
        let mut folders = tree.paths().filter_map(|path| match path == file {
            true => Some(""),
            false => path.strip_suffix(ending.as_str()),
        });
        match (folders.next(), folders.next()) {
            (Some(only), None) => only.to_owned(),
            _ => folder.to_owned(),
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns whether the words before a program only start it, such as `poetry run` or `docker compose exec web`.
fn is_launched(words: &[String]) -> bool {
    let is_container = |word: &String| word.starts_with("docker") || word == "podman";
    if words.iter().any(is_container) {
        return true;
    }
    let is_option = |word: &str| word.starts_with('-');
    words.iter().enumerate().all(|(at, word)| {
        let is_value = at > 0 && is_option(&words[at - 1]);
        LAUNCHERS.is_match(base_name(word))
            || is_option(word)
            || is_value
            // A key of YAML, a variable or an assignment.
            || word.ends_with(':')
            || word.contains(['$', '{', '='])
    })
}

/// Returns whether a word is a redirection, a comment or an argument of nox.
fn ends_arguments(word: &str) -> bool {
    word.contains(['<', '>', '\\'])
        || word.starts_with('#')
        || NOX_ARGUMENTS.iter().any(|name| word.starts_with(name))
}

/// Returns whether a shell takes the word as it is.
fn is_literal(word: &str) -> bool {
    let is_special = |c: char| c.is_control() || "${}`*()\"'".contains(c);
    !word.contains(is_special)
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(is_part)
    };
    word.split_once('=')
        .is_some_and(|(name, value)| is_name(name) && !value.is_empty() && is_literal(value))
}

#[cfg(test)]
mod tests;
