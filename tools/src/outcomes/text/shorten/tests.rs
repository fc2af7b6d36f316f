use super::*;

#[test]
fn repeated_lines_are_counted() {
    assert_eq!(
        without_repeats("a\na\na\nb\nb\nc"),
        "a\n[... the line above 2 more times ...]\nb\nb\nc"
    );
}

#[test]
fn headline_is_first_line_with_words() {
    for (message, expected) in [
        ("a b\nc", "a b"),
        ("\n*****\n  Resource punkt not found.\n", "Resource p…"),
        ("\n[] != ()\n", "[] != ()"),
        ("\n", ""),
    ] {
        assert_eq!(short_headline(message, 10), expected, "{message}");
    }
}

#[test]
fn nearest_unmatched_line_is_kept() {
    let others: Vec<String> = (0..300).map(|n| format!("    and: 'line {n}'")).collect();
    let message = format!(
        "fnmatch: '*start*'\n   with: 'test session starts'\nnomatch: '*2 failed, 1 passed*'\n{}\n    and: '=== 3 failed, 1 passed in 0.1s ==='\n    and: ''\nremains unmatched: '*2 failed, 1 passed*'",
        others.join("\n")
    );
    let short_message = shorten_message(&message);
    assert_eq!(
        short_message.lines().skip(6).collect::<Vec<_>>(),
        [
            "[... 299 lines left out ...]",
            "nearest to it: '=== 3 failed, 1 passed in 0.1s ==='",
            "remains unmatched: '*2 failed, 1 passed*'"
        ]
    );
    assert!(
        short_message.starts_with("fnmatch: '*start*'\n"),
        "{short_message}"
    );
}

#[test]
fn long_message_keeps_ends_or_deciding_pair() {
    let lines: Vec<String> = (0..50).map(|n| format!("    and: 'line {n}'")).collect();
    assert_eq!(
        shorten_message_to_lines(&lines.join("\n"), 4),
        "    and: 'line 0'\n    and: 'line 1'\n[... 46 lines left out ...]\n    and: 'line 48'\n    and: 'line 49'"
    );
    assert_eq!(
        shorten_message_to_lines(&lines.join("\n"), 50),
        lines.join("\n")
    );
    let message = format!(
        "nomatch: 'lime 7'\n{}\nremains unmatched: 'lime 7'",
        lines.join("\n")
    );
    let short_message = shorten_message_to_lines(&message, 40);
    assert!(
        short_message.ends_with("nearest to it: 'line 7'\nremains unmatched: 'lime 7'"),
        "{short_message}"
    );
}

#[test]
fn output_repeated_in_message_is_removed() {
    let message = "nomatch: '*b*'\n    and: 'this one line'\n    and: 'another line'\n    a third";
    assert_eq!(
        without_message_lines(
            "--- Captured stdout call ---\nthis one line\nanother line\n\na third\nand more",
            message
        ),
        "--- Captured stdout call ---\n[... 3 lines that stand in the message above ...]\nand more"
    );
    let few = "this one line\nsomething else\nanother line";
    assert_eq!(without_message_lines(few, message), few);
    let short = "one\nline\nthird\n'";
    assert_eq!(without_message_lines(short, message), short);
    assert_eq!(without_message_lines("", ""), "");
}
