use super::*;

#[test]
fn section_with_literal_only_has_value() {
    for text in ["4", "`-1.5e-3`", "[]", "[(1, 'a')]", "{'a': 1}", "\"a b\""] {
        let value = value_in_section("expected result", text);
        assert_eq!(value.as_deref(), Some(text.trim_matches('`')));
    }
    for text in [
        "No error.",
        "[a page](https://a.example)",
        "(see above)",
        "4 is right.",
        "`low(5)`",
        "'a' and 'b'",
    ] {
        assert_eq!(value_in_section("expected result", text), None, "{text}");
    }
    assert_eq!(value_in_section("steps to reproduce", "4"), None);
}
