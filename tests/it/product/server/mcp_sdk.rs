//! Tests with the clients of the official SDK and of fastmcp, in `tests/mcp`.

use std::process::{Command, Stdio};

use serde_json::json;

use super::issue;
use super::mcp::start;
use crate::support::program::{TestDir, example};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp");

/// Returns a command that runs Python with both clients.
fn python(words: &[&str]) -> Command {
    let mut command = Command::new("uv");
    command
        .args(["run", "--quiet", "--no-project", "--with-requirements"])
        .arg(format!("{TESTS}/requirements.txt"))
        .arg("python")
        .args(words)
        .stdin(Stdio::null());
    command
}

fn has_clients() -> bool {
    let imported = python(&["-c", "import fastmcp, mcp"]).output();
    imported.is_ok_and(|imported| imported.status.success())
}

#[test]
fn official_clients_accept_every_answer() {
    if !has_clients() {
        eprintln!("skipped: MCP clients need uv and the package index");
        return;
    }
    let place = TestDir::new();
    let daemon = start(&place, &[]);
    let mut server = place.testwright();
    server.args(["mcp", "--allow-repository", &example("*")]);
    let words: Vec<_> = std::iter::once(server.get_program())
        .chain(server.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let settings = json!({
        "command": words,
        "url": format!("http://{}/mcp", daemon.client.address),
        "repository": example("slugs"),
        "issue": issue()["issue"],
    });
    let mut checks = python(&[&format!("{TESTS}/check_tools.py"), &settings.to_string()]);
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => checks.env(name, value),
            None => checks.env_remove(name),
        };
    }
    let checked = checks.output().unwrap();
    let errors = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{errors}");
    let printed = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(printed.lines().count(), 4, "{printed}");
}
