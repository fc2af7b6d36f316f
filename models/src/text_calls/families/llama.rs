//! Llama 3 (JSON with `parameters`, after `<|python_tag|>` or alone) and Llama 4 (calls as Python).

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, json_calls, named_object, python_calls};
use crate::text_calls::Scan;
use crate::text_calls::marks::skip;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Llama",
    openers: &[
        (r"<\|python_(?:tag|start)\|>", read),
        // `<function=search{…}</function>` and its like, which have no end of the first tag.
        (
            r"<function(?:=[\w.\-]+[,(\s]?|[/(][\w.\-]+\)?>?)\s*\{",
            read_function,
        ),
    ],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 4] = ["<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eot|>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    python_calls(scan, opened.text, opened.body, &CLOSERS)
        .or_else(|| json_calls(scan, opened.text, opened.body, &CLOSERS))
        .unwrap_or_else(|| opened.nothing())
}

fn read_function(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    let header = &opened.text[opened.start + "<function".len()..opened.body];
    let name = header.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let (end, call) = named_object(scan, opened.text, opened.body - 1, name);
    let closers = [")", ">", "</function>", "<function>"];
    (skip(opened.text, end, &closers), vec![call])
}

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "{\"name\": \"search\", \"parameters\": {\"pattern\": \"def total\"}}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|python_tag|>{\"name\": \"search\", \"parameters\": {\"pattern\": \"a\"}}; {\"name\": \"show_patch\", \"parameters\": {}}<|eom_id|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<|python_tag|>search.call(pattern=\"def total\")<|eom_id|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function=search>{\"pattern\": \"def total\"}</function><|eot_id|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function=search{\"pattern\": \"a\"}</function>\n<function=search({\"pattern\": \"b\"})></function>",
        calls: &[
            ("search", r#"{"pattern":"a"}"#),
            ("search", r#"{"pattern":"b"}"#),
        ],
    },
    Sample {
        text: "<function/search>{\"pattern\": \"a\"}</function>\n<function(search)>{\"pattern\": \"b\"}</function>\n<function=search>{\"pattern\": \"c\"}<function>",
        calls: &[
            ("search", r#"{"pattern":"a"}"#),
            ("search", r#"{"pattern":"b"}"#),
            ("search", r#"{"pattern":"c"}"#),
        ],
    },
    Sample {
        text: "[search(pattern=\"def total\")]",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|python_start|>[search(pattern='a', limit=3), run_pytest(tests=[\"t.py::a\", 'b'])]<|python_end|><|eot|>",
        calls: &[
            ("search", r#"{"pattern":"a","limit":3}"#),
            ("run_pytest", r#"{"tests":["t.py::a","b"]}"#),
        ],
    },
    Sample {
        text: "[insert_function(file=\"t.py\", code=\"def test_a():\\n    assert f([1])\\n\", imports=None), show_patch()]",
        calls: &[
            (
                "insert_function",
                r#"{"file":"t.py","code":"def test_a():\n    assert f([1])\n","imports":null}"#,
            ),
            ("show_patch", "{}"),
        ],
    },
    Sample {
        text: "search(pattern=\"def total\")",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];
