//! The first request of each approach for the example's issue and code.

use serde_json::Value;
use testwright_agent::approaches::{self, ModelKind};

use crate::support::program::{TestDir, text_reply};

/// Lines shown from the beginning of a message. `TAIL` lines are shown from its end.
const HEAD: usize = 40;
const TAIL: usize = 12;

/// Shortens a long message by omitting its middle.
fn bounded(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() - HEAD.min(lines.len()) {
        0..=TAIL => lines.join("\n"),
        more => format!(
            "{}\n[… {} lines]\n{}",
            lines[..HEAD].join("\n"),
            more - TAIL,
            lines[lines.len() - TAIL..].join("\n")
        ),
    }
}

fn shown(exchange: &Value) -> String {
    let setting = &exchange["setting"];
    let tools = setting["tools"].as_array().unwrap();
    let tools: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let mut text = format!(
        "tools: {}\ntemperature: {}\n",
        tools.join(", "),
        setting["temperature"]
    );
    for message in exchange["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let content = message["content"].as_str().unwrap();
        text.push_str(&format!("\n===== {role}\n{}\n", bounded(content)));
    }
    text
}

#[test]
fn first_requests_match_snapshots() {
    for approach in approaches::ALL {
        let place = TestDir::new();
        let mut arguments = vec!["--approach", approach.name, "--max-steps", "1"];
        let model = place.recording(&[text_reply("Nothing.")]);
        if approach.model == ModelKind::Language {
            arguments.extend(["--model", &model]);
        }
        let mut command = place.run_example(&arguments);
        let traffic = place.path("traffic.jsonl");
        // The exit code does not matter, because the recording ends after one reply.
        command.arg("--record").arg(&traffic).output().unwrap();
        let recorded = std::fs::read_to_string(&traffic).unwrap();
        let first = recorded
            .lines()
            .next()
            .unwrap_or_else(|| panic!("{}", approach.name));
        let exchange: Value = serde_json::from_str(first).unwrap();
        insta::with_settings!({
            omit_expression => true,
            filters => vec![(r"Python 3\.\d+\.\d+", "Python 3.x"), (r"pytest \d+(\.\d+)+", "pytest X")],
        }, {
            insta::assert_snapshot!(approach.name, shown(&exchange));
        });
    }
}

#[test]
fn long_messages_omit_middle() {
    let long: Vec<String> = (1..=60).map(|n| n.to_string()).collect();
    let text = bounded(&long.join("\n"));
    assert!(
        text.contains("40\n[… 8 lines]\n49\n") && text.ends_with("\n60"),
        "{text}"
    );
    assert_eq!(bounded(&long[..52].join("\n")), long[..52].join("\n"));
}
