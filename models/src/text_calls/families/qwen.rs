//! Qwen 2.5 and 3 (JSON in `<tool_call>`), Qwen3-Coder (`<function=…>`), and Qwen-Agent (`✿FUNCTION✿`).

use super::{Calls, Opened, Opener, headed_call};
use crate::text_calls::Scan;

pub(super) const OPENERS: &[Opener] = &[(r"✿FUNCTION✿:?", read)];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    headed_call(scan, opened.text, opened.body, before_mark, &[])
}

fn before_mark(header: &str) -> &str {
    header.split('✿').next().unwrap_or_default().trim()
}
