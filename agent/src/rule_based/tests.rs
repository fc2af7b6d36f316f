#![allow(clippy::unwrap_used, clippy::expect_used)]

mod expected_exceptions;

use std::process::Command;

use serde_json::{Value, json};

mod block_texts;

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

class Ring(list):
    def __getitem__(self, index):
        return list.__getitem__(self, index % len(self))

    def pop(self, index):
        return list.pop(self, index % len(self) if index < -len(self) else index)

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

def mixed(number):
    return "-{} -1/2".format(number)

class Size:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return "shop.sizes.Size({})".format(self.number)

def is_empty(box):
    return None

REGISTRY = {}

def register(name):
    REGISTRY[name] = True

def port():
    import os
    return os.environ.get("PORT", 80) + 1
"#;

/// Returns the candidates for an issue about the package, on real Python.
fn candidates_for(issue: &str) -> (Probe, Vec<Candidate>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shop")).unwrap();
    std::fs::write(folder.path().join("shop/__init__.py"), PACKAGE).unwrap();
    let late =
        "import os\nPORT = os.environ.get('PORT', 80)\n\ndef start():\n    return PORT + 1\n";
    std::fs::write(folder.path().join("shop/late.py"), late).unwrap();
    let issue = extract(issue);
    let steps = steps(&issue);
    let exceptions = extract::wanted_exceptions(&issue.prose());
    let script = probe::script(&steps, &exceptions, &Default::default());
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
    let test_candidates = candidates(&Evidence::new(&issue, &steps, &probe));
    (probe, test_candidates)
}

