//! Exceptions that a sentence expects of code in the issue.

use super::candidates_for;

const SESSION: &str = "t\n```\n>>> from shop import Ring\n>>> x = Ring(range(5))\n>>> x.pop(-6)\n4\n>>> 4 in x\nFalse\n```\n";

fn bodies(issue: &str) -> Vec<Vec<String>> {
    let (_, all) = candidates_for(issue);
    all.into_iter().map(|c| c.body.lines).collect()
}

#[test]
fn raises_surrounds_the_named_statement() {
    for sentence in [
        "`x.pop(-6)` should raise `IndexError` and leave the set alone.",
        "An `IndexError` should be raised by `x.pop(-6)`.",
        "I would expect `IndexError` from `Ring.pop(-6)`.",
        "`pop` should raise `IndexError` for such an index.",
    ] {
        assert_eq!(
            bodies(&format!("{SESSION}{sentence}\n")),
            [[
                "x = Ring(range(5))",
                "with pytest.raises(IndexError):",
                "    x.pop(-6)"
            ]],
            "{sentence}"
        );
    }
}

#[test]
fn expression_of_sentence_alone_is_tested() {
    let sentence = "I expected `x[-8]` and `x.pop(-6)` to raise `IndexError`, as lists do, and the set to stay.";
    let popped = ["with pytest.raises(IndexError):", "    x.pop(-6)"];
    let read = ["with pytest.raises(IndexError):", "    x[-8]"];
    assert_eq!(
        bodies(&format!("{SESSION}{sentence}\n")),
        [
            [&["x = Ring(range(5))"], &popped[..]].concat(),
            [&["x = Ring(range(5))"], &popped[..], &read[..]].concat(),
        ]
    );
}

#[test]
fn expression_is_not_an_expected_value() {
    let session = "t\n```\n>>> from shop import Ring\n>>> x = Ring(range(5))\n>>> x[-8]\n2\n";
    let model =
        ">>> [][-8]\nTraceback (most recent call last):\nIndexError: list index out of range\n";
    for rest in [
        "```\nI expected `x[-8]` to raise `IndexError`, as lists do.\n".to_owned(),
        format!("{model}```\nI expected `x[-8]` to raise `IndexError`, as `[][-8]` does.\n"),
        format!("{model}```\nIt should raise an `IndexError`, like a list.\n"),
        "```\nI expected `IndexError`.\n".to_owned(),
    ] {
        assert_eq!(
            bodies(&format!("{session}{rest}")),
            [[
                "x = Ring(range(5))",
                "with pytest.raises(IndexError):",
                "    x[-8]"
            ]],
            "{rest}"
        );
    }
}

#[test]
fn unpaired_expression_gives_no_test() {
    for sentence in [
        "`y.pop(-6)` should raise `IndexError`.",
        "`remove(-6)` should raise `IndexError`.",
        "`x.pop(` should raise `IndexError`.",
    ] {
        let all = bodies(&format!("{SESSION}{sentence}\n"));
        assert!(all.is_empty(), "{sentence}: {all:?}");
    }
}

#[test]
fn later_statements_do_without_the_value() {
    let issue = "t\n```\n>>> from shop import Ring\n>>> x = Ring(range(5))\n>>> y = x.pop(-6)\n>>> y + 1\n5\n>>> 4 in x\nFalse\n```\n`x.pop(-6)` should raise `IndexError`, and `4 in x` should be `True`.\n";
    let raising = [
        "x = Ring(range(5))",
        "with pytest.raises(IndexError):",
        "    y = x.pop(-6)",
    ];
    for body in bodies(issue) {
        assert_eq!(body[..3], raising, "{body:?}");
        assert!(body.iter().all(|line| line != "y + 1"), "{body:?}");
    }
    assert!(!bodies(issue).is_empty());
}

#[test]
fn comment_expects_exception_of_its_statement() {
    for code in [
        "```\n>>> from shop import Ring\n>>> x = Ring(range(5))\n>>> x.pop(-6)  # should raise IndexError\n4\n>>> 4 in x\nFalse\n```\n",
        "```\n>>> from shop import Ring\n>>> x = Ring(range(5))\n>>> x.pop(-6)  # expected IndexError\n4\n```\n",
        "```python\nfrom shop import Ring\nx = Ring(range(5))\nx.pop(-6)  # gives 4, should raise IndexError\nprint(x)\n```\n",
    ] {
        assert_eq!(
            bodies(&format!("pop is wrong\n{code}")),
            [[
                "x = Ring(range(5))",
                "with pytest.raises(IndexError):",
                "    x.pop(-6)"
            ]],
            "{code}"
        );
    }
}
