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

#[test]
fn stated_part_of_text_is_asserted() {
    for words in [
        "What happened:\n```\n<a [old: 1] and more\n```\nThe label should contain `[new: a]`, as asked.\n",
        "The label says `[old: 1]`, but I expected `[new: a]`.\n",
        "The label should include `'[new: a]'` instead of `[old: 1]`.\n",
    ] {
        let code = "label('a [old: 1] and more')";
        let issue = format!("t\n```python\nfrom shop import label\nprint({code})\n```\n{words}");
        let (_, all) = candidates_for(&issue);
        assert_eq!(
            lines(&all[0])[1..],
            [
                format!("result = {code}").as_str(),
                "assert '[new: a]' in result"
            ],
            "{issue}"
        );
        assert!(all[0].sentence.contains("new: a"), "{all:?}");
    }
}

#[test]
fn present_part_of_text_is_not_asserted() {
    for (code, words) in [
        ("label('a [old: 1]')", "It should contain `[old: 1]`."),
        ("low(5)", "It should contain `4`."),
    ] {
        let issue = format!("t\n```\n>>> from shop import *\n>>> {code}\n```\n{words}\n");
        let (_, all) = candidates_for(&issue);
        assert!(
            all.iter().all(|c| !lines(c).join("").contains("in ")),
            "{all:?}"
        );
    }
}

#[test]
fn lines_of_output_are_not_joined() {
    let issue = "t\n```python\nfrom shop import label\nprint(label('a\\nb'))\n```\nActual:\n```\n<a\nb\n```\nExpected:\n```\n<a>\n<b>\n```\n";
    let (_, all) = candidates_for(issue);
    assert_eq!(
        lines(&all[0])[1..],
        ["assert label('a\\nb') == '<a>\\n<b>'"]
    );
}
