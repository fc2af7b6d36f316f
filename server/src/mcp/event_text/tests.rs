#![allow(clippy::unwrap_used)]
use serde_json::json;
use testwright_agent::trajectory::Purpose;
use testwright_models::Reply;

use super::*;

#[test]
fn steps_name_tools_and_their_subjects() {
    let reply = |purpose, calls: Value| {
        let reply: Reply = serde_json::from_value(json!({
            "content": "I look.", "calls": calls, "malformed": [], "finish": "tool_calls",
            "usage": {"prompt_tokens": 9, "cached_tokens": 0, "completion_tokens": 1, "dollars": null},
        }))
        .unwrap();
        Event::Reply {
            purpose,
            request: String::new(),
            messages: Vec::new(),
            reply,
            seconds: 1.0,
        }
    };
    let call =
        |name: &str, arguments: Value| json!({"id": "1", "name": name, "arguments": arguments});
    let events = [
        reply(
            Purpose::Step,
            json!([
                call(
                    "insert_function",
                    json!({"path": "tests/test_a.py", "code": "x"})
                ),
                call(
                    "run_pytest",
                    json!({"tests": ["a.py::test_b", "a.py::test_c"]})
                ),
            ]),
        ),
        reply(
            Purpose::Step,
            json!([call("run_python", json!({"code": "\n  import a\na.b()"}))]),
        ),
        reply(Purpose::Review, json!([])),
        reply(Purpose::Prompt, json!([])),
        reply(Purpose::Step, json!([call("show_patch", json!({}))])),
        Event::Stage {
            stage: "plan".to_owned(),
            result: "2 files\nmore".to_owned(),
        },
    ];
    let mut text = EventText::default();
    let lines: Vec<String> = events.iter().flat_map(|e| text.describe(e)).collect();
    let expected_lines = [
        "step 1: insert_function tests/test_a.py",
        "step 1: run_pytest a.py::test_b a.py::test_c",
        "step 2: run_python import a",
        "the reviewer replied",
        "step 3: the model replied",
        "step 4: show_patch",
        "plan: 2 files",
    ];
    assert_eq!(lines, expected_lines);
}
