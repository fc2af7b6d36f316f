//! Conversations of a run, turn by turn.

use serde_json::{Value, json};

use testwright_models::{Message, ToolCall, ToolResult};

use crate::rule_based::probe::{self, Probe};
use crate::rule_based::stated_output::{Role, StatedOutput};
use crate::rule_based::steps::Step;
use crate::rule_based::{Snippet, Turn, policy};

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
    let recorded: Vec<RecordedCall> = serde_json::from_str(include_str!("slugs.json")).unwrap();
    let issue = include_str!("../../../../examples/issue.md");
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
        policy::nothing(&[], &probe),
        "the issue's code does not show the reported fault: 1 of 3 statements ran; raised: AssertionError, \
         KeyError: 'a'. Add the actual and the expected result next to the code."
    );
}

#[test]
fn refusal_reports_given_expected_result() {
    let steps = [Step {
        outputs: vec![StatedOutput::new("ab", Role::Right, "")],
        ..Step::default()
    }];
    let mut probe = Probe {
        missing: vec!["ab".into()],
        statements: vec![probe::Statement {
            checks: vec![probe::Check {
                same: Some("str".into()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Probe::default()
    };
    assert_eq!(
        policy::nothing(&steps, &probe),
        "the issue's code already gives the expected result: 1 of 1 statements ran."
    );
    probe.statements[0] = probe::Statement {
        raised: Some(probe::ProbedException {
            exception: "KeyError".into(),
            message: "no.".into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    assert_eq!(
        policy::nothing(&steps, &probe),
        "the issue's code does not show the reported fault: 0 of 1 statements ran; raised: KeyError: no. \
         Complete the code, so that it runs in this repository."
    );
}
