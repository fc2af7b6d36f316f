//! Hermes 2 and 3: JSON in `<tool_call>`, after notes in `<scratch_pad>`. The parent module reads all of it.

use super::Family;
#[cfg(test)]
use super::Sample;

pub(super) const FAMILY: Family = Family {
    #[cfg(test)]
    name: "Hermes",
    openers: &[],
    #[cfg(test)]
    samples: SAMPLES,
};

#[cfg(test)]
const SAMPLES: &[Sample] = &[
    Sample {
        text: "<tool_call>\n{\"arguments\": {\"pattern\": \"def total\"}, \"name\": \"search\"}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<scratch_pad>\nI could use {\"name\": \"show_patch\", \"arguments\": {}}.\n</scratch_pad>\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call><|im_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<tool_call>\n{'name': 'search', 'arguments': {'pattern': 'a'}}\n</tool_call>\n<tool_call>\n{'name': 'show_patch', 'arguments': {}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];
