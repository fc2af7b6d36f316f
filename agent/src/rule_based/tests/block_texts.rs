//! Texts that an issue shows in blocks.

use super::{candidates_for, equalities, lines};

/// Returns an issue whose code prints `label(ARGUMENT)`, with its actual and its expected output.
fn printed(argument: &str, actual: &str, expected: &str) -> String {
    let block = |heading: &str, text: &str| match text {
        "" => String::new(),
        _ => format!("{heading}:\n```\n{text}\n```\n"),
    };
    format!(
        "t\n```python\nfrom shop import label\nprint(label({argument}))\n```\n{}{}",
        block("Actual", actual),
        block("Expected", expected)
    )
}

#[test]
fn final_newline_of_output_is_ignored() {
    let equality = ["assert label('a\\nb\\n').strip() == '<a>\\n<b>'"];
    for (actual, expected) in [
        ("<a\nb\n", "<a>\n<b>\n"),
        ("<a\nb", "<a>\n<b>"),
        ("", "<a>\n<b>"),
    ] {
        let issue = printed("'a\\nb\\n'", actual, expected);
        assert_eq!(equalities(&issue), equality, "{issue}");
    }
}

#[test]
fn actual_text_selects_the_comparison() {
    let issue = printed("'a  b'", "<a  b", "<a  b>");
    assert_eq!(
        equalities(&issue),
        ["assert label('a  b') == '<a  b>'"].map(|line| line.replace("label('a  b')", "result"))
    );
    let issue = printed("'a\\n  b\\n'", "<a\nb", "<a >\n<b>");
    let loose = ["assert label('a\\n  b\\n').replace(' ', '').strip() == '<a>\\n<b>'"]
        .map(|line| line.replace("label('a\\n  b\\n')", "result"));
    assert_eq!(equalities(&issue), loose);
    // A longer line was wrapped in the issue, so its expected text would not match either.
    assert_eq!(equalities(&printed("'a  b'", "<a\nb", "<a\nb>")), [""; 0]);
}

#[test]
fn lost_trailing_spaces_are_ignored() {
    let issue = printed("'a \\nb\\n'", "<a\nb", "<a>\nb");
    let (_, all) = candidates_for(&issue);
    let test = lines(&all[0]).join("\n");
    assert!(test.ends_with("assert shown == ['<a>', 'b']"), "{test}");
}
