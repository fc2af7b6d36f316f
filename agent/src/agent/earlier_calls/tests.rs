#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use testwright_tools::registry;

use super::*;
use testwright_models::ToolResult;

/// Returns whether a submission is held back after these calls.
fn is_held_back(calls: &[(&str, Value)]) -> bool {
    let mut earlier = CallDependencies::default();
    for (name, data) in calls {
        let answer = RecordedAnswer {
            tool: (*name).to_owned(),
            result: ToolResult {
                id: String::new(),
                content: String::new(),
            },
            refused: data.is_null(),
            data: data.clone(),
            seconds: 0.0,
        };
        earlier.note(registry::find(name).unwrap(), &answer);
    }
    let declines = |arguments| {
        let submit = ToolCall::new("", "submit", arguments);
        let declined = earlier.declines(registry::find("submit").unwrap(), &submit);
        declined.unwrap().is_some()
    };
    // Models also write the value as a text.
    assert!(!declines(json!({"reproducible": "false"})));
    declines(json!({}))
}

#[test]
fn last_run_and_fix_decide() {
    let run = |failed: usize, contributed: bool| {
        let counts =
            json!({"passed": 1, "failed": failed, "errors": 0, "contributed": contributed});
        ("run_pytest", counts)
    };
    let fix = |outcome: &str, contributed: bool| {
        let test =
            json!({"id": "t.py::test_a", "outcome": outcome, "failure": null, "seconds": 0.0});
        let report = json!({
            "tests": [test], "collection_errors": [], "not_found": [], "exit_code": 0, "timed_out": false, "printed": "",
            "seconds": 0.0,
        });
        let data = json!({"patch": "", "report": report, "contributed": contributed});
        ("try_fix", data)
    };
    for (calls, held_back) in [
        (vec![run(1, true)], false),
        (vec![run(0, true)], true),
        (vec![run(0, true), run(1, true)], false),
        // The existing tests pass, as they should.
        (vec![run(1, true), run(0, false)], false),
        (vec![run(0, true), run(1, false)], true),
        (vec![fix("failed", true)], true),
        (vec![fix("failed", true), fix("passed", true)], false),
        (vec![fix("failed", true), fix("passed", false)], true),
        (vec![("try_fix", Value::Null), fix("passed", true)], false),
        (vec![("run_pytest", Value::Null), run(1, true)], false),
        // Each call clears its own reason.
        (vec![run(0, true), fix("passed", true)], true),
        (vec![fix("failed", true), run(1, true)], true),
    ] {
        assert_eq!(is_held_back(&calls), held_back, "{calls:?}");
    }
}

#[test]
fn skipped_fix_is_kept_if_readable() {
    let earlier = CallDependencies {
        is_edit_refused: true,
        ..CallDependencies::default()
    };
    let is_kept = |arguments| {
        let call = ToolCall::new("", "try_fix", arguments);
        let declined = earlier.declines(registry::find("try_fix").unwrap(), &call);
        declined.unwrap().unwrap().contains("Your fix is kept")
    };
    let edit = json!({"path": "a.py", "old": "1", "new": "2"});
    assert!(is_kept(json!({"edits": [edit]})));
    assert!(!is_kept(json!({"edits": edit})));
}
