//! ReAct: `Action:` with a name, then `Action Input:` with JSON, as many models were taught it. Others write
//! `Tool:` and `Arguments:`.

use super::{Calls, Opened, Opener, python_calls, tool_call};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[
    (
        r"(?m:^)[ \t]*\**(?i:action|(?:tool|function)(?: name| call)?)(?::\**|\**:)[ \t]*[\w.\-`]+[ \t]*\n\s*\**(?i:(?:action |tool )?(?:input|arguments|args|parameters))(?::\**|\**:)",
        read,
    ),
    (
        r"(?m:^)[ \t]*\**Action(?::\**|\**:)[ \t]*`?[A-Za-z_][0-9A-Za-z_.\-]*\(",
        read_python,
    ),
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let starts_with_object = opened.rest().trim_start_matches(['`', ' ', '\n']);
    let starts_with_object = starts_with_object.trim_start_matches("json").trim_start();
    if !starts_with_object.starts_with('{') {
        return None;
    }
    tool_call(scan, opened.text, opened.start, name_in, &["```"])
}

fn name_in(header: &str) -> &str {
    let name = header.split_once(':').map_or("", |(_, name)| name);
    let line = name.lines().next().unwrap_or_default();
    line.trim_matches([':', '*', '`', ' ', '\t'])
}

/// Reads `Action: search(pattern="x")`.
fn read_python(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let opener = &opened.text[opened.start..opened.body];
    let name = name_in(opener.trim_end_matches('('));
    if !scan.has_tool(name) {
        return None;
    }
    let start = opened.start + opener.rfind(name)?;
    python_calls(scan, opened.text, start, &["`"])
}
