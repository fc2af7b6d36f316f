//! Outputs that an issue complains about.

use super::{candidates_for, lines};

#[test]
fn wrong_output_must_change() {
    let (_, all) =
        candidates_for("t\n```\n>>> from shop import *\n>>> low(5)\n3\n```\nThis is wrong.\n");
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
    );
}

#[test]
fn unjudged_session_must_change() {
    let (_, all) = candidates_for(
        "low is wrong\n```\n>>> from shop import low\n>>> low(5)\n3\n>>> low(6)\n4\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "from shop import low",
            "shown = [",
            "    low(5),",
            "    low(6),",
            "]",
            "assert shown != [3, 4]"
        ]
    );
}

#[test]
fn absent_behaviour_gives_no_test() {
    let (_, all) =
        candidates_for("t\n```\n>>> from shop import low\n>>> low(5)\n17\n```\nThis is wrong.\n");
    assert!(all.is_empty(), "{all:?}");
    let (_, all) =
        candidates_for("t\nThis works fine:\n```\n>>> from shop import low\n>>> low(5)\n3\n```\n");
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn printed_value_is_compared_as_text() {
    let (_, all) = candidates_for(
        "t\n```python\nfrom shop import label\nprint label('a')\n```\nActual:\n```\n<a\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import label", "assert str(label('a')) != '<a'"]
    );
}

#[test]
fn proposed_source_is_not_output() {
    let (_, all) = candidates_for(
        "low is odd\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nThe line `return number - 2` should be changed to `return int(number)`.\n",
    );
    assert!(
        all.iter().all(|c| !lines(c).join("").contains("return")),
        "{all:?}"
    );
    assert!(
        all.iter()
            .all(|c| c.behaviour.to_string().starts_with("does not give")),
        "{all:?}"
    );
}

#[test]
fn complaint_may_be_title_only() {
    let session = "\n```\n>>> from shop import low\n>>> low(5)\n3\n```\n";
    let (_, all) = candidates_for(&format!("low loses two{session}"));
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
    );
    let (_, all) = candidates_for(&format!("Add a floor to low{session}"));
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn other_packages_are_not_tested() {
    let (_, all) =
        candidates_for("t\n```\n>>> import json\n>>> json.dumps(3)\n'3'\n```\nThis is wrong.\n");
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn plain_contrast_is_compared_whole() {
    let (_, all) = candidates_for(
        "low is not always odd\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nbut\n```\n>>> low(6)\n4\n```\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(lines(&all[0]).last(), Some(&"assert shown != [3, 4]"));
}

#[test]
fn numbered_output_can_be_referenced() {
    let (_, all) = candidates_for(
        "t\n```\nIn [1]: from shop import low\n\nIn [2]: low(5)\nOut[2]: 3\n\nIn [3]: low(6)\nOut[3]: 4\n```\nThe first ones are what `Out[2]` is wrong about.\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
    );
}

#[test]
fn incomparable_value_must_change() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import low\n>>> low(5)\n```\nExpected:\n```\nthree, in words\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert repr(low(5)) != '3'"]
    );
}

#[test]
fn class_name_is_not_a_value() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nIt should return `Grid` here.\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
    );
}
