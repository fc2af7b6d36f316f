//! Shortens warnings in the output of a snippet: libraries print dozens of them during import.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// Maximum number of warnings from the repository's code that are shown: the last ones, since import warnings come
/// first. Warnings of libraries are the same each time.
const MAX_SHOWN: usize = 3;

/// Beginning of the line that replaces repeated warnings.
const SAME: &str = "[... the same warning";

/// Matches `path:line: Category: message`, Python's default format.
static WARNING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(.+):\d+: (\w*Warning): ").ok());

/// Shows only the last warnings, and counts the others. Warnings from the snippet itself stay, each message once. If
/// the snippet is about warnings, all stay, each message once per line of code.
pub(super) fn folded(stderr: &str, code: &str) -> String {
    let Some(pattern) = WARNING.as_ref() else {
        return stderr.to_owned();
    };
    let is_about_warnings = code.to_lowercase().contains("warn");
    let condensed = without_repeated(stderr, pattern, is_about_warnings);
    match is_about_warnings {
        true => condensed,
        false => without_those_of_libraries(&condensed, pattern),
    }
}

/// Shows each warning once, with the number of repetitions: those with the same message and, if `is_by_line`, from the
/// same line of code.
fn without_repeated(printed: &str, pattern: &Regex, is_by_line: bool) -> String {
    let lines: Vec<&str> = printed.split_inclusive('\n').collect();
    // The first line, the complete text and the number of repetitions of each warning.
    let mut warnings: Vec<(&str, &str, usize)> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    let mut hidden = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        let Some(category) = pattern.captures(line).and_then(|parts| parts.get(2)) else {
            continue;
        };
        let (path, message) = line.split_at(category.start());
        let path = match path {
            path if is_by_line => path,
            // Library warnings are left out later.
            path if path.starts_with('/') => continue,
            path if path.starts_with("snippet.py:") => "snippet.py",
            _ => "",
        };
        let source = lines.get(at + 1).is_some_and(|next| next.starts_with("  "));
        let end = at + 1 + usize::from(source);
        let mut entries = warnings.iter_mut();
        match entries.find(|(p, m, _)| (*p, *m) == (path, message)) {
            Some((_, _, more)) => {
                *more += 1;
                hidden[at..end].fill(true);
            }
            None => {
                warnings.push((path, message, 0));
                ends.push(end);
            }
        }
    }
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        if !hidden[at] {
            out.push_str(line);
        }
        let index = ends.iter().position(|end| *end == at + 1);
        match index.and_then(|of| warnings.get(of)) {
            Some((_, _, 1)) => out.push_str(&format!("{SAME} once more ...]\n")),
            Some((_, _, more @ 2..)) => {
                out.push_str(&format!("{SAME} {more} more times ...]\n"));
            }
            _ => {}
        }
    }
    out
}

fn without_those_of_libraries(stderr: &str, pattern: &Regex) -> String {
    let lines: Vec<&str> = stderr.split_inclusive('\n').collect();
    // The start, the number of lines (including the line of source below) and the category of each warning.
    let mut warnings: Vec<(usize, usize, &str)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let parts = pattern.captures(line).map(|parts| parts.extract());
        let Some((_, [path, category])) = parts else {
            continue;
        };
        if path != "snippet.py" {
            let mut length = 1;
            for below in ["  ", SAME] {
                let next = lines.get(at + length);
                length += usize::from(next.is_some_and(|next| next.starts_with(below)));
            }
            warnings.push((at, length, category));
        }
    }
    let is_library = |at: usize| lines.get(at).is_some_and(|line| line.starts_with('/'));
    let own = warnings.iter().filter(|(at, ..)| !is_library(*at)).count();
    let mut own_left_out = own.saturating_sub(MAX_SHOWN);
    let left_out: Vec<&(usize, usize, &str)> = (warnings.iter())
        .filter(|(at, ..)| {
            is_library(*at) || {
                let is_out = own_left_out > 0;
                own_left_out = own_left_out.saturating_sub(1);
                is_out
            }
        })
        .collect();
    let out = left_out.len();
    if out <= 1 {
        return stderr.to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut hidden = vec![false; lines.len()];
    for (at, length, category) in &left_out {
        *counts.entry(category).or_default() += 1;
        hidden[*at..at + length].fill(true);
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(category, number)| format!("{number} {category}"))
        .collect();
    let note = format!(
        "[... {out} warnings left out: {}; mention `warnings` in the snippet to see all ...]\n",
        counts.join(", ")
    );
    let mut result = String::new();
    for (at, line) in lines.iter().enumerate() {
        if warnings.first().is_some_and(|(first, ..)| *first == at) {
            result.push_str(&note);
        }
        if !hidden[at] {
            result.push_str(line);
        }
    }
    result
}

#[cfg(test)]
mod tests;
