//! Llama 3 (JSON after a name in a tag) and Llama 4 (calls as Python after text).

use super::{Calls, Opened, Opener, named_object};
use crate::text_calls::marks::skip;
use crate::text_calls::parse_call::ParsedCall;
use crate::text_calls::{Scan, pythonic};

pub(super) const OPENERS: &[Opener] = &[
    // `<function=search{…}</function>` and its like, which have no end of the first tag.
    (
        r"<function(?:=[\w.\-]+[,(\s]?|[/(][\w.\-]+\)?>?)\s*\{",
        read_function,
    ),
    (
        r"[^\s`(\[{,=](?P<call>[ \t]+\[[ \t]*[A-Za-z_][0-9A-Za-z_.\-]*\()",
        read_after_text,
    ),
];

const CLOSERS: [&str; 4] = ["<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eot|>"];

/// Reads a list of calls at the end of a line of text.
fn read_after_text(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let opener = &opened.text[opened.start..opened.body];
    let list = opened.start + opener.rfind('[')?;
    let rest = &opened.text[list..];
    if !scan.is_python_call(rest) {
        return None;
    }
    let (length, calls) = pythonic::read(scan, rest).ok()?;
    let all_read = calls.iter().all(ParsedCall::is_call);
    let end = skip(opened.text, list + length, &CLOSERS);
    let after = opened.text[end..].trim_start_matches([' ', '\t', '\r']);
    let is_end = after.is_empty() || after.starts_with('\n');
    (all_read && rest[..length].ends_with(']') && is_end).then_some((end, calls))
}

fn read_function(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let header = &opened.text[opened.start + "<function".len()..opened.body];
    let name = header.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let (end, call) = named_object(scan, opened.text, opened.body - 1, name);
    let closers = [")", ">", "</function>", "<function>"];
    Some((skip(opened.text, end, &closers), vec![call]))
}