fn lines(candidate: &Candidate) -> Vec<&str> {
    let imports = candidate.body.imports.iter();
    imports
        .chain(&candidate.body.lines)
        .map(String::as_str)
        .collect()
}

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
fn wrong_output_must_change() {
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
fn other_packages_are_not_tested() {
    let (_, all) =
        candidates_for("t\n```\n>>> import json\n>>> json.dumps(3)\n'3'\n```\nThis is wrong.\n");
    assert!(all.is_empty(), "{all:?}");
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
fn plain_contrast_is_compared_whole() {
    let (_, all) = candidates_for(
        "low is not always odd\n```\n>>> from shop import low\n>>> low(5)\n3\n```\nbut\n```\n>>> low(6)\n4\n```\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(lines(&all[0]).last(), Some(&"assert shown != [3, 4]"));
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
fn environment_variables_are_set_for_test() {
    let (_, all) = candidates_for(
        "t\n```\n>>> import os\n>>> os.environ['PORT'] = '8080'\n>>> from shop import port\n>>> port()\nTraceback (most recent call last):\nTypeError: can only concatenate str (not \"int\") to str\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "import os",
            "from shop import port",
            "os.environ['PORT'] = '8080'",
            "port()"
        ]
    );
    let [change] = all[0].body.changes.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(change.lines, 0..1);
    assert_eq!(change.patched, ["monkeypatch.setenv('PORT', '8080')"]);
    assert_eq!(change.leaks, ["environ"]);
}

#[test]
fn statements_with_effects_are_kept() {
    let statements = [
        "random.seed(3)",
        "os.chdir('/')",
        "os.environ.update(A='1')",
        "os.environ.pop('PATH')",
        "sys.path.insert(0, 'lib')",
        "warnings.simplefilter('ignore')",
        "locale.setlocale(locale.LC_ALL, 'C')",
        "decimal.getcontext().prec = 5",
        "shop.LIMIT = 5",
        "shop.REGISTRY['a'] = 5",
        "shop.register('a')",
        "del sys.argv[:]",
        "with open(os.devnull) as file: file.read()",
        "for name in 'ab': shop.register(name)",
    ];
    let (_, all) = candidates_for(&format!(
        "t\n```python\nimport decimal, locale, os, random, sys, warnings\nimport shop\nunused = 3\n{}\nprint(unused)\nshop.open_box(3)\n```\n```\nTraceback (most recent call last):\nshop.Stuck: cannot turn 3\n```\n",
        statements.join("\n")
    ));
    assert_eq!(
        all[0].body.lines,
        [&statements[..], &["shop.open_box(3)"]].concat()
    );
}

#[test]
fn shown_values_are_kept_only_if_needed() {
    let session =
        |lines: &str| candidates_for(&format!("t\n```\n{lines}\n```\nThis is wrong.\n")).1;
    let all = session(">>> import shop\n>>> shop.label('a')\n'<a'\n>>> shop.low(5)\n3");
    assert_eq!(lines(&all[0]), ["import shop", "assert shop.low(5) != 3"]);
    let all = session(
        ">>> import shop\n>>> numbers = iter([5, 6])\n>>> next(numbers)\n5\n>>> shop.low(next(numbers))\n4",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "import shop",
            "numbers = iter([5, 6])",
            "next(numbers)",
            "assert shop.low(next(numbers)) != 4"
        ]
    );
}

#[test]
fn module_loaded_after_effect_stays_in_place() {
    let (_, all) = candidates_for(
        "t\n```python\nimport os\nos.environ['PORT'] = '8080'\nfrom shop.late import start\nstart()\n```\n```\nTraceback (most recent call last):\nTypeError: can only concatenate\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "import os",
            "os.environ['PORT'] = '8080'",
            "from shop.late import start",
            "start()"
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

#[test]
fn test_in_issue_is_named_after_its_call() {
    let issue = extract(
        "t\n```python\nfrom shop import low\ndef test():\n    assert len(low(5)) == 4\n```\n",
    );
    let all = functions::candidates(&issue);
    let function = all[0].function.as_deref().unwrap();
    assert!(
        function.starts_with("def test_low_example():"),
        "{function}"
    );
}

/// One recorded call of a real run, and its answer.
#[derive(serde::Deserialize)]
struct RecordedCall {
    tool: String,
    /// Arguments, without the code passed to `run_python`.
    arguments: Value,
    answer: String,
}

/// Runs the rules with answers from a recorded run on the example package.
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
            extra: Default::default(),
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
fn recorded_run_is_replayed() {
    let (calls, _) = replayed(|_| None);
    let last = calls.last().unwrap();
    assert_eq!(last.name, "submit");
    assert_eq!(last.arguments, json!({"reason": "I expected `'how-to'`."}));
}

#[test]
fn passing_test_is_removed() {
    let passes = "1 test: 1 passed\n\npassed tests/test_slug.py::test_x";
    let (calls, turn) = replayed(|r| (r.tool == "run_pytest").then(|| passes.to_owned()));
    assert_eq!(calls.last().unwrap().name, "run_pytest");
    let Turn::Call(next, _) = turn else {
        panic!("{turn:?}")
    };
    assert_eq!(next.name, "revert");
}

#[test]
fn no_code_gives_final_message() {
    let messages = [Message::User {
        content: "<issue>\nIt is slow\nAll of it.\n</issue>".into(),
    }];
    let Turn::Final(words) = Snippet::turn(&messages) else {
        panic!("there is nothing to call")
    };
    assert!(words.contains("no code that `snippet` can run"), "{words}");
}

#[test]
fn failing_assert_in_issue_is_kept() {
    let (_, all) = candidates_for(
        "low is off\n```python\nfrom shop import low\nhigh = 5\nassert low(high) == 4   # fails\nassert low(4) == 2\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "high = 5", "assert low(high) == 4"]
    );
    assert_eq!(all[0].behaviour, test_name::Behaviour::AsWritten);
    assert_eq!(all[0].expects, Expects::Assertion);
}

#[test]
fn refusal_names_exceptions_and_remedy() {
    let statement = |exception: &str, message: &str| probe::Statement {
        raised: Some(probe::ProbedException {
            exception: exception.into(),
            message: message.into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let probe = Probe {
        statements: vec![
            Default::default(),
            statement("AssertionError", ""),
            statement("KeyError", "'a'"),
        ],
        ..Probe::default()
    };
    assert_eq!(
        policy::nothing(&probe),
        "the issue's code does not show the reported fault: 1 of 3 statements ran; raised: AssertionError, \
         KeyError: 'a'. Add the actual and the expected result next to the code."
    );
}

#[test]
fn long_strings_keep_their_white_space() {
    let fails = |code: &str| {
        let (_, all) = candidates_for(&format!(
            "t\n```\n>>> import shop\n{code}\nTraceback (most recent call last):\nshop.Stuck: cannot turn 3\n```\n"
        ));
        all[0].body.lines.clone()
    };
    let lines = fails(">>> shop.open_box(len(\"\"\"http://a, \n...  b\"\"\"))");
    assert_eq!(
        lines[1..],
        ["    shop.open_box(len(\"\"\"http://a, ", " b\"\"\"))"]
    );
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

/// Returns the last lines of the candidates that expect a value.
fn equalities(issue: &str) -> Vec<String> {
    let (_, all) = candidates_for(issue);
    let gives = all
        .iter()
        .filter(|c| c.behaviour.to_string().starts_with("gives"));
    gives.filter_map(|c| c.body.lines.last().cloned()).collect()
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
fn expected_value_may_be_in_words() {
    let code = "t\n```python\nfrom shop import low\nprint(low(5))\n```\n";
    for words in [
        "Expected: 4",
        "Expected: `4`. It is clear.",
        "- Expected: 4\n- Actual: 3",
        "It prints `3` but I expect `4`.",
        "Expected:\n```python\n4\n```",
    ] {
        let issue = format!("{code}{words}\n");
        assert_eq!(equalities(&issue), ["assert low(5) == 4"], "{words}");
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
