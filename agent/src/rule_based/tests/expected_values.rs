//! Values that an issue expects.

use super::{candidates_for, equalities, lines};

#[test]
fn missing_imports_are_found() {
    let (probe, all) = candidates_for("t\n```\n>>> low(5)\n3\n```\nThis should be `4`.\n");
    assert_eq!(
        probe.added,
        [("low".to_owned(), "from shop import low".to_owned())]
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) == 4"]
    );
}

#[test]
fn singletons_are_compared_by_identity() {
    let (_, all) = candidates_for(
        "t\n```\n>>> import shop\n>>> shop.is_empty([])  # should be True\n>>> 1\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["import shop", "assert shop.is_empty([]) is True"]
    );
}

#[test]
fn partial_text_is_not_expected() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import label\n>>> label('a long name of a box')\n'<a long name of a box'\n```\nIt should end with the sign, so the last part should be `box>`.\n",
    );
    assert!(
        all.iter().all(|c| !lines(c).join("").contains("== ")),
        "{all:?}"
    );
}

#[test]
fn code_comments_state_results() {
    let (_, all) = candidates_for(
        "t\n```python\nfrom shop import low\nlow(5)  # gives 3, should be 4\nlow(6)\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) == 4"]
    );
}

#[test]
fn heading_judges_results_in_comments() {
    let code = |note: &str| format!("```python\nfrom shop import low\nlow(5)  {note}\n```\n");
    for note in ["#=> 4", "# -> 4", "# => 4"] {
        let issue = format!(
            "t\nThis is the result:\n{}Expected:\n{}",
            code("# 3"),
            code(note)
        );
        assert_eq!(equalities(&issue), ["assert low(5) == 4"], "{note}");
    }
}

#[test]
fn expected_string_keeps_its_white_space() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import label\n>>> label('a')\n'<a'\n```\nThis should be `'<a  >'`.\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import label", "assert label('a') == '<a  >'"]
    );
}

#[test]
fn comment_after_print_is_not_its_argument() {
    let (_, all) = candidates_for(
        "t\n```python\nfrom shop import low\nprint(low(5))  # why :)\n```\nThis should be `4`.\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) == 4"]
    );
}

const TWO_PRINTS: &str =
    "t\n```python\nimport shop\nprint(shop.mixed(1))\nprint(shop.mixed(2))\n```\n";
const TWO_CALLS: &str =
    "t\n```\n>>> import shop\n>>> shop.mixed(1)\n'-1 -1/2'\n>>> shop.mixed(2)\n'-2 -1/2'\n```\n";

#[test]
fn values_and_calls_are_paired_in_order() {
    let paired = [
        "assert shop.mixed(2) == '-2 1/2'",
        "assert shop.mixed(1) == '-1 1/2'",
    ];
    for issue in [
        format!("{TWO_CALLS}I would expect `'-1 1/2'` and `'-2 1/2'`, as one writes them.\n"),
        format!("{TWO_CALLS}Expected:\n```\n'-1 1/2'\n'-2 1/2'\n```\n"),
        format!(
            "{TWO_PRINTS}Actual:\n```\n-1 -1/2\n-2 -1/2\n```\nExpected:\n```\n-1 1/2\n-2 1/2\n```\n"
        ),
    ] {
        assert_eq!(equalities(&issue), paired, "{issue}");
    }
    let one = format!("{TWO_CALLS}I expected `'-1 1/2'`, but got `'-1 -1/2'`.\n");
    assert_eq!(equalities(&one), paired[1..]);
}

#[test]
fn unclear_values_are_not_expected() {
    for issue in [
        format!("{TWO_CALLS}I expect `'-1 1/2'`, `'-2 1/2'` and `'-3 1/2'`.\n"),
        format!("{TWO_CALLS}I expect `'-1 1/2'` or `'-2 1/2'`.\n"),
        format!("{TWO_PRINTS}Expected:\n```\n-2 1/2\n```\n"),
        // Today's value differs from the one in the issue.
        "t\n```python\nfrom shop import low\nlow(5)\n```\nIt prints `7` but I expect `4`.\n"
            .to_owned(),
    ] {
        assert_eq!(equalities(&issue), [""; 0], "{issue}");
    }
}

#[test]
fn expected_repr_is_compared_as_text() {
    let session = "t\n```\n>>> from shop import Size\n>>> Size(3)\nshop.sizes.Size(3)\n```\n";
    for expected in [
        "Expected: `shop.sizes.Size(4)`. So it is.",
        "I expected shop.sizes.Size(4).",
        "Expected:\n```python\nshop.sizes.Size(4)\n```",
    ] {
        let equality = ["assert repr(Size(3)) == 'shop.sizes.Size(4)'"];
        assert_eq!(equalities(&format!("{session}{expected}\n")), equality);
    }
}

#[test]
fn explicit_repr_is_compared_as_text() {
    let session = "t\n```\n>>> from shop import Grid\n>>> repr(Grid([1]))\n'[1]'\n```\n";
    let equality = ["assert repr(Grid([1])) == '[2]'"];
    assert_eq!(
        equalities(&format!("{session}Expected:\n```\n[2]\n```\n")),
        equality
    );
}

#[test]
fn expected_value_may_be_in_words() {
    let code = "t\n```python\nfrom shop import low\nprint(low(5))\n```\n";
    for words in [
        "Expected: 4",
        "Expected: `4`. It is clear.",
        "- Expected: 4\n- Actual: 3",
        "Expected: 4\nActual: 3",
        "Actual: 3\nExpected: 4",
        "It prints `3` but I expect `4`.",
        "Expected:\n```python\n4\n```",
        "Expected:\n```plaintext\n4\n```",
        "Expected:\n```output\n4\n```",
        "### Actual result\n\n3\n\n### Expected result\n\n4\n\n### Comments\n\nNone of these.",
        "**Expected behavior**\n`4`",
    ] {
        let issue = format!("{code}{words}\n");
        assert_eq!(equalities(&issue), ["assert low(5) == 4"], "{words}");
    }
}

#[test]
fn formula_is_compared_exactly_after_exact_actual_text() {
    let session = "t\n```\n>>> from shop import label\n>>> label('(a, b)')\n";
    let shown = "'<(a, b)'\n```\nThis should be";
    for (issue, equality) in [
        (
            format!("{session}{shown} `'<(a, b)>'`.\n"),
            "assert result == '<(a, b)>'",
        ),
        (
            format!("{session}{shown} `'<(a,b)>'`.\n"),
            "assert result.replace(' ', '') == '<(a,b)>'.replace(' ', '')",
        ),
        (
            format!("{session}```\nThis should be `'<(a, b)>'`.\n"),
            "assert result.replace(' ', '') == '<(a, b)>'.replace(' ', '')",
        ),
    ] {
        assert_eq!(equalities(&issue), [equality], "{issue}");
    }
}

#[test]
fn subject_is_what_made_the_value() {
    for (code, names, keywords) in [
        (
            "CliRunner().invoke(serve, ['--dry-run', '3'])",
            "serve",
            &["dry_run"][..],
        ),
        (
            "runner = CliRunner()\nresult = runner.invoke(serve, ['-v'])\nresult",
            "serve",
            &["v"],
        ),
        ("text = label('on port 80')\ntext[1:]", "label", &[]),
    ] {
        let issue = format!(
            "t\n```python\nfrom shop import CliRunner, label, serve\n{code}\n```\nThis should be `'on port 8080'`.\n"
        );
        let (_, all) = candidates_for(&issue);
        assert_eq!(all[0].subject.names, [names], "{code}");
        assert_eq!(all[0].subject.keywords, keywords, "{code}");
    }
}
