//! Llama 3 (JSON with `parameters`, after `<|python_tag|>` or alone) and Llama 4 (calls as Python).

use super::{Calls, Opened, Opener, json_calls, named_object, python_calls};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;

pub(super) const OPENERS: &[Opener] = &[
    (r"<\|python_(?:tag|start)\|>", read),
    // `<function=search{…}</function>` and its like, which have no end of the first tag.
    (
        r"<function(?:=[\w.\-]+[,(\s]?|[/(][\w.\-]+\)?>?)\s*\{",
        read_function,
    ),
];

const CLOSERS: [&str; 4] = ["<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eot|>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    python_calls(scan, opened.text, opened.body, &CLOSERS)
        .or_else(|| json_calls(scan, opened.text, opened.body, &CLOSERS))
}

fn read_function(scan: &Scan<'_>, opened: &Opened<'_>) -> Option<Calls> {
    let header = &opened.text[opened.start + "<function".len()..opened.body];
    let name = header.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let (end, call) = named_object(scan, opened.text, opened.body - 1, name);
    let closers = [")", ">", "</function>", "<function>"];
    Some((skip(opened.text, end, &closers), vec![call]))
}
