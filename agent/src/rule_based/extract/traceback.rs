//! Tracebacks of CPython, IPython and pytest.

use std::borrow::Cow;

use regex::Captures;
use testwright_sandboxes::Pattern;

/// An exception that an issue shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RaisedException {
    /// Name as printed, often with its module.
    pub exception: String,
    /// Message, which may be cut or empty.
    pub message: String,
    /// File and function of each frame, outermost first.
    pub frames: Vec<(String, String)>,
    /// Cell that raised it, as shown by IPython.
    pub cell: String,
}

impl RaisedException {
    /// Creates an exception from its line: the name and the message.
    fn new(line: &Captures<'_>) -> Self {
        RaisedException {
            exception: line[1].to_owned(),
            message: line.get(2).map_or("", |m| m.as_str()).trim().to_owned(),
            ..RaisedException::default()
        }
    }

    /// Returns the exception's name without its module.
    pub fn name(&self) -> &str {
        self.exception.rsplit('.').next().unwrap_or(&self.exception)
    }
}

static START: Pattern = Pattern::new(
    r"(?m)^[ \t>]*(?:-{20,}\n\s*\w+\s+Traceback|Traceback \(most recent call last\)|\w+Error\s+Traceback \(most recent call last\)|File .+, line \d+, in )",
);
static FRAME: Pattern = Pattern::new(r#"(?m)^.*?File "([^"]+)", line \d+(?:, in (\S+))?"#);
static CELL_FRAME: Pattern = Pattern::new(
    r"(?m)^(?:File )?(\S+\.py|<ipython-input[^>]*>|Cell In ?\[\d+\]\S*)(?::\d+)?,? in (\S+)\(?",
);
static RAISED: Pattern = Pattern::new(
    r"^(?:E\s+)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration|Failed|Invalid\w*|Missing\w*|NotFound))(?:: ?(.*))?$",
);
static ANY_NAME: Pattern = Pattern::new(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w+)(?:: (.*))?$");
static CELL_LINE: Pattern = Pattern::new(r"^(?:-+>)?\s*\d+(?: (.*))?$");

/// Returns the offset of the first traceback in a text.
pub(super) fn starts_in(text: &str) -> Option<usize> {
    START.find(text).map(|header| header.start())
}

/// Reads the exception of a traceback: the last one if several are chained.
pub(super) fn read(text: &str) -> Option<RaisedException> {
    let lines: Vec<&str> = text.lines().map(unstamped).collect();
    let header = |l: &str| l.contains("Traceback (most recent");
    let exception = lines.iter().enumerate().rev().find_map(|(n, line)| {
        if line.starts_with([' ', '\t']) || header(line) {
            return None;
        }
        let captures = RAISED.captures(line);
        let captures = captures.or_else(|| (n > 0).then(|| ANY_NAME.captures(line)).flatten())?;
        let mut raised = RaisedException::new(&captures);
        if raised.message.is_empty() {
            let below: Vec<&str> = lines[n + 1..].iter().take(3).copied().collect();
            raised.message = below.join(" ").trim().to_owned();
        }
        Some(raised)
    });
    let mut raised = exception?;
    let joined = lines.join("\n");
    let frames = FRAME.captures_iter(&joined);
    for frame in frames.chain(CELL_FRAME.captures_iter(&joined)) {
        let function = frame.get(2).map_or("", |m| m.as_str());
        let function = function.split('(').next().unwrap_or_default();
        let file = frame[1].replace('\\', "/");
        raised.frames.push((file, function.to_owned()));
    }
    raised.cell = cell(&lines);
    Some(raised)
}

/// Reads a text that is only an exception line; `...` before it and the message after it are allowed.
pub(super) fn bare(text: &str) -> Option<RaisedException> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && *l != "...");
    let captures = RAISED.captures(lines.next()?)?;
    if lines.count() > 3 {
        return None;
    }
    Some(RaisedException::new(&captures))
}

/// Removes the warnings that a program printed, each with the source of its line. They are neither exceptions nor
/// results.
pub(super) fn without_warnings(text: &str) -> Cow<'_, str> {
    static WARNING: Pattern = Pattern::new(
        r"(?m)^(?:\S.*:\d+: (?:\w+\.)*[A-Z]\w*Warning: .*(?:\n[ \t]+\S.*)?|(?:\w+\.)*[A-Z]\w*Warning: .*)(?:\n|\z)",
    );
    // A filter may turn warnings into exceptions.
    let is_raised = starts_in(text).is_some() || text.trim_start().starts_with("...");
    match is_raised {
        true => text.into(),
        false => WARNING.replace_all(text, ""),
    }
}

/// Returns the source that IPython shows around the failing line.
fn cell(lines: &[&str]) -> String {
    let is_cell = |l: &str| l.contains("<ipython-input") || l.starts_with("Cell In");
    let Some(start) = lines.iter().position(|l| is_cell(l)) else {
        return String::new();
    };
    let code: Vec<&str> = lines[start + 1..]
        .iter()
        .map_while(|l| CELL_LINE.captures(l.trim_start()))
        .map(|captures| captures.get(1).map_or("", |m| m.as_str()))
        .collect();
    code.join("\n")
}

/// Removes the quote marks and timestamps that logs put before their lines.
fn unstamped(line: &str) -> &str {
    static STAMP: Pattern = Pattern::new(r"^(?:> ?)?(?:\[[\dT:.Z -]+\] )?");
    let cut = STAMP.find(line).map_or(0, |m| m.end());
    &line[cut..]
}
