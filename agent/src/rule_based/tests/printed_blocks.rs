//! Blocks of text that several calls of `print` wrote.

use super::{candidates_for, lines};

const LABELS: &str =
    "t\n```python\nimport shop\nprint(shop.label('a\\nb'))\nprint(shop.mixed(1))\n```\n";

fn with_blocks(code: &str, actual: &str, expected: &str) -> String {
    format!("{code}Actual:\n```\n{actual}\n```\nExpected:\n```\n{expected}\n```\n")
}

#[test]
fn block_of_several_prints_is_compared_whole() {
    for expected in ["<a>\n<b>\n-1 -1/2", "<a>, <b>\n-1 -1/2"] {
        let (_, all) = candidates_for(&with_blocks(LABELS, "<a\nb\n-1 -1/2", expected));
        assert_eq!(
            lines(&all[0]),
            [
                "import shop",
                "print(shop.label('a\\nb'))",
                "print(shop.mixed(1))",
                format!(
                    "assert capsys.readouterr().out.strip() == '{}'",
                    expected.replace('\n', "\\n")
                )
                .as_str(),
            ]
        );
        assert_eq!(all[0].body.captured, Some(0..2));
    }
}

#[test]
fn printed_line_with_several_parts_is_compared() {
    for (code, actual, expected) in [
        (
            "for n in (5, 6):\n    print(n, low(n))",
            "5 3\n6 4",
            "5 4\n6 5",
        ),
        ("print('low', low(5))", "low 3", "low 4"),
    ] {
        let issue = format!("t\n```python\nfrom shop import low\n{code}\n```\n");
        let (_, all) = candidates_for(&with_blocks(&issue, actual, expected));
        let text = expected.replace('\n', "\\n");
        let assertion = format!("assert capsys.readouterr().out.strip() == '{text}'");
        assert_eq!(
            lines(&all[0])[1..].join("\n"),
            format!("{code}\n{assertion}")
        );
    }
}

#[test]
fn block_unlike_actual_output_gives_no_test() {
    let (_, all) = candidates_for(&with_blocks(LABELS, "<a\nc\n-1 -1/2", "<a>\n<b>\n-1 -1/2"));
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn wrong_block_must_change_as_a_whole() {
    let (_, all) = candidates_for(
        "t\n```python\nimport shop\nprint(shop.mixed(1))\nprint(shop.mixed(2))\n```\nActual:\n```\n-1 -1/2\n-2 -1/2\n```\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        all[0].body.lines,
        [
            "print(shop.mixed(1))",
            "print(shop.mixed(2))",
            "assert capsys.readouterr().out.strip() != '-1 -1/2\\n-2 -1/2'"
        ]
    );
}
