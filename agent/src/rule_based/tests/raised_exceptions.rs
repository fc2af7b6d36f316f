//! Exceptions that an issue shows.

use super::{candidates_for, lines};
use crate::rule_based::candidates::Expects;

#[test]
fn unwanted_exception_gives_first_test() {
    let (_, all) = candidates_for(
        "open_box fails for big boxes\n```\n>>> from shop import open_box\n>>> size = 3\n>>> open_box(size)\nTraceback (most recent call last):\n  File \"x.py\", line 1, in f\nshop.Stuck: cannot turn 3\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import open_box", "size = 3", "open_box(size)"]
    );
    assert_eq!(all[0].expects, Expects::Raised("Stuck".into()));
}

#[test]
fn wanted_exception_gives_no_such_test() {
    let (_, all) = candidates_for(
        "low should raise a ValueError for None\n```\n>>> from shop import low\n>>> low(1)\n-1\n```\n",
    );
    assert!(
        lines(&all[0]).contains(&"with pytest.raises(ValueError):"),
        "{all:?}"
    );
}

#[test]
fn wanted_exception_precludes_value_tests() {
    let (_, all) = candidates_for(
        "low should fail for texts\n```\n>>> from shop import low\n>>> low(5)\n3\n>>> low(6)\n4\n```\nThis is wrong.\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].behaviour.to_string(), "raises Exception");
}

#[test]
fn misleading_message_must_change() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import open_box\n>>> open_box(3)\nTraceback (most recent call last):\nshop.Stuck: cannot turn 3\n```\nThe message is misleading.\n",
    );
    assert_eq!(
        lines(&all[0])[2..],
        [
            "with pytest.raises(Exception) as raised:",
            "    open_box(3)",
            "assert str(raised.value) != 'cannot turn 3'"
        ]
    );
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import open_box\n>>> open_box(3)\nTraceback (most recent call last):\nshop.Stuck: cannot turn 3\n```\nAlso, the message is misleading.\n",
    );
    assert_eq!(all[0].behaviour.to_string(), "does not raise Stuck");
}

#[test]
fn missing_author_file_is_not_failure() {
    let (probe, all) = candidates_for(
        "open_box fails\n```\n>>> from shop import open_box\n>>> open_box(open('mine.txt'))\n```\nIt fails with a FileNotFoundError.\n",
    );
    assert!(probe.statements[1].raised.as_ref().unwrap().outside);
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn test_does_not_need_network() {
    let (_, all) = candidates_for(
        "open_box fails\n```\n>>> from shop import open_box\n>>> open_box(3 + len('http://shop.example'))\nTraceback (most recent call last):\nshop.Stuck: cannot turn 22\n```\n",
    );
    assert_eq!(
        lines(&all[0])[2..],
        [
            "with contextlib.suppress(OSError):",
            "    open_box(3 + len('http://shop.example'))"
        ]
    );
}

#[test]
fn stated_value_is_asserted_after_exception() {
    let expected = [
        "from shop import open_box",
        "size = open_box(3)",
        "assert size == 3",
    ];
    let traceback = "Traceback (most recent call last):\nshop.Stuck: cannot turn 3";
    for code in [
        format!(
            "```python\nfrom shop import open_box\nsize = open_box(3)\nprint(size)\n```\n```\n{traceback}\n```\nExpected:\n```\n3\n```\n"
        ),
        format!(
            "```\n>>> from shop import open_box\n>>> size = open_box(3)\n{traceback}\n>>> size  # should be 3\n```\n"
        ),
    ] {
        let (_, all) = candidates_for(&format!("open_box fails\n{code}"));
        assert_eq!(lines(&all[0]), expected);
        assert_eq!(all[0].expects, Expects::Raised("Stuck".into()));
        assert_eq!(all[0].subject.names, ["open_box"]);
    }
}
