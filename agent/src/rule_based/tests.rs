#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use serde_json::{Value, json};

use super::candidates::{Candidate, Evidence, Expects, candidates};
use super::extract::extract;
use super::probe::{self, Probe};
use super::steps::steps;
use super::*;
use testwright_models::{ToolCall, ToolResult};

/// A package with some mistakes.
const PACKAGE: &str = r#"
"""A shop."""

class Stuck(Exception):
    pass

class Grid(list):
    pass

def low(number):
    return number - 2

def open_box(size):
    return _turn(size)

def _turn(size):
    if size > 2:
        raise Stuck("cannot turn {}".format(size))
    return size

def label(name):
    return "<" + name

def is_empty(box):
    return None
"#;

/// What the rules make of an issue about the package, on real Python.
fn candidates_for(issue: &str) -> (Probe, Vec<Candidate>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    std::fs::write(folder.path().join("shop/__init__.py"), PACKAGE).unwrap();
    let issue = extract(issue);
    let steps = steps(&issue);
    let wanted = extract::wanted_exceptions(&issue.prose());
    let script = probe::script(&steps, &wanted, &Default::default());
    let file = folder.path().join("snippet.py");
    std::fs::write(&file, script).unwrap();
    let ran = Command::new("python3")
        .arg(&file)
        .env("PYTHONPATH", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let probe = probe::read(&String::from_utf8_lossy(&ran.stdout))
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    let made = candidates(&Evidence::new(&issue, &steps, &probe));
    (probe, made)
}

fn lines(candidate: &Candidate) -> Vec<&str> {
    let imports = candidate.body.imports.iter();
    imports
        .chain(&candidate.body.lines)
        .map(String::as_str)
        .collect()
}

#[test]
fn an_exception_that_should_not_come_makes_the_first_test() {
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
fn an_exception_that_the_issue_asks_for_makes_no_such_test() {
    let (_, all) = candidates_for(
        "low should raise a ValueError for None\n```\n>>> from shop import low\n>>> low(1)\n-1\n```\n",
    );
    assert!(
        lines(&all[0]).contains(&"with pytest.raises(ValueError):"),
        "{all:?}"
    );
}

#[test]
fn missing_imports_are_found_in_the_package() {
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
fn a_wrong_output_without_a_right_one_must_not_come() {
    let (_, all) =
        candidates_for("t\n```\n>>> from shop import *\n>>> low(5)\n3\n```\nThis is wrong.\n");
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
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
fn of_a_session_without_a_verdict_something_has_to_change() {
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
fn what_does_not_happen_makes_no_test() {
    let (_, all) =
        candidates_for("t\n```\n>>> from shop import low\n>>> low(5)\n17\n```\nThis is wrong.\n");
    assert!(all.is_empty(), "{all:?}");
    let (_, all) =
        candidates_for("t\nThis works fine:\n```\n>>> from shop import low\n>>> low(5)\n3\n```\n");
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn a_printed_value_is_compared_as_text() {
    let (_, all) = candidates_for(
        "t\n```python\nfrom shop import label\nprint label('a')\n```\nActual:\n```\n<a\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import label", "assert str(label('a')) != '<a'"]
    );
}

#[test]
fn source_that_the_issue_proposes_is_no_output() {
    let (_, all) = candidates_for(
        "low is odd\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nThe line `return number - 2` should be changed to `return int(number)`.\n",
    );
    assert!(
        all.iter().all(|c| !lines(c).join("").contains("return")),
        "{all:?}"
    );
    assert!(
        all.iter().all(|c| c.claim.starts_with("does not give")),
        "{all:?}"
    );
}

#[test]
fn a_title_may_be_all_of_the_complaint() {
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
fn a_part_of_a_text_is_not_what_should_come() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import label\n>>> label('a long name of a box')\n'<a long name of a box'\n```\nIt should end with the sign, so the last part should be `box>`.\n",
    );
    assert!(
        all.iter().all(|c| !lines(c).join("").contains("== ")),
        "{all:?}"
    );
}

#[test]
fn code_of_other_packages_is_not_tested() {
    let (_, all) =
        candidates_for("t\n```\n>>> import json\n>>> json.dumps(3)\n'3'\n```\nThis is wrong.\n");
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn a_file_that_only_the_author_has_is_no_failure_of_the_code() {
    let (probe, all) = candidates_for(
        "open_box fails\n```\n>>> from shop import open_box\n>>> open_box(open('mine.txt'))\n```\nIt fails with a FileNotFoundError.\n",
    );
    assert!(probe.statements[1].raised.as_ref().unwrap().outside);
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn a_test_of_something_else_does_not_need_the_network() {
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
fn misleading_words_of_an_exception_must_change() {
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
    assert_eq!(all[0].claim, "does not raise Stuck");
}

#[test]
fn what_a_plain_but_sets_apart_is_compared_as_a_whole() {
    let (_, all) = candidates_for(
        "low is not always odd\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nbut\n```\n>>> low(6)\n4\n```\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(lines(&all[0]).last(), Some(&"assert shown != [3, 4]"));
}

#[test]
fn where_an_exception_is_asked_for_no_value_is_tested() {
    let (_, all) = candidates_for(
        "low should fail for texts\n```\n>>> from shop import low\n>>> low(5)\n3\n>>> low(6)\n4\n```\nThis is wrong.\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].claim, "raises Exception");
}

#[test]
fn a_numbered_output_may_be_pointed_at() {
    let (_, all) = candidates_for(
        "t\n```\nIn [1]: from shop import low\n\nIn [2]: low(5)\nOut[2]: 3\n\nIn [3]: low(6)\nOut[3]: 4\n```\nThe first ones are what `Out[2]` is wrong about.\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
    );
}

#[test]
fn what_cannot_be_compared_must_at_least_change() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import low\n>>> low(5)\n```\nExpected:\n```\nthree, in words\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert repr(low(5)) != '3'"]
    );
}

#[test]
fn the_name_of_a_class_is_not_compared_with_a_value() {
    let (_, all) = candidates_for(
        "t\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nIt should return `Grid` here.\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) != 3"]
    );
}

#[test]
fn comments_in_code_say_what_comes() {
    let (_, all) = candidates_for(
        "t\n```python\nfrom shop import low\nlow(5)  # gives 3, should be 4\nlow(6)\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "assert low(5) == 4"]
    );
}

/// One recorded call of a real run and its answer.
#[derive(serde::Deserialize)]
struct RecordedCall {
    tool: String,
    /// Without the code that `run_python` was given.
    arguments: Value,
    answer: String,
}

/// The rules, answered from a recording of a run on the example package.
fn replayed(change: impl Fn(&RecordedCall) -> Option<String>) -> (Vec<ToolCall>, Turn) {
    let recorded: Vec<RecordedCall> =
        serde_json::from_str(include_str!("tests/slugs.json")).unwrap();
    let issue = include_str!("../../../examples/issue.md");
    let mut messages = vec![Message::User {
        content: format!("Do it.\n<issue>\n{issue}\n</issue>\n"),
    }];
    let mut calls = Vec::new();
    for record in &recorded {
        let Turn::Call(call, why) = Snippet::turn(&messages) else {
            break;
        };
        assert_eq!(
            Snippet::turn(&messages),
            Turn::Call(call.clone(), why),
            "asked twice, the same comes"
        );
        assert_eq!(call.name, record.tool);
        if call.name != "run_python" {
            assert_eq!(call.arguments, record.arguments);
        }
        let changed = change(record);
        let other = changed.is_some();
        let answer = changed.unwrap_or_else(|| record.answer.clone());
        messages.push(Message::Assistant {
            content: String::new(),
            calls: vec![(*call).clone()],
        });
        messages.push(Message::Tool(ToolResult {
            id: call.id.clone(),
            content: answer,
        }));
        calls.push(*call);
        if other {
            break;
        }
    }
    (calls, Snippet::turn(&messages))
}

#[test]
fn a_recorded_run_is_played_again_to_its_submission() {
    let (calls, _) = replayed(|_| None);
    let last = calls.last().unwrap();
    assert_eq!(last.name, "submit");
    assert_eq!(last.arguments, json!({"reason": "I expected `'how-to'`."}));
}

#[test]
fn a_test_that_passes_is_taken_back() {
    let passes = "1 test: 1 passed\n\npassed tests/test_slug.py::test_x";
    let (calls, turn) = replayed(|r| (r.tool == "run_pytest").then(|| passes.to_owned()));
    assert_eq!(calls.last().unwrap().name, "run_pytest");
    let Turn::Call(next, _) = turn else {
        panic!("{turn:?}")
    };
    assert_eq!(next.name, "revert");
}

#[test]
fn without_anything_to_run_it_says_so() {
    let messages = [Message::User {
        content: "<issue>\nIt is slow\nAll of it.\n</issue>".into(),
    }];
    let Turn::Last(words) = Snippet::turn(&messages) else {
        panic!("there is nothing to call")
    };
    assert!(words.contains("shows no code that could be run"), "{words}");
}
