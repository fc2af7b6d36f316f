//! The command line of a program of the user: `command:LINE`, or `command(NAME):LINE`.

use std::path::Path;

use testwright_config::error::{Error, Result};

use super::super::find;

const PREFIX: &str = "command";

/// Hint for a program that cannot be started.
pub(super) const HINT: &str = "check the command line after `command:`";

/// Maximum characters of a name.
const MAX_NAME_LEN: usize = 60;

/// A program of the user and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    name: Option<String>,
    line: String,
    words: Vec<String>,
}

impl CommandLine {
    /// Returns whether this names a program of the user instead of a built-in approach.
    pub fn is_command(text: &str) -> bool {
        let rest = text.strip_prefix(PREFIX);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '(']))
    }

    /// Parses `command:LINE` or `command(NAME):LINE`. The line is split into words like that of a shell, but without
    /// variables and wildcards.
    ///
    /// # Errors
    ///
    /// Fails if the form, the name or the quotes are invalid.
    pub(in crate::approaches) fn parse(text: &str) -> Result<Self> {
        let failed = |cause: &str| {
            Error::usage(format!("read the approach `{text}`"))
                .cause(cause)
                .hint("write command:'PROGRAM ARGUMENTS' or command(NAME):'PROGRAM ARGUMENTS'")
        };
        let rest = text.strip_prefix(PREFIX).unwrap_or_default();
        let (name, line) = match (rest.strip_prefix(':'), rest.strip_prefix('(')) {
            (Some(line), _) => (None, line),
            (None, Some(rest)) => rest
                .split_once("):")
                .map(|(name, line)| (Some(name), line))
                .ok_or_else(|| failed("the name has no end"))?,
            (None, None) => return Err(failed("the command line is missing")),
        };
        if let Some(name) = name {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > MAX_NAME_LEN || !name.chars().all(is_allowed) {
                return Err(failed(
                    "a name has 1 to 60 letters, digits, hyphens, underscores and dots",
                ));
            }
            if find(name).is_some() {
                return Err(failed(&format!("`{name}` is a built-in approach")));
            }
        }
        let words = shlex::split(line).ok_or_else(|| failed("a quote is not closed"))?;
        if words.first().is_none_or(String::is_empty) {
            return Err(failed("the command line is empty"));
        }
        Ok(CommandLine {
            name: name.map(str::to_owned),
            line: line.trim().to_owned(),
            words,
        })
    }

    /// Returns the approach as written on the command line.
    pub fn approach(&self) -> String {
        match &self.name {
            Some(name) => format!("{PREFIX}({name}):{}", self.line),
            None => format!("{PREFIX}:{}", self.line),
        }
    }

    /// Returns the command line.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns the arguments of the program.
    pub fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Checks that the program exists.
    pub(in crate::approaches) fn check_program(&self) -> Result<()> {
        let program = self.program();
        let has = |folder: &Path| folder.join(program).is_file();
        let exists = match program.contains('/') {
            true => has(Path::new("")),
            // Without a PATH, the system has a default.
            false => std::env::var_os("PATH")
                .is_none_or(|path| std::env::split_paths(&path).any(|folder| has(&folder))),
        };
        match exists {
            true => Ok(()),
            false => Err(Error::usage(format!("start `{program}`"))
                .cause("there is no such program")
                .hint(HINT)),
        }
    }
}

/// Returns the name of an approach in reports: NAME for `command(NAME):LINE`, otherwise the approach itself.
pub fn report_name(approach: &str) -> &str {
    let rest = approach
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_prefix('('));
    rest.and_then(|rest| rest.split_once("):"))
        .map_or(approach, |(name, _)| name)
}

/// Splits a list of approaches at its commas, except inside of quotes, as in `command:'a.py x,y',otter`.
pub fn split_list(list: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let (mut quote, mut is_escaped) = (None, false);
    for c in list.chars() {
        let is_separator = c == ',' && quote.is_none() && !is_escaped;
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        match names.last_mut() {
            Some(last) if !is_separator => last.push(c),
            _ => names.push(String::new()),
        }
    }
    // Users may put a space after each comma.
    names.iter().map(|name| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests;
