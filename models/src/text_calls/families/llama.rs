//! Llama 3 (JSON with `parameters`, after `<|python_tag|>` or alone) and Llama 4 (calls as Python).

#[cfg(test)]
use super::Sample;
use super::{Family, Opened, json_calls, python_calls};
use crate::text_calls::Scan;
use crate::text_calls::parse_call::ParsedCall;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Llama",
    openers: &[(r"<\|python_(?:tag|start)\|>", read)],
    #[cfg(test)]
    samples: SAMPLES,
};

const CLOSERS: [&str; 4] = ["<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eot|>"];

fn read(scan: &Scan<'_>, opened: &Opened<'_>) -> (usize, Vec<ParsedCall>) {
    python_calls(scan, opened.text, opened.body, &CLOSERS)
        .or_else(|| json_calls(scan, opened.text, opened.body, &CLOSERS))
        .unwrap_or_else(|| opened.nothing())
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
