//! Transcripts of `>>>` prompts and of IPython.

use testwright_sandboxes::Pattern;

use super::code::{balanced, split_note};
use super::traceback::{self, RaisedException};

/// One input and its result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Source of the input, without prompts.
    pub source: String,
    /// Output; empty if nothing was shown, or if an exception was raised.
    pub output: String,
    /// Exception that the input raised, if any.
    pub raised: Option<RaisedException>,
    /// Comments next to the input or the output: `# should be False`.
    pub note: String,
    /// IPython's number of the input.
    pub number: Option<u32>,
}

/// Maximum bytes of an input that may continue; each further line rescans the whole.
const MAX_INPUT_LEN: usize = 16_000;

static INPUT: Pattern = Pattern::new(r"^\s*(?:>>> ?(.*)|In ?\[(\d*)\]: ?(.*))$");
static MORE: Pattern = Pattern::new(r"^\s*(?:\.\.\.(?: (.*)|)|\s*\.\.\.: ?(.*))$");
static OUT: Pattern = Pattern::new(r"^\s*Out ?\[\d*\]: ?");

pub(super) fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut outputs: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if let Some(input) = INPUT.captures(line) {
            let source = input.get(1).or(input.get(3)).map_or("", |m| m.as_str());
            let number = input.get(2).and_then(|m| m.as_str().parse().ok());
            if source.trim().is_empty() {
                continue;
            }
            entries.push(Entry {
                source: source.trim_start().to_owned(),
                number,
                ..Entry::default()
            });
            outputs.push(Vec::new());
            continue;
        }
        let (Some(entry), Some(lines)) = (entries.last_mut(), outputs.last_mut()) else {
            continue;
        };
        let open = lines.is_empty() && entry.source.len() < MAX_INPUT_LEN;
        match MORE.captures(line) {
            Some(more) if open && goes_on(&entry.source) => {
                entry.source.push('\n');
                let rest = more.get(1).or(more.get(2)).map_or("", |m| m.as_str());
                entry.source.push_str(rest);
            }
            // An input may continue on the next line without a second prompt.
            None if open && !balanced(&entry.source) => {
                entry.source.push('\n');
                entry.source.push_str(line);
            }
            _ => lines.push(line),
        }
    }
    for (entry, lines) in entries.iter_mut().zip(outputs) {
        finish(entry, &lines);
    }
    entries
}

/// Returns whether more of the input may follow: an open bracket, a block, or a decorator.
fn goes_on(source: &str) -> bool {
    let first = source.trim_start();
    let (last, _) = split_note(source.lines().last().unwrap_or(""));
    !balanced(source)
        || last.ends_with([':', '\\'])
        || source.contains('\n')
        || first.starts_with('@')
        || (first.contains(":")
            && ["def ", "class ", "for ", "with ", "if ", "while ", "try"]
                .iter()
                .any(|w| first.starts_with(w)))
}

fn finish(entry: &mut Entry, lines: &[&str]) {
    if !entry.source.contains('\n') {
        let (code, note) = split_note(&entry.source);
        entry.note = note.to_owned();
        entry.source = code.to_owned();
    }
    entry.source = entry.source.trim_end().to_owned();
    let mut text = String::new();
    for line in lines {
        // This is a remark between two inputs; a matrix never starts with a `#`.
        if let Some(remark) = line.trim_start().strip_prefix("# ") {
            entry.note = format!("{} {}", entry.note, remark).trim().to_owned();
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    let text = traceback::without_warnings(&text);
    let from_out = match OUT.find(&text) {
        Some(prompt) => format!("{}{}", " ".repeat(prompt.len()), &text[prompt.end()..]),
        None => text.into_owned(),
    };
    let body = from_out.trim_matches('\n');
    entry.raised = match traceback::starts_in(body) {
        Some(at) => traceback::read(&body[at..]),
        None => traceback::bare(body.trim_start_matches("...").trim()),
    };
    if entry.raised.is_none() {
        let lines: Vec<&str> = body.lines().map(str::trim_end).collect();
        let first = lines.iter().position(|l| !l.is_empty()).unwrap_or(0);
        entry.output = dedent(&lines[first..]).trim_end().to_owned();
        if let Some((value, note)) = lone_note(&entry.output) {
            entry.note = format!("{} {note}", entry.note).trim().to_owned();
            entry.output = value;
        }
    }
}

/// Splits an output such as `False  # should be True`.
fn lone_note(output: &str) -> Option<(String, String)> {
    if output.contains('\n') {
        return None;
    }
    let at = output
        .find("  # ")
        .or_else(|| output.find(" # "))
        .or_else(|| output.find(" <-"))?;
    let note = output[at..]
        .trim_start()
        .trim_start_matches(['#', '<', '-'])
        .trim();
    Some((output[..at].trim_end().to_owned(), note.to_owned()))
}

/// Removes the indentation common to all lines.
pub(super) fn dedent(lines: &[&str]) -> String {
    let least = lines
        .iter()
        .filter(|l| !l.trim().is_empty())
        .map(|l| l.len() - l.trim_start().len())
        .min()
        .unwrap_or(0);
    let cut: Vec<&str> = lines.iter().map(|l| l.get(least..).unwrap_or("")).collect();
    cut.join("\n")
}
