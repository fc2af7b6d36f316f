//! Headers of every response, and protection against requests from other sites.

use serde_json::Value;

use super::client::{Client, Reply};
use super::{ServerProcess, databases, issue};
use crate::support::program::{TestDir, assert_exit_code};

fn is_problem(reply: &Reply) -> bool {
    reply.header("content-type") == Some("application/problem+json")
        && reply.json()["status"] == reply.status
}

#[test]
fn responses_forbid_content_sniffing() {
    let place = TestDir::new();
    let log = place.path("log");
    let mut command = place.testwright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "0"]);
    command.args(["--metrics", "127.0.0.1:0", "--data"]);
    command.arg(place.path("data"));
    let daemon = ServerProcess::logged(command, &log);
    let probes = Client {
        address: super::wait_for_text(&log, "metrics on http://"),
    };
    let ask = |client: &Client, method: &str, path: &str, status: u16| {
        let reply = client.send(method, path, &[], "");
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        let sniffing = reply.header("x-content-type-options");
        assert_eq!(sniffing, Some("nosniff"), "{path}: {reply:?}");
        reply
    };
    for path in [
        "/",
        "/new",
        "/v1/runs",
        "/v1/openapi.json",
        "/v1/health",
        "/metrics",
    ] {
        ask(&daemon.client, "GET", path, 200);
    }
    for (method, path, status) in [
        ("GET", "/none", 404),
        ("GET", "/v1/runs/%ff", 400),
        ("GET", "/v1/runs?limit=0", 400),
        ("DELETE", "/v1/runs", 405),
        ("POST", "/v1/runs", 415),
        ("POST", "/new", 403),
        ("POST", "/mcp", 406),
        ("PUT", "/mcp", 405),
    ] {
        let reply = ask(&daemon.client, method, path, status);
        assert!(is_problem(&reply), "{path}: {reply:?}");
    }
    for (path, status) in [("/metrics", 200), ("/v1/ready", 200), ("/none", 404)] {
        ask(&probes, "GET", path, status);
    }
}

#[test]
fn host_with_scheme_or_port_is_rejected() {
    let place = TestDir::new();
    for host in [
        "https://tests.example.org",
        "tests.example.org:443",
        "[::1]:443",
        "::1",
    ] {
        let mut command = place.testwright();
        command.args(["serve", "--listen", "127.0.0.1:0", "--host", host]);
        let output = command.output().unwrap();
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("no scheme and no port"), "{stderr}");
    }
}

#[test]
fn longest_hint_is_read_in_any_encoding() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let own = format!("http://{}", daemon.client.address);
    for (path, kind, before, letter, after) in [
        (
            "/v1/runs/none/revise",
            "application/json",
            "{\"hint\": \"",
            "\\u044f",
            "\"}",
        ),
        (
            "/runs/none/revise",
            "application/x-www-form-urlencoded",
            "hint=",
            "%D1%8F",
            "",
        ),
    ] {
        // A letter has two bytes in UTF-8.
        let body = format!("{before}{}{after}", letter.repeat(4096));
        let headers = [("content-type", kind), ("origin", own.as_str())];
        let reply = daemon.client.send("POST", path, &headers, &body);
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
    }
}

#[test]
fn cross_site_writes_are_rejected() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let send = |path: &str, site: &str, more: &[(&str, &str)]| {
        let kind = ("content-type", "application/json");
        let headers = [&[kind, ("sec-fetch-site", site)][..], more].concat();
        let body = issue().to_string();
        daemon.client.send("POST", path, &headers, &body)
    };
    for site in ["cross-site", "same-site"] {
        for path in ["/v1/runs", "/v1/gradings/one/cancel", "/mcp"] {
            let refused = send(path, site, &[]);
            assert_eq!(refused.status, 403, "{refused:?}");
            assert!(is_problem(&refused), "{refused:?}");
        }
        let basic = send("/v1/runs", site, &[("authorization", "Basic YTpi")]);
        assert_eq!(basic.status, 403, "{basic:?}");
        // Webhooks authenticate callers by signature, and none is configured here.
        assert_eq!(send("/v1/github/webhook", site, &[]).status, 404);
    }
    let runs = || daemon.client.get("/v1/runs").json()["runs"].clone();
    assert_eq!(runs(), Value::Array(Vec::new()));
    assert_eq!(send("/v1/runs", "same-origin", &[]).status, 201);
    assert_eq!(send("/v1/runs", "none", &[]).status, 201);
    // A browser never sends this header for a page of another site.
    let token = [("authorization", "Bearer testwright_none")];
    assert_eq!(send("/v1/runs", "cross-site", &token).status, 201);
}

#[test]
fn description_covers_authentication_errors() {
    let place = TestDir::new();
    let words = ["--workers", "0", "--require-tokens"];
    let daemon = ServerProcess::start_with(&place, &databases::embedded(), None, "data", &words);
    let description = daemon.client.get("/v1/openapi.json").json();
    let scheme = &description["components"]["securitySchemes"]["bearer"];
    assert_eq!(scheme["scheme"], "bearer");
    let is_documented = |path: &str, status: u16| {
        description["paths"][path]["get"]["responses"]
            .get(status.to_string())
            .is_some()
    };
    for path in ["/v1/runs", "/v1/comparisons", "/v1/gradings", "/v1/workers"] {
        for (headers, status) in [
            (vec![], 401),
            (vec![("origin", "http://example.org")], 403),
            (vec![("host", "example.org")], 421),
        ] {
            let reply = daemon.client.send("GET", path, &headers, "");
            assert_eq!(reply.status, status, "{reply:?}");
            assert!(
                is_problem(&reply) && is_documented(path, status),
                "{path} {status}"
            );
        }
    }
    assert!(!is_documented("/v1/health", 401));
}
