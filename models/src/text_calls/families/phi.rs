//! Phi-4-mini: a list of JSON objects after `functools`, or between `<|tool_call|>` tokens.

use super::{Calls, Opened, Opener, json_calls};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[(r"\bfunctools\s*\[\s*\{", read)];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let opener = &opened.text[opened.start..opened.body];
    let list = opened.start + opener.find('[').unwrap_or_default();
    json_calls(scan, opened.text, list, &["<|end|>"])
}
