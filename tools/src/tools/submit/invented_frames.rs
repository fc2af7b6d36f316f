//! Compares the record of a failure with the files: each frame must show a line that its file has. A test that writes
//! its own record does not know the lines of a failure that never happened.

use std::path::Path;

use crate::outcomes::report::{Failure, Frame, Place, TestReport};
use crate::tools::submission::ContributedTest;
use crate::workspace::{Workspace, decode_source};

use super::failures::{contributed_failures, is_contributed_in};

/// Maximum characters of a line that the recorder keeps.
const MAX_CODE_CHARS: usize = 300;
/// Maximum characters of a line in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// Lists the frames of failing contributed tests whose line differs from the file:
/// `ID: FILE:LINE shows CODE, but the file has OTHER`.
pub(super) fn list(
    workspace: &Workspace,
    old: &TestReport,
    contributed: &[ContributedTest],
) -> Vec<String> {
    let of_tests = contributed_failures(old, contributed)
        .filter_map(|test| Some((test.id.as_str(), test.failure.as_ref()?)));
    let of_modules = (old.collection_errors.iter())
        .filter(|error| is_contributed_in(&error.id, contributed))
        .map(|error| (error.id.as_str(), &error.failure));
    let mut invented = Vec::new();
    for (id, failure) in of_tests.chain(of_modules) {
        let frames = recorded_frames(failure).iter();
        invented.extend(frames.filter_map(|frame| {
            let other = other_line(workspace, frame)?;
            Some(format!(
                "{id}: {}:{} shows {}, but the file has {}",
                frame.file,
                frame.line,
                quote(&frame.code),
                quote(&other)
            ))
        }));
    }
    invented
}

/// Returns the frames whose line the recorder reads from the file. The compiler itself gives the line of a syntax
/// error, whose number may count from elsewhere.
fn recorded_frames(failure: &Failure) -> &[Frame] {
    let kind = failure.exception.rsplit('.').next().unwrap_or_default();
    let frames = failure.frames.as_slice();
    match frames {
        [rest @ .., _] if matches!(kind, "SyntaxError" | "IndentationError" | "TabError") => rest,
        _ => frames,
    }
}

/// Returns the file's line if it differs from the frame's. Frames of generated code, templates and removed files have
/// no line to compare.
fn other_line(workspace: &Workspace, frame: &Frame) -> Option<String> {
    let is_comparable = frame.place != Place::External
        && frame.line > 0
        && frame.file.ends_with(".py")
        && !frame.code.trim().is_empty();
    if !is_comparable {
        return None;
    }
    let text = decode_source(&workspace.read(Path::new(&frame.file)).ok()?);
    let line = text.split('\n').nth(frame.line as usize - 1);
    let line: String = (line.unwrap_or_default().trim().chars())
        .take(MAX_CODE_CHARS)
        .collect();
    (letters(&line) != letters(&frame.code)).then_some(line)
}

/// Returns the part of a line that is the same however the file is decoded and the line is stripped.
fn letters(line: &str) -> String {
    line.chars().filter(char::is_ascii_graphic).collect()
}

fn quote(line: &str) -> String {
    let mut text: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    match text.is_empty() {
        true => "no such line".to_owned(),
        false => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests;
