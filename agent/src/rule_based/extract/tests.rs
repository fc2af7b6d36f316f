#![allow(clippy::unwrap_used, clippy::expect_used)]

mod security;

use super::*;

fn only<T>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn entries(issue: &Issue) -> Vec<Entry> {
    issue
        .parts
        .iter()
        .filter_map(|p| match &p.kind {
            Kind::Repl(entries) => Some(entries.clone()),
            _ => None,
        })
        .flatten()
        .collect()
}

#[test]
fn first_line_is_title() {
    let issue = extract(
        "Basket.total() ignores discounts\r\nSee:\r\n```python\r\nfrom shop import Basket\r\nb = Basket()\r\nb.total()\r\n```\r\nIt prints:\r\n```\r\n12.50\r\n```\r\n",
    );
    assert_eq!(issue.title, "Basket.total() ignores discounts");
    let kinds: Vec<&Kind> = issue.parts.iter().map(|p| &p.kind).collect();
    assert_eq!(
        kinds[1],
        &Kind::Code("from shop import Basket\nb = Basket()\nb.total()".into())
    );
    assert_eq!(
        kinds[3],
        &Kind::Text {
            lang: String::new(),
            text: "12.50".into()
        }
    );
}

#[test]
fn session_has_inputs_outputs_and_remarks() {
    let issue = extract(
        "t\n```\n>>> from shop import price\n>>> price(\"a\")  # should be 3\n4\n>>> for n in (1, 2):\n...     print(n)\n...\n1\n2\n```\n",
    );
    let all = entries(&issue);
    assert_eq!(all[1].source, "price(\"a\")");
    assert_eq!(all[1].note, "should be 3");
    assert_eq!(all[1].output, "4");
    assert_eq!(all[2].source, "for n in (1, 2):\n    print(n)");
    assert_eq!(all[2].output, "1\n2");
}

#[test]
fn ipython_outputs_keep_layout() {
    let issue = extract(
        "t\n```\nIn [3]: grid(2)\nOut[3]: \n 1  0 \n 0  1 \n\nIn [4]: grid(2).size\nOut[4]: 4\n```\n",
    );
    let all = entries(&issue);
    assert_eq!(all[0].output, "1  0\n0  1");
    assert_eq!(all[1].number, Some(4));
    assert_eq!(all[1].output, "4");
}

#[test]
fn unfenced_session_ends_at_prose() {
    let issue = extract("t\nTry this:\n\n    >>> area(2)\n    -4\n\nwhich is negative.\n");
    assert_eq!(only(entries(&issue)).output, "-4");
    assert!(matches!(&issue.parts[2].kind, Kind::Prose(p) if p == "which is negative."));
}

#[test]
fn unfenced_session_ends_at_next_sentence() {
    let issue = extract(
        "t\nTry this:\n>>> area(2)\n-4\nThis is negative, which no area can be.\n>>> area(3)\nThe area is 9.\nolder (version 3.8):\n>>> area(x)\nTraceback (most recent call last):\n  File \"a.py\", line 7, in area\nTypeError: this is not a number.\nIt should say which one.\n",
    );
    let all = entries(&issue);
    assert_eq!(all[0].output, "-4");
    assert_eq!(all[1].output, "The area is 9.");
    let raised = all[2].raised.as_ref().unwrap();
    assert_eq!(raised.message, "this is not a number.");
    let prose = issue.prose();
    for sentence in ["which no area", "older (version 3.8):", "say which one"] {
        assert!(prose.contains(sentence), "{prose}");
    }
}

#[test]
fn unfenced_code_is_found_without_fences() {
    let code = "from shop import low\nlow(\n\t5,\n)";
    let issue = extract(&format!(
        "t\nDescription\n\t\nRun this:\n{code}\nIt should be 4.\n"
    ));
    let kinds: Vec<&Kind> = issue.parts.iter().map(|p| &p.kind).collect();
    assert_eq!(kinds[1], &Kind::Code(code.into()), "{kinds:?}");
    assert!(matches!(kinds[2], Kind::Prose(text) if text == "It should be 4."));
    let issue = extract(&format!("t\n```\nlow(5)\n```\n{code}\n"));
    assert!(matches!(&issue.parts[1].kind, Kind::Prose(_)));
}

