use super::*;

#[test]
fn markdown_characters_are_escaped() {
    assert_eq!(
        escape("<b>a|b_c\n`d`\u{1b}[1m @x"),
        "&lt;b&gt;a\\|b_c \\`d\\`\\\\u{1b}\\[1m \\@x"
    );
    assert_eq!(escape("a__b __c__"), "a__b \\__c_\\_");
}
