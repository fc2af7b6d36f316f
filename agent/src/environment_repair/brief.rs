//! Facts for a model, or a person, who repairs a recipe.

use std::collections::BTreeSet;
use std::io::{Seek as _, SeekFrom};
use std::path::Path;

use testwright_agent_prompts::EnvironmentRepairTask;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::plain_file::{self, Links};
use testwright_sandboxes::recipe::{self, Recipe};
use testwright_sandboxes::repository::{Source, Tree};
use testwright_tools::visible;

/// Maximum bytes of the log's end.
const MAX_LOG_LEN: u64 = 4 << 10;
/// Maximum names of the root folder.
const MAX_FILES: usize = 80;
/// Maximum lines of the repository's files.
const MAX_COMMANDS: usize = 40;
/// Maximum lines of a recipe in advice.
const MAX_RECIPE_LINES: usize = 20;
/// Maximum lines of the repository's files in advice.
const MAX_ADVICE_LINES: usize = 12;

/// Returns the facts for a model.
pub(super) fn task(
    source: &Source,
    recipe: &Recipe,
    origin: &str,
    pythons: Vec<String>,
    failure: &SandboxError,
    sample: Option<String>,
) -> Result<EnvironmentRepairTask, SandboxError> {
    let tree = source.tree()?;
    Ok(EnvironmentRepairTask {
        repository: source.name.clone(),
        date: (source.date.as_ref()).map(|date| date.chars().take(10).collect()),
        pythons,
        origin: origin.to_owned(),
        recipe: keys_of(recipe),
        error: visible(&failure.message).into_owned(),
        log: match sample {
            // The results of the tests have the same tracebacks.
            Some(_) => String::new(),
            None => visible(&end_of_log(failure.log.as_deref())).into_owned(),
        },
        sample,
        files: names_in(&tree, "", MAX_FILES),
        commands: commands(&tree, MAX_COMMANDS, &failure.message)?,
    })
}

/// Returns advice for a person who repairs the recipe. A long recipe is written to a file beside the build's log.
pub(crate) fn advice(
    source: &Source,
    recipe: &Recipe,
    failure: &SandboxError,
) -> Result<String, SandboxError> {
    let error = &failure.message;
    let recipe = recipe.to_toml();
    let mut text = "\n  recipe, to amend in testwright.toml:".to_owned();
    match (failure.log.as_ref()).map(|log| log.with_extension("toml")) {
        Some(file) if recipe.lines().count() > MAX_RECIPE_LINES => {
            std::fs::write(&file, &recipe)?;
            text.push_str(&format!(" {}", file.display()));
        }
        _ => {
            for line in recipe.lines() {
                text.push_str(&format!("\n    {line}"));
            }
        }
    }
    let commands = commands(&source.tree()?, MAX_ADVICE_LINES, error)?;
    if !commands.is_empty() {
        text.push_str("\n  how the repository installs and tests itself:");
    }
    for command in commands {
        text.push_str(&format!("\n    {command}"));
    }
    Ok(text)
}

/// Returns the keys of a recipe as TOML, without the table's name.
fn keys_of(recipe: &Recipe) -> String {
    let keys = toml::to_string_pretty(&recipe.keys()).unwrap_or_default();
    keys.trim_end().to_owned()
}

fn commands(tree: &Tree, most: usize, error: &str) -> Result<Vec<String>, SandboxError> {
    let commands = recipe::stated_commands(tree, &variables(error))?;
    let line = |command: &recipe::StatedCommand| {
        let text = visible(&command.text).into_owned();
        format!("{}:{}: {text}", command.path, command.line)
    };
    Ok(commands.iter().take(most).map(line).collect())
}

/// Returns the words of an error that look like environment variables.
fn variables(error: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = error.split(|c: char| !is_part(c));
    let words = words.filter(|word| word.len() > 4 && word.trim_matches('_').contains('_'));
    words.map(str::to_owned).collect()
}

/// Returns the first names of a folder, sorted; those of folders end with a slash. `prefix` is its path with a slash, or
/// empty for the root.
pub(super) fn names_in(tree: &Tree, prefix: &str, most: usize) -> Vec<String> {
    let inside = tree.paths().filter_map(|path| path.strip_prefix(prefix));
    let names: BTreeSet<&str> = inside
        .map(|rest| match rest.split_once('/') {
            Some((folder, _)) => &rest[..=folder.len()],
            None => rest,
        })
        .collect();
    names.into_iter().take(most).map(str::to_owned).collect()
}

/// Returns the last whole lines of a build's log.
fn end_of_log(log: Option<&Path>) -> String {
    let end = log.and_then(|log| read_end(log).ok()).unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    // The first line is a part of one.
    let text = match end.len() as u64 > MAX_LOG_LEN {
        true => text.split_once('\n').map_or("", |(_, rest)| rest),
        false => &text,
    };
    text.trim().to_owned()
}

/// Reads the last bytes of a file, one more than the maximum if it is longer.
fn read_end(log: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = plain_file::open(log, Links::Refuse, plain_file::MAX_RECORDS)?;
    let start = file.metadata()?.len().saturating_sub(MAX_LOG_LEN + 1);
    file.seek(SeekFrom::Start(start))?;
    plain_file::read_all(file, MAX_LOG_LEN + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn end_of_log_has_whole_lines() {
        let log = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(log.path(), "one\ntwo\n").unwrap();
        assert_eq!(end_of_log(Some(log.path())), "one\ntwo");
        let long = format!("{}\nlast\n", "x".repeat(9000));
        std::fs::write(log.path(), long).unwrap();
        assert_eq!(end_of_log(Some(log.path())), "last");
        assert_eq!(end_of_log(None), "");
    }

    #[test]
    fn variables_are_words_with_underscores() {
        let error = "KeyError: 'LEVEL_OF_TEST' in HTTP_1 or __NAME__ and PATH";
        assert_eq!(variables(error), ["LEVEL_OF_TEST", "HTTP_1"]);
    }
}
