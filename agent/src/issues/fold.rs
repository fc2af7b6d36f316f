//! Folds an issue for prompts: removes the template's comments and folds repeated parts. Each fold says what
//! it omits, and the full text stays available.

use std::collections::HashMap;

use testwright_sandboxes::Pattern;

/// Path under which `open_file` shows the full text.
pub const FULL_ISSUE_PATH: &str = "ISSUE";

/// Minimum lines of a repeated stretch to fold.
const REPEATED_LINES: usize = 5;
const REPEATED_CHARS: usize = 240;
/// Minimum number of consecutive version lines to fold.
const VERSIONS: usize = 8;
const MIN_SIMILAR_LINES: usize = 20;
const KEPT: usize = 3;
/// Maximum number of words compared between lines.
const MAX_WORDS: usize = 200;

/// Returns the folded text; `None` if there is nothing to fold.
pub(super) fn folded(text: &str) -> Option<String> {
    let written = without_empty_sections(&without_comments(text));
    let lines: Vec<&str> = written.lines().collect();
    let repeats = repeats(&lines);
    let mut out: Vec<String> = Vec::new();
    let mut fence = Fence::default();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let was_open = fence.is_open;
        if let Some((length, from)) = repeats.get(&at) {
            out.push(format!(
                "[… {length} lines folded: the same as above, from “{}” on]",
                shortened(from)
            ));
            for line in &lines[at..at + length] {
                fence.pass(line);
            }
            // If the folded stretch opens or closes a code block, so must its placeholder.
            if fence.is_open != was_open {
                out.push("```".to_owned());
            }
            at += length;
            continue;
        }
        fence.pass(line);
        let rest = &lines[at..];
        let versions = rest.iter().take_while(|line| is_version(line)).count();
        let alike = match fence.is_code {
            true => 0,
            false => alike(rest),
        };
        if versions >= VERSIONS {
            let (python_lines, folded): (Vec<&&str>, Vec<&&str>) = rest[..versions]
                .iter()
                .partition(|line| line.to_lowercase().contains("python"));
            out.extend(python_lines.iter().map(|line| (**line).to_owned()));
            out.push(format!(
                "[… {} lines of versions folded, from “{}” on]",
                folded.len(),
                shortened(folded.first().map_or("", |line| line))
            ));
            at += versions;
        } else if alike >= MIN_SIMILAR_LINES {
            out.extend(rest[..KEPT].iter().map(|line| (*line).to_owned()));
            out.push(format!("[… {} like lines folded]", alike - KEPT - 1));
            out.push(rest[alike - 1].to_owned());
            at += alike;
        } else {
            out.push(line.to_owned());
            at += 1;
        }
    }
    let folded_text = out.join("\n");
    if folded_text.trim_end() == text.trim_end() {
        return None;
    }
    Some(folded_text.trim().to_owned())
}

/// Returns a hint on how to see the folded text, for models with that tool; empty if nothing is folded.
pub(super) fn hint(folded: &str) -> String {
    match folded.lines().any(|line| line.starts_with("[… ")) {
        true => {
            format!("\n\n[`open_file` with path `{FULL_ISSUE_PATH}` shows the issue unfolded.]")
        }
        false => String::new(),
    }
}

/// Tracks whether a line is in a code block, and whether that is Python.
#[derive(Default)]
struct Fence {
    is_open: bool,
    is_code: bool,
}

impl Fence {
    fn pass(&mut self, line: &str) {
        let line = line.trim_start();
        let mut fences = ["```", "~~~"].iter();
        if let Some(rest) = fences.find_map(|fence| line.strip_prefix(fence)) {
            self.is_open = !self.is_open;
            self.is_code = self.is_open && rest.trim().to_lowercase().starts_with("py");
        }
    }
}

/// Removes headings under which an issue form left no text.
fn without_empty_sections(text: &str) -> String {
    let mut fence = Fence::default();
    // Each section has the level of its heading (0 for none) and its lines.
    let mut sections: Vec<(usize, Vec<&str>)> = vec![(0, Vec::new())];
    for line in text.lines() {
        let level = match fence.is_open {
            true => 0,
            false => heading_level(line),
        };
        fence.pass(line);
        if level > 0 {
            sections.push((level, Vec::new()));
        }
        if let Some((_, lines)) = sections.last_mut() {
            lines.push(line);
        }
    }
    let is_filled = |(at, (level, lines)): &(usize, &(usize, Vec<&str>))| {
        let is_written = |line: &&&str| !matches!(line.trim(), "" | "_No response_" | "N/A");
        // Text under subheadings belongs to those.
        let has_parts = sections.get(at + 1).is_some_and(|(next, _)| next > level);
        // The first heading may be the issue's title.
        *at <= 1 || has_parts || lines.iter().skip(1).any(|line| is_written(&line))
    };
    let filled = sections.iter().enumerate().filter(is_filled);
    let lines: Vec<&str> = filled
        .flat_map(|(_, (_, lines))| lines.iter().copied())
        .collect();
    lines.join("\n")
}

