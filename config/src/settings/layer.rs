//! One source of settings: a file, the environment, the flags.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::{FILE, Origin, READING, Settings, keys};
use crate::error::{Error, Kind, Result};

/// Values by key path, each with its origin.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub values: Vec<(Vec<String>, Value, Origin)>,
    pub notes: Vec<String>,
}

/// Trust in a settings file, by who chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// The user's own file, for all repositories.
    User,
    /// A file named by the user.
    Named,
    /// A file found in the current folder.
    Folder,
    /// A file found in the repository under test.
    Repository,
}

impl Trust {
    fn is_found(self) -> bool {
        matches!(self, Trust::Folder | Trust::Repository)
    }
}

/// Keys whose values are paths; in a file they are relative to its folder.
const PATHS: [&str; 6] = [
    "cache",
    "run.out",
    "run.prompts",
    "build.ca-bundle",
    "github.webhook-secret-file",
    "github.app-key-file",
];

/// Maximum length of a settings file in bytes.
const MAX_FILE_LEN: u64 = 1 << 20;

impl Layer {
    /// Reads a settings file; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not valid TOML, or has a value that its key does not allow.
    pub(super) fn file(path: &Path, trust: Trust) -> Result<Option<Layer>> {
        // Errors show only the name of a file in the current folder, as the user would write it.
        let display_path = match trust {
            Trust::Folder => PathBuf::from(FILE),
            Trust::User | Trust::Named | Trust::Repository => path.to_owned(),
        };
        let unreadable = |cause: String| {
            Error::usage(READING)
                .cause(format!("{}: {cause}", display_path.display()))
                .hint("correct or remove the file")
        };
        let text = match read(path, trust.is_found()) {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(e) => return Err(unreadable(e.to_string())),
            Ok(text) => text,
        };
        let text =
            String::from_utf8(text).map_err(|_| unreadable("is not UTF-8 text".to_owned()))?;
        let document = DeTable::parse(&text).map_err(|e| {
            let (line, column) = position(&text, e.span());
            let cause = format!(
                "{}:{line}:{column}: {}",
                display_path.display(),
                e.message()
            );
            Error::usage(READING).cause(cause)
        })?;
        let document = document.get_ref();
        if let Err(e) = toml::from_str::<Settings>(&text) {
            let at = format!("{}:{}", display_path.display(), position(&text, e.span()).0);
            let key = e
                .span()
                .map(|span| key_at(document, &span))
                .unwrap_or_default();
            return Err(explain(&at, &key, e.message()));
        }
        let table: Table = toml::from_str(&text).map_err(|e| unreadable(e.message().to_owned()))?;

        let mut layer = Layer::default();
        for (keys, mut value) in leaves(&table) {
            let line = line_of(document, &keys, &text);
            if keys == ["environment"] && trust == Trust::User {
                let cause = format!(
                    "{}:{line}: [environment] is not allowed in your own settings, because it describes one repository",
                    display_path.display()
                );
                let hint = format!("move it to that repository's {FILE}");
                return Err(Error::usage(READING).cause(cause).hint(hint));
            }
            if let Value::String(text) = &mut value
                && PATHS.contains(&keys.join(".").as_str())
            {
                *text = resolve(text, path.parent()).to_string_lossy().into_owned();
            }
            layer
                .values
                .push((keys, value, Origin::File(display_path.clone(), line)));
        }
        Ok(Some(layer))
    }

    /// Adds a single value. A value that does not fit its key is rejected with an error that names `at`.
    ///
    /// # Errors
    ///
    /// Fails if the key is unknown or the value does not fit it.
    pub(super) fn push(
        &mut self,
        at: &str,
        keys: Vec<String>,
        value: Value,
        origin: Origin,
    ) -> Result<()> {
        let mut table = Table::new();
        insert(&mut table, &keys, &value);
        if let Err(e) = table.try_into::<Settings>() {
            return Err(explain(at, &keys, e.message()));
        }
        self.values.push((keys, value, origin));
        Ok(())
    }

    /// Returns whether the layer has a value for this top-level key.
    pub(super) fn sets(&self, key: &str) -> bool {
        self.values.iter().any(|(keys, ..)| *keys == [key])
    }

    pub(super) fn merge_into(&self, table: &mut Table, origins: &mut BTreeMap<String, Origin>) {
        for (keys, value, origin) in &self.values {
            insert(table, keys, value);
            if *origin != Origin::Default {
                origins.insert(keys.join("."), origin.clone());
            }
        }
    }
}

/// Sets the value with this path in a table.
pub(super) fn insert(table: &mut Table, path: &[String], value: &Value) {
    let Some((last, sections)) = path.split_last() else {
        return;
    };
    let mut place = table;
    for section in sections {
        let entry = place
            .entry(section.clone())
            .or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(next) = entry else { return };
        place = next;
    }
    place.insert(last.clone(), value.clone());
}

