//! Replaces text in a file: finds where it occurs, and explains the refusal if it is missing or ambiguous.

use super::line_numbers::cut;
use crate::python::{Module, flatten, line_of};
use crate::tool::{Result, refusal};
use crate::visible::visible;

/// Maximum number of places that are shown.
const MAX_PLACES: usize = 10;
/// Maximum columns of a line that is shown.
const COLUMNS: usize = 120;

/// Replaces `old` by `new` in `now`.
///
/// # Errors
///
/// Fails unless `old` occurs exactly once, or at the given line.
pub(super) fn replace_text(
    path: &str,
    now: &str,
    old: &str,
    new: &str,
    line: Option<usize>,
) -> Result<String> {
    let at = find_text(path, now, old, line)?;
    Ok(format!("{}{new}{}", &now[..at], &now[at + old.len()..]))
}

/// Returns the byte offset of a text that occurs once, or at the given line.
///
/// # Errors
///
/// Fails if the text is missing or ambiguous.
pub(super) fn find_text(path: &str, now: &str, old: &str, line: Option<usize>) -> Result<usize> {
    let places: Vec<usize> = now.match_indices(old).map(|(at, _)| at).collect();
    let at_line = |number: usize| {
        let mut places = places.iter().copied();
        places.find(|at| line_of(now, *at) == number)
    };
    let at = match (places.as_slice(), line) {
        ([at], _) => *at,
        ([], _) if visible(now).contains(old) => {
            return Err(refusal!(
                "`{path}` holds characters there that are only shown as escapes such as `\\u{{1b}}`. Take the text beside \
                 them."
            ));
        }
        ([], _) => {
            return Err(refusal!(
                "`old` does not occur in `{path}`. It has to be the text as it stands there, indentation included.{}",
                nearest_lines(now, old)
            ));
        }
        (many, line) => match line.and_then(at_line) {
            Some(at) => at,
            None => {
                return Err(refusal!(
                    "`old` occurs {} times in `{path}`; say which by `line`, or take more of the text around it:\n{}",
                    many.len(),
                    shown_places(path, now, many)
                ));
            }
        },
    };
    Ok(at)
}

/// Lists the line at which each place begins, with the function or class around it.
fn shown_places(path: &str, now: &str, places: &[usize]) -> String {
    let lines: Vec<&str> = now.lines().collect();
    // Other files have no Python definitions, or few that are meaningful.
    let outline = match path.ends_with(".py") {
        true => Module::parse(now).outline(),
        false => Vec::new(),
    };
    let definitions = flatten(&outline);
    let mut excerpts: Vec<String> = Vec::new();
    for at in places.iter().take(MAX_PLACES) {
        let line = line_of(now, *at);
        let text = lines.get(line - 1).copied().unwrap_or_default();
        let around = definitions
            .iter()
            .rfind(|d| d.first <= line && line <= d.last && d.line != line);
        let around = around.map(|d| format!("   in `{}`", cut(&d.signature, 60)));
        excerpts.push(format!(
            "{line:>5} {}{}",
            cut(text, COLUMNS),
            around.unwrap_or_default()
        ));
    }
    if places.len() > MAX_PLACES {
        excerpts.push(format!("      … and {} more", places.len() - MAX_PLACES));
    }
    excerpts.join("\n")
}

/// Shows the part of the file that is most similar to the text, with line numbers.
fn nearest_lines(now: &str, old: &str) -> String {
    let old_lines: Vec<&str> = old.lines().filter(|line| !line.trim().is_empty()).collect();
    let lines: Vec<&str> = now.lines().collect();
    let Some(first) = old_lines.first() else {
        return String::new();
    };
    let best = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (similarity(line.trim(), first.trim()), at))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    match best {
        Some((likeness, at)) if likeness > 0.5 => {
            let excerpt: Vec<String> = lines
                .iter()
                .enumerate()
                .skip(at)
                .take(old_lines.len().clamp(1, 8))
                .map(|(at, line)| format!("{:>5} {line}", at + 1))
                .collect();
            format!(" The nearest is:\n{}", excerpt.join("\n"))
        }
        _ => String::new(),
    }
}

/// Rates the similarity of two lines: by spelling as a whole, or by shared words, so that a part of a line matches too.
fn similarity(line: &str, target: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        parts
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (there, target_words) = (words(line), words(target));
    let shared = target_words
        .iter()
        .filter(|word| there.contains(word))
        .count();
    let part = shared as f64 / target_words.len().max(1) as f64;
    strsim::normalized_levenshtein(line, target).max(part)
}

#[cfg(test)]
mod tests;
