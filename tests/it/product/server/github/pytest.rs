//! Runs pytest on a folder through MCP, to get test outcomes from pytest itself.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::program::TestDir;

/// Returns the output of `run_pytest` for a test file.
pub(super) fn run(place: &TestDir, folder: &Path, file: &str) -> String {
    let mut command = place.testwright();
    command.args(["mcp", "--repo"]).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client});
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    lines.next().unwrap().unwrap();
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = json!({"name": "run_pytest", "arguments": {"tests": [file]}});
    send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    let answer = lines
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
        .find(|answer| answer["id"] == 2)
        .unwrap();
    drop(input);
    child.wait().unwrap();
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}