#[test]
fn session_traceback_belongs_to_input() {
    let issue = extract(
        "t\n```\n>>> area('x')\nTraceback (most recent call last):\n  File \"<stdin>\", line 1, in <module>\n  File \"shop/geometry.py\", line 7, in area\n    return side ** 2\nTypeError: unsupported operand\n>>> area(1)\n1\n```\n",
    );
    let all = entries(&issue);
    let raised = all[0].raised.as_ref().unwrap();
    assert_eq!(raised.name(), "TypeError");
    assert_eq!(raised.message, "unsupported operand");
    assert_eq!(raised.frames[1], ("shop/geometry.py".into(), "area".into()));
    assert!(all[0].output.is_empty());
    assert_eq!(all[1].output, "1");
}

#[test]
fn elided_traceback_is_read() {
    for exception in ["TypeError", "UserWarning"] {
        let issue = extract(&format!(
            "t\n```\n>>> area('x')\n...\n{exception}: no\n```\n"
        ));
        let raised = only(entries(&issue)).raised.unwrap();
        assert_eq!((raised.name(), raised.message.as_str()), (exception, "no"));
    }
}

#[test]
fn printed_warnings_are_not_exceptions() {
    for warning in [
        "DeprecationWarning: area is old",
        "<stdin>:1: shop.OldWarning: area is old",
        "/lib/shop.py:7: DeprecationWarning: area is old\n  return side ** 2",
    ] {
        let session = extract(&format!("t\n```\n>>> area(1)\n{warning}\n4\n```\n"));
        let entry = only(entries(&session));
        assert_eq!((entry.raised, entry.output.as_str()), (None, "4"));
        let block = extract(&format!(
            "t\n```python\narea(1)\n```\n```\n{warning}\n```\n"
        ));
        assert_eq!(block.parts.len(), 1, "{warning}");
    }
}

#[test]
fn ipython_traceback_shows_cell() {
    let issue = extract(
        "t\n```\n---------------------------------------------------------------------------\nValueError                                Traceback (most recent call last)\n<ipython-input-4-0a> in <module>()\n      1 box = Box(2)\n----> 2 box.open()\n\n/lib/shop/box.py in open(self)\n      5     def open(self):\n----> 6         raise ValueError('stuck')\n\nValueError: stuck\n```\n",
    );
    let raised = only(issue.raised());
    assert_eq!(raised.cell, "box = Box(2)\nbox.open()");
    assert_eq!(raised.message, "stuck");
    assert_eq!(raised.frames.last().unwrap().1, "open");
}

#[test]
fn template_parts_are_removed() {
    let issue = extract(
        "t\n<!-- describe\n```\nnothing\n```\n-->\n### Steps\n- [x] I searched\n```py\nrun()\n```\n### Versions\n```\nPython 3.9\n```\n",
    );
    let part = only(issue.parts);
    assert_eq!(part.heading, "steps");
    assert_eq!(part.kind, Kind::Code("run()".into()));
}

#[test]
fn code_after_this_is_not_output() {
    for (words, is_code) in [("Run this:", true), ("The result is:", false)] {
        let issue = extract(&format!("t\n{words}\n```python\nlow(5)\n```\n"));
        let code = Kind::Code("low(5)".into());
        assert_eq!(issue.parts[1].kind == code, is_code, "{words}");
    }
}

#[test]
fn commands_in_python_block_are_not_code() {
    let issue = extract(
        "t\n```python\n$ pip install shop\n$ cat a.py\nfrom shop import low\nprint(low(5))\n$ python a.py\n3\n```\n",
    );
    let kinds: Vec<&Kind> = issue.parts.iter().map(|p| &p.kind).collect();
    let output = Kind::Text {
        lang: String::new(),
        text: "3".into(),
    };
    assert_eq!(
        kinds,
        [
            &Kind::Code("from shop import low\nprint(low(5))".into()),
            &output
        ]
    );
}

#[test]
fn sections_on_conversions_are_read() {
    for (heading, count) in [
        ("Conversion of units", 1),
        ("Python version", 0),
        ("Output of `show_versions()`", 0),
    ] {
        let issue = extract(&format!("t\n## {heading}\n```python\nrun()\n```\n"));
        assert_eq!(issue.parts.len(), count, "{heading}");
    }
}

