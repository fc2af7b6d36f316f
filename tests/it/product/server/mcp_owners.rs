//! An MCP session belongs to the owner of the token that started it.

use serde_json::json;

use super::client::{Client, Reply};
use super::{ServerProcess, databases, tokens};
use crate::support::program::TestDir;

fn send(client: &Client, method: &str, token: &str, session: Option<&str>, body: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    let mut headers = vec![
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    headers.extend(session.map(|id| ("mcp-session-id", id)));
    client.send(method, "/mcp", &headers, body)
}

fn hello() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}})
    .to_string()
}

#[test]
fn owner_cannot_take_all_sessions() {
    let place = TestDir::new();
    let database = &databases::embedded();
    let words = ["--workers", "0", "--require-tokens"];
    let daemon = ServerProcess::start_with(&place, database, None, "data", &words);
    let create =
        |name: &str, owner: &str| tokens::create(&place, database, &[name, "--owner", owner]);
    let (alice, bob) = (create("one", "alice"), create("two", "bob"));
    let begin = |token: &str| send(&daemon.client, "POST", token, None, &hello());
    let begun: Vec<Reply> = (0..64).map(|_| begin(&alice)).collect();
    assert!(begun.iter().all(|reply| reply.status == 200));
    let refused = begin(&alice);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    let answer = refused.json();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(1))
    );
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("64 sessions"), "{message}");
    assert_eq!(begin(&bob).status, 200);
    let session = begun[0].header("mcp-session-id");
    let ended = send(&daemon.client, "DELETE", &alice, session, "");
    assert_eq!(ended.status, 204, "{ended:?}");
    assert_eq!(begin(&alice).status, 200);
}

#[test]
fn sessions_of_other_owners_are_hidden() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    let words = ["--workers", "0", "--require-tokens"];
    let daemon = ServerProcess::start_with(&place, database, None, "data", &words);
    let client = &daemon.client;
    let create =
        |name: &str, owner: &str| tokens::create(&place, database, &[name, "--owner", owner]);
    let (alice, again, bob) = (
        create("one", "alice"),
        create("two", "alice"),
        create("three", "bob"),
    );
    let hello = hello();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}).to_string();
    let begun = send(client, "POST", &alice, None, &hello);
    let session = begun.header("mcp-session-id").unwrap();
    for (method, body) in [("POST", ping.as_str()), ("GET", ""), ("DELETE", "")] {
        let foreign = send(client, method, &bob, Some(session), body);
        let unknown = send(client, method, &bob, Some("no-such-session"), body);
        assert_eq!(foreign.status, 404, "{method}: {foreign:?}");
        assert_eq!(
            (foreign.status, foreign.body),
            (unknown.status, unknown.body),
            "{method}"
        );
    }
    // The owner can still use the session, with any of its tokens.
    for token in [&alice, &again] {
        let answered = send(client, "POST", token, Some(session), &ping);
        assert_eq!(answered.status, 200, "{answered:?}");
    }
    assert_eq!(
        send(client, "DELETE", &again, Some(session), "").status,
        204
    );
    assert_eq!(
        send(client, "POST", &alice, Some(session), &ping).status,
        404
    );
    assert_eq!(
        send(client, "DELETE", &alice, Some(session), "").status,
        404
    );
}
