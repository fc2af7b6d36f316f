//! ReAct: `Action:` with a name, then `Action Input:` with JSON, as many models were taught it.

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, headed_call, is_tool};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "ReAct",
    openers: &[(
        r"(?m:^)[ \t]*Action:[ \t]*[\w.\-`]+[ \t]*\n\s*Action Input:",
        read,
    )],
    #[cfg(test)]
    samples: SAMPLES,
};

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let opener = &opened.text[opened.start..opened.body];
    let starts_with_object = opened.rest().trim_start_matches(['`', ' ', '\n']);
    let starts_with_object = starts_with_object.trim_start_matches("json").trim_start();
    if !is_tool(scan, name_in(opener)) || !starts_with_object.starts_with('{') {
        return opened.nothing();
    }
    headed_call(scan, opened.text, opened.start, name_in, &["```"])
        .unwrap_or_else(|| opened.nothing())
}

fn name_in(header: &str) -> &str {
    let name = header.split_once("Action:").map_or("", |(_, name)| name);
    name.lines().next().unwrap_or_default().trim()
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "Thought: I look for it.\nAction: search\nAction Input: {\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Tool call: {\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
];