#[test]
fn sentence_states_wrong_and_right() {
    let claim = only(claims("Here `size([])` gives `-1` instead of `0`."));
    assert_eq!(claim.expression.as_deref(), Some("size([])"));
    assert_eq!(claim.wrong.as_deref(), Some("-1"));
    assert_eq!(claim.right.as_deref(), Some("0"));
}

#[test]
fn sentence_may_refer_back() {
    let claim = only(claims(
        "I would expect the output `'a,b'` which is fine but instead I get `'a, b'` which is not.",
    ));
    assert_eq!(claim.expression, None);
    assert_eq!(claim.right.as_deref(), Some("'a,b'"));
    assert_eq!(claim.wrong.as_deref(), Some("'a, b'"));
}

#[test]
fn lists_need_no_quotes() {
    let claim = only(claims("Expected: [1, 2] but got [[1], 2]."));
    assert_eq!(claim.right.as_deref(), Some("[1, 2]"));
    assert_eq!(claim.wrong.as_deref(), Some("[[1], 2]"));
    let claim = only(claims("Expected: [1]\nActual: [2]\n"));
    assert_eq!(claim.wrong.as_deref(), Some("[2]"));
    let claim = only(claims("Expected {'a': [3]}"));
    assert_eq!(claim.right.as_deref(), Some("{'a': [3]}"));
    assert!(claims("I expected [this](https://a.example) to work.").is_empty());
}

#[test]
fn two_statements_are_separate() {
    let all = claims("`low(2)` returns `1` as expected but `low(3)` returns `7` instead of `2`");
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].expression.as_deref(), Some("low(3)"));
    assert_eq!(all[1].wrong.as_deref(), Some("7"));
}

#[test]
fn value_after_but_may_be_right() {
    let all = claims(
        "with low(2) the value is 1; when low('2') returns 7, but low(2) the value is 3, this is the true value",
    );
    assert!(
        all.iter()
            .all(|c| c.stance != Polarity::Bad || c.expression.as_deref() != Some("low(2)")),
        "{all:?}"
    );
    let all = claims("`low('2')` is `7` but `low(2)` is `1`, the correct one");
    assert_eq!(all[1].stance, Polarity::Expected);
    let all = claims("`low('2')` is `7` but `low(2)` is `1`, this is the true value");
    assert_eq!(
        [all[0].stance, all[1].stance],
        [Polarity::Bad, Polarity::Good]
    );
}

#[test]
fn paragraphs_are_independent() {
    let claim = only(claims(
        "`low(2)` gives `1` instead of `2`\n\nA fix is to change line 7 from `a` to `b`",
    ));
    assert_eq!(claim.right.as_deref(), Some("2"));
}

#[test]
fn unquoted_calls_and_values_are_found() {
    let claim = only(claims("the call price('a', 2) returns 1/4 here"));
    assert_eq!(claim.expression.as_deref(), Some("price('a', 2)"));
    assert_eq!(claim.shown.as_deref(), Some("1/4"));
}

#[test]
fn wanted_exceptions_are_found() {
    assert_eq!(
        wanted_exceptions("It should raise a `ValueError` here."),
        ["ValueError"]
    );
    assert_eq!(
        wanted_exceptions("It would be nice if a KeyError was raised."),
        ["KeyError"]
    );
    assert!(wanted_exceptions("It should not raise a TypeError.").is_empty());
    assert!(wanted_exceptions("This raises a TypeError.").is_empty());
}

#[test]
fn words_have_a_stance() {
    assert_eq!(stance_before("", "This works as expected:"), Polarity::Good);
    assert_eq!(
        stance_before("", "One would expect to see"),
        Polarity::Expected
    );
    assert_eq!(
        stance_before("", "But it gives the wrong value:"),
        Polarity::Bad
    );
    assert_eq!(stance_before("expected behavior", ""), Polarity::Expected);
    assert_eq!(
        stance_after("This is wrong, since it is negative."),
        Polarity::Bad
    );
    assert_eq!(stance_after("I use version 3."), Polarity::Unknown);
    assert!(messages_only("the error message is misleading"));
}

#[test]
fn issue_is_extracted_from_prompt() {
    assert_eq!(
        issue_in("Do it.\n<issue>\nTitle\nbody\n</issue>\nNow."),
        Some("Title\nbody")
    );
    assert_eq!(issue_in("no issue"), None);
}
