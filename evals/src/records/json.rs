//! Parses JSON records in three forms: lines, an array, or an object by key. Values are parsed one by one, to record
//! the line of each, and to stop when there are too many.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::bounded::{self, ValueBudget};
use super::{PROBLEMS, Problem, RECORD, RecordError, Take};

/// Passes the records of a text to `take`, each with the line where it begins.
pub(super) fn records(text: &str, problems: &mut Vec<Problem>, take: Take<'_>) {
    let text = without_mark(text);
    if !text.trim_start().starts_with('[') {
        return lines(text, problems, take);
    }
    let mut take = |line, _: String, value| take(line, value);
    if let Err(problem) = members(text, ARRAY, problems, &mut take) {
        problems.push(problem);
    }
}

/// Passes all entries of an object to `take`; a map would keep only one of several entries with the same key.
pub(super) fn entries(
    text: &str,
    of_a_record: &str,
    problems: &mut Vec<Problem>,
    take: TakeMember<'_>,
) -> Option<()> {
    let text = without_mark(text);
    if !bounded::is_object_without(text, of_a_record) {
        return None;
    }
    if let Err(problem) = members(text, OBJECT, problems, take) {
        problems.push(problem);
    }
    Some(())
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn too_long(line: usize) -> Problem {
    Problem::new(
        line,
        format!("the record is longer than {} MiB", RECORD >> 20),
    )
}

fn not_json(line: usize, error: &serde_json::Error) -> Problem {
    Problem::new(line, format!("invalid JSON: {}", reason(error)))
}

/// Parses JSON lines; parsing continues after an invalid line.
fn lines(text: &str, problems: &mut Vec<Problem>, take: Take<'_>) {
    let mut room = ValueBudget::new();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() {
            continue;
        }
        if problems.len() >= PROBLEMS {
            break;
        }
        if content.len() > RECORD {
            problems.push(too_long(line));
            continue;
        }
        match room.read(content) {
            Ok(value) => {
                if let Err(error) = take(line, value) {
                    problems.push(Problem::new(line, &error));
                }
            }
            Err(error) => {
                problems.push(match room.lack() {
                    Some(message) => Problem { line, message },
                    None => not_json(line, &error),
                });
                if room.file_is_full() {
                    break;
                }
            }
        }
    }
}

/// A position in a text, with its line number.
struct Position<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Position<'a> {
    fn go(&mut self, bytes: usize) {
        let passed = &self.text.as_bytes()[self.at..self.at + bytes];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at += bytes;
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn pass_space(&mut self) {
        let rest = self.rest();
        self.go(rest.len() - rest.trim_start().len());
    }

    /// Returns the longest text that the next record may take, and whether it is the whole rest.
    fn record(&self) -> (&'a str, bool) {
        let rest = self.rest();
        if rest.len() <= RECORD {
            return (rest, true);
        }
        let end = (0..=RECORD).rev().find(|end| rest.is_char_boundary(*end));
        (&rest[..end.unwrap_or_default()], false)
    }

    /// Advances past a value and parses it as `T`.
    fn pass<T: serde::Deserialize<'a>>(
        &mut self,
        no_end: &Problem,
    ) -> Result<(T, &'a str), Problem> {
        let (record, is_all) = self.record();
        match bounded::length(record) {
            Some(Ok((value, length))) => {
                self.go(length);
                Ok((value, &record[..length]))
            }
            Some(Err(e)) if e.is_eof() && !is_all => Err(too_long(self.line)),
            Some(Err(e)) => Err(not_json(self.line + e.line().saturating_sub(1), &e)),
            None => Err(no_end.clone()),
        }
    }

    fn pass_sign(&mut self, signs: [char; 2], no_end: &Problem) -> Result<char, Problem> {
        self.pass_space();
        let next_char = self.rest().chars().next();
        if let Some(sign) = next_char.filter(|c| signs.contains(c)) {
            self.go(1);
            return Ok(sign);
        }
        let message = match (next_char, signs) {
            (Some(c), [a, b]) if a == b => format!("invalid JSON: expected `{a}`, found `{c}`"),
            (Some(c), [a, b]) => format!("invalid JSON: expected `{a}` or `{b}`, found `{c}`"),
            (None, _) => no_end.message.clone(),
        };
        Err(Problem::new(self.line, message))
    }
}

/// A JSON container of records.
#[derive(Clone, Copy)]
struct Container {
    name: &'static str,
    begin: char,
    end: char,
    keys: bool,
}

const ARRAY: Container = Container {
    name: "array",
    begin: '[',
    end: ']',
    keys: false,
};

const OBJECT: Container = Container {
    name: "object",
    begin: '{',
    end: '}',
    keys: true,
};

/// Callback that receives the line, key and value of a member. The key is empty in an array.
type TakeMember<'a> = &'a mut dyn FnMut(usize, String, Value) -> Result<(), RecordError>;

fn members(
    text: &str,
    form: Container,
    problems: &mut Vec<Problem>,
    take: TakeMember<'_>,
) -> Result<(), Problem> {
    let mut room = ValueBudget::new();
    let mut position = Position {
        text,
        at: 0,
        line: 1,
    };
    position.go(text.find(form.begin).map_or(0, |i| i + 1));
    let mut is_first = true;
    loop {
        position.pass_space();
        if is_first && position.rest().starts_with(form.end) {
            position.go(1);
            break;
        }
        is_first = false;
        let line = position.line;
        let no_end = Problem::new(line, format!("the {} is not closed", form.name));
        let mut key = String::new();
        if form.keys {
            key = position.pass(&no_end)?.0;
            position.pass_sign([':'; 2], &no_end)?;
            position.pass_space();
        }
        let begin = position.line;
        let (_, value) = position.pass::<IgnoredAny>(&no_end)?;
        let value = room.read(value).map_err(|error| match room.lack() {
            Some(message) => Problem { line, message },
            None => not_json(begin + error.line().saturating_sub(1), &error),
        })?;
        if let Err(error) = take(line, key, value) {
            problems.push(Problem::new(line, &error));
            if problems.len() >= PROBLEMS {
                return Ok(());
            }
        }
        if position.pass_sign([',', form.end], &no_end)? == form.end {
            break;
        }
    }
    position.pass_space();
    if position.rest().is_empty() {
        return Ok(());
    }
    let message = format!("unexpected text after the {}", form.name);
    Err(Problem::new(position.line, message))
}

/// Returns serde_json's message without its own line number.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (column {})", error.column()),
        None => text,
    }
}
