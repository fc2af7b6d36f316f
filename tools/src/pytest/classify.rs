//! What kind of failure an exception is, from its traceback.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::events::{Base, RawFailure, RawFrame};
use super::report::{Failure, FailureClass, Frame, Phase, Place};
use super::stable::stable;
use crate::workspace::Layout;

/// Tells test code from code under test and makes messages stable.
pub struct Classifier<'a> {
    pub layout: &'a Layout,
    pub root: &'a Path,
}

/// Kinds of exceptions that may mean that a name is missing, and how their messages name it.
static MISSING: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    [
        ("ImportError", r"cannot import name '?([\w.]+)'?"),
        ("ImportError", r"No module named '?([\w.]+)'?"),
        ("AttributeError", r"has no attribute '([^']+)'"),
        ("NameError", r"name '([^']+)' is not defined"),
        ("NameError", r"local variable '([^']+)'"),
        ("TypeError", r"unexpected keyword argument '([^']+)'"),
        (
            "TypeError",
            r"missing \d+ required (?:positional|keyword-only) arguments?: '([^']+)'",
        ),
    ]
    .into_iter()
    // Constant patterns, compiled by the tests.
    .filter_map(|(kind, pattern)| Some((kind, Regex::new(pattern).ok()?)))
    .collect()
});

impl Classifier<'_> {
    pub fn place(&self, frame: &RawFrame) -> Place {
        match frame.base {
            Base::External => Place::External,
            Base::Workspace => self.place_of(&frame.file),
        }
    }

    pub fn place_of(&self, relative: &str) -> Place {
        if self.layout.is_test_path(relative) {
            Place::Test
        } else {
            Place::Source
        }
    }

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
        let mut message = stable(&raw.message, self.root);
        if message.is_empty()
            && raw.is("AssertionError")
            && let Some(frame) = frames.last()
        {
            message.clone_from(&frame.code);
        }
        if let Some(cause) = &raw.cause {
            message = format!("{message}\n({})", stable(cause, self.root));
        }
        let missing_name = if self.innermost(raw) == Some(Place::Source) {
            None
        } else {
            missing_name(raw)
        };
        Failure {
            phase,
            class,
            exception: raw.exception.clone(),
            message,
            frames,
            missing_name,
        }
    }

    fn class(&self, raw: &RawFailure, phase: Phase) -> FailureClass {
        if phase != Phase::Call {
            return FailureClass::Error;
        }
        // sympy's `raises` is a function of the package, and pytest's own is one in pytest's repository.
        let is_verdict = raw.is("AssertionError") || raw.exception.ends_with("Failed");
        if is_verdict
            && ["DID NOT RAISE", "DID NOT WARN"]
                .iter()
                .any(|t| raw.message.starts_with(t))
        {
            return FailureClass::Assertion;
        }
        match self.innermost(raw) {
            // `Failed` is what pytest.fail raises.
            Some(Place::Test) if is_verdict => FailureClass::Assertion,
            _ if self.has_source(raw) => FailureClass::Exception,
            _ => FailureClass::Error,
        }
    }

    /// Where the innermost frame of the repository lies; helpers that hide themselves do not count.
    fn innermost(&self, raw: &RawFailure) -> Option<Place> {
        self.repository(raw).last()
    }

    fn has_source(&self, raw: &RawFailure) -> bool {
        self.repository(raw).any(|place| place == Place::Source)
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

    /// A failure that no exception stands for: a process that died, a deadline.
    pub fn without_exception(name: &str, message: String) -> Self {
        RawFailure {
            exception: name.to_owned(),
            message,
            ..RawFailure::default()
        }
    }
}

fn missing_name(raw: &RawFailure) -> Option<String> {
    let named = MISSING.iter().find_map(|(kind, pattern)| {
        let found = pattern.captures(&raw.message).filter(|_| raw.is(kind))?;
        Some(found.get(1)?.as_str().to_owned())
    });
    let by_attribute = || {
        let kinds = ["ImportError", "AttributeError", "NameError"];
        raw.name
            .clone()
            .filter(|_| kinds.iter().any(|kind| raw.is(kind)))
    };
    named.or_else(by_attribute)
}
