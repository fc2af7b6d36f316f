#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn prefix_selects_source() {
    let recording = |file, lenient| ModelSource::Recording {
        file: Path::new(file),
        lenient,
    };
    for (text, source) in [
        ("snippet", ModelSource::Rules),
        ("replay:/a/b.jsonl", recording("/a/b.jsonl", false)),
        ("replay-by-order:a:b", recording("a:b", true)),
        ("azure/my-gpt_4.1", ModelSource::Azure("my-gpt_4.1")),
        ("openai/gpt-5", ModelSource::Service("gpt-5")),
        ("openai/replay:/a", ModelSource::Service("replay:/a")),
        ("openai/azure/..", ModelSource::Service("azure/..")),
        ("Qwen/Qwen2.5", ModelSource::Service("Qwen/Qwen2.5")),
        ("qwen:7b", ModelSource::Service("qwen:7b")),
        ("replay", ModelSource::Service("replay")),
        ("replay/a", ModelSource::Service("replay/a")),
        ("Replay:/a", ModelSource::Service("Replay:/a")),
        ("azure:a/b", ModelSource::Service("azure:a/b")),
    ] {
        assert_eq!(ModelName::parse(text).unwrap().source(), source, "{text}");
    }
}

#[test]
fn ambiguous_names_are_refused() {
    for text in [
        "",
        " ",
        " m",
        "m ",
        "m\u{a0}",
        "\tm",
        "m\n",
        "a\0b",
        "a\u{1b}[1mb",
        "openai/",
        "azure/",
        "replay:",
        "openai/ m",
        " replay:/etc/shadow",
        "replay: /etc/shadow",
        "snippet ",
        "azure/../x",
        "azure/..",
        "azure/a/b",
        "azure/a?b",
        "azure/a#b",
        "azure/a%2fb",
        "azure/ä",
    ] {
        assert_eq!(
            ModelName::parse(text).unwrap_err().exit_code(),
            2,
            "{text:?}"
        );
    }
    let long = ModelName::parse(&"m".repeat(300_000)).unwrap_err();
    assert!(long.render().len() < 500, "{}", long.render());
}