/// Returns the number of `#` in a heading; 0 for other lines. A single `#` is just as often a comment in code.
fn heading_level(line: &str) -> usize {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    match (2..=6).contains(&level) && rest.starts_with(' ') {
        true => level,
        false => 0,
    }
}

/// Removes `<!-- … -->` outside of code, and the empty lines that this leaves.
fn without_comments(text: &str) -> String {
    if !text.contains("<!--") {
        return text.to_owned();
    }
    let mut out: Vec<String> = Vec::new();
    let mut fence = Fence::default();
    let mut in_comment = false;
    for line in text.lines() {
        if !in_comment {
            fence.pass(line);
            if fence.is_open {
                out.push(line.to_owned());
                continue;
            }
        }
        let mut visible_text = String::new();
        let mut rest = line;
        let was_touched = in_comment || line.contains("<!--");
        loop {
            let mark = if in_comment { "-->" } else { "<!--" };
            let Some((before, after)) = rest.split_once(mark) else {
                if !in_comment {
                    visible_text.push_str(rest);
                }
                break;
            };
            if !in_comment {
                visible_text.push_str(before);
            }
            in_comment = !in_comment;
            rest = after;
        }
        let is_blank = visible_text.trim().is_empty();
        let after_blank = out
            .last()
            .is_none_or(|last: &String| last.trim().is_empty());
        if !(is_blank && (was_touched || after_blank)) {
            out.push(visible_text);
        }
    }
    match in_comment {
        // An unclosed comment hides nothing.
        true => text.to_owned(),
        false => out.join("\n"),
    }
}

/// Returns repeated stretches by their first line, each with its length and first line of text.
fn repeats<'t>(lines: &[&'t str]) -> HashMap<usize, (usize, &'t str)> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut repeats = HashMap::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let mut length = 0;
        if let Some(&from) = first.get(line).filter(|_| !line.trim().is_empty()) {
            while at + length < lines.len()
                && from + length < at
                && lines[from + length] == lines[at + length]
            {
                length += 1;
            }
        }
        while length > 0 && lines[at + length - 1].trim().is_empty() {
            length -= 1;
        }
        let stretch = lines[at..at + length].iter().map(|line| line.trim().len());
        let chars: usize = stretch.clone().sum();
        let telling = stretch.filter(|length| *length > 0).count();
        if telling >= REPEATED_LINES && chars >= REPEATED_CHARS {
            repeats.insert(at, (length, line));
            at += length;
        } else {
            first.entry(line).or_insert(at);
            at += 1;
        }
    }
    repeats
}

/// Returns whether a line states a version: `numpy: 1.21.0`, `numpy==1.21.0`, `numpy 1.21.0`, `libfoo: None`.
fn is_version(line: &str) -> bool {
    static VERSION: Pattern = Pattern::new(
        r"^[\s>*-]*[A-Za-z][\w.\-/() ]{0,40}?\s*(==|[:=|]|\s)\s*[vV]?(\d+(\.[\w*+-]+)+\S*|None|none|null|installed|not installed|N/A)\s*(\(.*\)|pypi\S*|[\w-]+_\d+.*)?\|?$",
    );
    VERSION.is_match(line)
}

/// Returns the number of similar lines at the beginning: the same words in the same places, except for
/// numbers and a few others.
fn alike(lines: &[&str]) -> usize {
    let words = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().take(MAX_WORDS);
        words
            .map(|word| word.replace(|c: char| c.is_ascii_digit(), "0"))
            .collect()
    };
    let Some(first) = lines.first() else { return 0 };
    let first = words(first);
    let is_prompt = |line: &str| {
        let mut marks = [">>>", "...", "In ["].iter();
        marks.any(|mark| line.trim_start().starts_with(mark))
    };
    if first.len() < 3 || lines.first().is_some_and(|line| is_prompt(line)) {
        return 0;
    }
    let is_like = |line: &&&str| {
        let other = words(line);
        let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
        other.len().abs_diff(first.len()) <= 1 && same * 10 >= first.len() * 6 && !is_prompt(line)
    };
    lines.iter().take_while(is_like).count()
}

fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(50) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