/// Reads the whole file. A found file must be a regular file: a link could lead to any of the user's files,
/// and messages would quote its content.
fn read(path: &Path, is_found: bool) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let refused = std::io::Error::other;
    let links = if is_found { libc::O_NOFOLLOW } else { 0 };
    // Opening a pipe would block.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(links | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP) if is_found => refused("is a symbolic link"),
            Some(libc::ENXIO) => refused("is not a file"),
            _ => e,
        })?;
    if !file.metadata()?.is_file() {
        return Err(refused("is not a file"));
    }
    let mut text = Vec::new();
    file.take(MAX_FILE_LEN + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE_LEN {
        return Err(refused("is larger than 1 MiB"));
    }
    Ok(text)
}

/// Returns every value that is set as one unit, with its path: keys of sections, a model's price, the environment.
pub(super) fn leaves(table: &Table) -> Vec<(Vec<String>, Value)> {
    let mut values = Vec::new();
    for (section, value) in table {
        match value {
            Value::Table(keys) if section != "environment" => {
                for (key, value) in keys {
                    values.push((vec![section.clone(), key.clone()], value.clone()));
                }
            }
            _ => values.push((vec![section.clone()], value.clone())),
        }
    }
    values
}

/// Returns the section of a key, for messages.
fn place_of(key: &[String]) -> String {
    match key {
        [] | [_] => "at the top level".to_owned(),
        [sections @ .., _] => format!("in [{}]", sections.join(".")),
    }
}

/// Creates the error for a value that is not one of the names allowed for its key.
pub(super) fn unknown_name(at: &str, key: &[String], value: &str, known_names: &[&str]) -> Error {
    let name = key.last().map(String::as_str).unwrap_or_default();
    let names = known_names.join(", ");
    let error = invalid(
        at,
        format!("`{value}` is not one of {names}"),
        format!(
            "`{name}` {} cannot be `{value}`; it is one of {names}",
            place_of(key)
        ),
    );
    match nearest(value, known_names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Turns the deserializer's message about a value into one that a user can act on. `at` is a file and line,
/// or a variable.
pub(super) fn explain(at: &str, key: &[String], message: &str) -> Error {
    let place = place_of(key);
    let message = message.lines().next().unwrap_or(message);
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    if message.starts_with("unknown field ") {
        let elsewhere = keys::keys()
            .iter()
            .find(|k| k.key == unknown && k.section.is_some());
        let hint = match (nearest(unknown, &known), elsewhere) {
            (None, Some(definition)) => format!(
                "`{unknown}` belongs under [{}]",
                definition.section.as_deref().unwrap_or_default()
            ),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, None) => format!("known here: {}", known.join(", ")),
        };
        return Error::usage(READING)
            .cause(format!("{at}: unknown key `{unknown}` {place}"))
            .hint(hint);
    }
    if message.starts_with("unknown variant ") {
        return unknown_name(at, key, unknown, &known);
    }
    let name = key.last().map(String::as_str).unwrap_or_default();
    let message = message
        .replace("expected u64", "expected a whole number, not negative")
        .replace("expected f64", "expected a number");
    let text = format!("`{name}` {place}: {message}");
    invalid(at, message, text)
}

/// Creates the error for a value. `of_flag` is the problem with the value of a flag; `of_key` also names the key.
pub(super) fn invalid(at: &str, of_flag: String, of_key: String) -> Error {
    match at.starts_with("--") {
        true => Error::clause(Kind::Usage, format!("invalid {at}: {of_flag}")),
        false => Error::usage(READING).cause(format!("{at}: {of_key}")),
    }
}

/// Returns the known name that is most similar to a name; `None` if none is similar.
pub fn nearest<'a>(name: &str, known_names: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase().replace('_', "-");
    let far = (name.chars().count() / 3).max(1);
    known_names
        .iter()
        .map(|k| (strsim::damerau_levenshtein(&name, k), *k))
        .filter(|(distance, k)| {
            *distance <= far || (name.len() > 3 && (k.starts_with(&name) || name.starts_with(*k)))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// Returns the line and column, counted from 1.
fn position(text: &str, span: Option<Range<usize>>) -> (usize, usize) {
    let end = span.map_or(0, |s| s.start).min(text.len());
    let before = text.get(..end).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[line_start..].chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// Returns the path of the key that contains a span.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Vec<String> {
    for (key, value) in table {
        let (k, v) = (key.span(), value.span());
        let name = || vec![key.get_ref().to_string()];
        if k.start <= span.start && span.start < k.end {
            return name();
        }
        let inner = match value.get_ref() {
            DeValue::Table(inner) => key_at(inner, span),
            _ => Vec::new(),
        };
        if !inner.is_empty() || (v.start <= span.start && span.start < v.end) {
            let mut path = name();
            path.extend(inner);
            return path;
        }
    }
    Vec::new()
}

fn line_of(table: &DeTable<'_>, keys: &[String], text: &str) -> usize {
    let mut place = table;
    let mut line = 1;
    for name in keys {
        let Some((key, value)) = place.iter().find(|(key, _)| key.get_ref() == name) else {
            break;
        };
        line = position(text, Some(key.span())).0;
        match value.get_ref() {
            DeValue::Table(inner) => place = inner,
            _ => break,
        }
    }
    line
}

fn resolve(path: &str, folder: Option<&Path>) -> PathBuf {
    if let (Some(rest), Some(home)) = (path.strip_prefix("~/"), std::env::home_dir()) {
        return home.join(rest);
    }
    folder.unwrap_or(Path::new("")).join(path)
}
