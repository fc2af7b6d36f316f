//! JSON or Python after a token, which may have an end: Command R and A (`<|START_ACTION|>`), Apertus
//! (`<|tools_prefix|>`), Granite and Phi-4-mini (`<|tool_call|>`), Llama (`<|python_tag|>`), Nemotron
//! (`<TOOLCALL>`), InternLM (`<|action_start|>`) and LongCat. Phi-4-mini also writes `functools`.

use super::{Calls, Opened, Opener, json_calls, python_calls};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;

pub(super) const OPENERS: &[Opener] = &[
    (
        r"<\|(?:START_ACTION|tools_prefix|tool_calls?|python_tag|python_start)\|>|<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>|<longcat_tool_call>",
        read,
    ),
    (r"\bfunctools\s*\[\s*\{", read_list),
];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let (text, at) = (opened.text, opened.body);
    python_calls(scan, text, at, &[])
        .or_else(|| json_calls(scan, text, at, &[]))
        .or_else(|| read_pairs(scan, opened))
}

/// Reads a call of LongCat with pairs of tags, which are those of GLM with a prefix.
fn read_pairs(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    const END: &str = "</longcat_tool_call>";
    let rest = opened.rest();
    let end = rest.find(END)?;
    let inner = rest[..end].replace("longcat_", "");
    let end = skip(opened.text, opened.body + end, &[END]);
    Some((end, vec![scan.named_call(&inner)]))
}

fn read_list(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let opener = &opened.text[opened.start..opened.body];
    let list = opened.start + opener.find('[').unwrap_or_default();
    json_calls(scan, opened.text, list, &[])
}
