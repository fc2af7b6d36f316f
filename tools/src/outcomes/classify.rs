//! Classifies a failure by the exception's traceback.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::events::{Base, RawFailure, RawFrame};
use super::normalize::normalize;
use super::report::{Failure, FailureClass, Frame, Phase, Place};
use crate::workspace::Layout;

/// Distinguishes test code from code under test, and makes messages stable.
pub struct Classifier<'a> {
    /// Layout of the tests, which distinguishes test code by its path.
    pub layout: &'a Layout,
    /// Root folder of the checkout; messages show paths relative to it.
    pub root: &'a Path,
}

/// Exception kinds that may mean a missing name, and the patterns that extract the name from their messages.
static MISSING_NAME_PATTERNS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    [
        ("ImportError", r"cannot import name '?([\w.]+)'?"),
        ("ImportError", r"No module named '?([\w.]+)'?"),
        // The second form is that of `unittest.mock.patch`.
        (
            "AttributeError",
            r"(?:has no|does not have the) attribute '([^']+)'",
        ),
        ("NameError", r"name '([^']+)' is not defined"),
        ("NameError", r"local variable '([^']+)'"),
        ("TypeError", r"unexpected keyword argument '([^']+)'"),
        (
            "TypeError",
            r"missing \d+ required (?:positional|keyword-only) arguments?: '([^']+)'",
        ),
    ]
    .into_iter()
    // The patterns are constant; a test compiles all of them.
    .filter_map(|(kind, pattern)| Some((kind, Regex::new(pattern).ok()?)))
    .collect()
});

impl Classifier<'_> {
    /// Returns the kind of code that a frame runs.
    pub fn place(&self, frame: &RawFrame) -> Place {
        match frame.base {
            Base::External => Place::External,
            Base::Workspace => self.place_of(&frame.file),
        }
    }

    /// Returns the kind of code in a file of the workspace, by its relative path.
    pub fn place_of(&self, relative: &str) -> Place {
        if self.layout.is_test_path(relative) {
            Place::Test
        } else {
            Place::Source
        }
    }

    /// Classifies a recorded failure of this phase, and makes its message stable.
    pub fn failure(&self, raw: &RawFailure, phase: Phase) -> Failure {
        let class = self.class(raw, phase);
        let frames: Vec<Frame> = raw
            .frames
            .iter()
            .map(|frame| Frame {
                file: frame.file.clone(),
                line: frame.line,
                function: frame.function.clone(),
                code: frame.code.clone(),
                place: self.place(frame),
            })
            .collect();
        let mut message = without_hints(&raw.message);
        if message.is_empty()
            && raw.is("AssertionError")
            && let Some(frame) = frames.last()
        {
            message.clone_from(&frame.code);
        }
        if let Some(cause) = &raw.cause {
            message = format!("{message}\n({cause})");
        }
        let message = normalize(&message, self.root);
        let is_of_source = self.innermost(raw) == Some(Place::Source);
        Failure {
            phase,
            class,
            exception: raw.exception.clone(),
            message,
            frames,
            missing_name: missing_name(raw).filter(|_| !is_of_source),
        }
    }

    fn class(&self, raw: &RawFailure, phase: Phase) -> FailureClass {
        if phase != Phase::Call {
            return FailureClass::Error;
        }
        // SymPy defines `raises` in its package, and pytest's own `raises` is source code in pytest's repository.
        let is_verdict = raw.is("AssertionError") || raw.exception.ends_with("Failed");
        let mut denials = ["DID NOT RAISE", "DID NOT WARN"].iter();
        match self.innermost(raw) {
            _ if is_verdict && denials.any(|start| raw.message.starts_with(start)) => {
                FailureClass::Assertion
            }
            // `pytest.fail` raises `Failed`.
            Some(Place::Test) if is_verdict => FailureClass::Assertion,
            _ if self.repository(raw).any(|place| place == Place::Source) => {
                FailureClass::Exception
            }
            _ => FailureClass::Error,
        }
    }

    /// Returns the place of the innermost repository frame; hidden helpers do not count.
    fn innermost(&self, raw: &RawFailure) -> Option<Place> {
        self.repository(raw).last()
    }

    fn repository<'r>(
        &'r self,
        raw: &'r RawFailure,
    ) -> impl DoubleEndedIterator<Item = Place> + 'r {
        raw.frames
            .iter()
            .filter(|frame| frame.base == Base::Workspace && !frame.hidden)
            .map(|frame| self.place_of(&frame.file))
    }
}

impl RawFailure {
    fn is(&self, kind: &str) -> bool {
        self.kinds.iter().any(|k| k == kind)
    }

    /// Creates a failure without an exception, such as a dead process or a timeout.
    pub fn without_exception(name: &str, message: String) -> Self {
        RawFailure {
            exception: name.to_owned(),
            message,
            ..RawFailure::default()
        }
    }
}

/// Removes pytest's advice on its command line, which readers of the message cannot use.
fn without_hints(message: &str) -> String {
    static HINTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let more = r"\n\s*\n\s*Use -v+ to get (?:the full|more) diff|\n\s*Use -v+ to get (?:the full|more) diff";
        Regex::new(&format!(r"{more}|, use '?-vv'? to show")).ok()
    });
    match HINTS.as_ref() {
        Some(hints) => hints.replace_all(message, "").into_owned(),
        None => message.to_owned(),
    }
}

fn missing_name(raw: &RawFailure) -> Option<String> {
    let by_message = MISSING_NAME_PATTERNS.iter().find_map(|(kind, pattern)| {
        let captures = pattern.captures(&raw.message).filter(|_| raw.is(kind))?;
        Some(captures.get(1)?.as_str().to_owned())
    });
    let by_attribute = || {
        let mut kinds = ["ImportError", "AttributeError", "NameError"].iter();
        raw.name.clone().filter(|_| kinds.any(|kind| raw.is(kind)))
    };
    by_message.or_else(by_attribute)
}

#[cfg(test)]
mod tests;
