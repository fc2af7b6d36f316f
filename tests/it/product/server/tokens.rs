//! Authentication: tokens with their scopes and expiry, and logins of browsers.

use super::client::{Client, Reply};
use super::{ServerProcess, databases, issue};
use crate::support::program::{TestDir, example};

/// Creates a token in the database of a server.
pub(super) fn create(place: &TestDir, database: &databases::Database, words: &[&str]) -> String {
    let output = tokens(place, database, &[&["create"], words].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn tokens(place: &TestDir, database: &databases::Database, words: &[&str]) -> std::process::Output {
    let mut command = place.testwright();
    command.arg("tokens").args(words);
    command.arg("--data").arg(place.path("data"));
    if let Some(url) = &database.url {
        command.args(["--database", url]);
    }
    command.output().unwrap()
}

fn ask(client: &Client, method: &str, path: &str, token: &str, body: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
    ];
    client.send(method, path, &headers, body)
}

#[test]
fn token_is_valid_until_revoked() {
    for database in databases::all() {
        let place = TestDir::new();
        let words = ["--workers", "0", "--require-tokens"];
        let daemon = ServerProcess::start_with(&place, &database, None, "data", &words);
        let client = &daemon.client;
        let reader = create(&place, &database, &["reader", "--scope", "read"]);
        let writer = create(&place, &database, &["writer", "--owner", "team"]);
        let body = issue().to_string();

        let unauthenticated = client.get("/v1/runs");
        assert_eq!(unauthenticated.status, 401, "{unauthenticated:?}");
        assert_eq!(unauthenticated.header("www-authenticate"), Some("Bearer"));
        let server = format!("http://{}", client.address);
        let listed = place
            .testwright()
            .args(["runs", "list", "--server", &server])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&listed.stderr);
        assert!(stderr.contains("hint: set TESTWRIGHT_TOKEN"), "{stderr}");
        for wrong in [
            "",
            "testwright_",
            &reader[..reader.len() - 1],
            "' OR 1=1 --",
        ] {
            assert_eq!(
                ask(client, "GET", "/v1/runs", wrong, "").status,
                401,
                "{wrong}"
            );
        }
        assert_eq!(ask(client, "GET", "/v1/runs", &reader, "").status, 200);
        let refused = ask(client, "POST", "/v1/runs", &reader, &body);
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(refused.body.contains("lacks the scope `write`"));

        let reply = ask(client, "POST", "/v1/runs", &writer, &body);
        assert_eq!(reply.status, 201, "{reply:?}");
        assert_eq!(reply.json()["owner"], "team");
        let run = format!("/v1/runs/{}", reply.json()["id"].as_str().unwrap());
        for (method, what) in [("POST", "/cancel"), ("POST", "/retry")] {
            let refused = ask(client, method, &format!("{run}{what}"), &reader, "");
            assert_eq!(refused.status, 403, "{refused:?}");
        }
        let own = format!("http://{}", client.address);
        let authorization = format!("Bearer {reader}");
        let headers = [("authorization", authorization.as_str()), ("origin", &own)];
        for page in ["/new", "/comparisons/new"] {
            assert_eq!(client.send("GET", page, &headers, "").status, 200);
            let refused = client.send("POST", page, &headers, "");
            assert_eq!(refused.status, 403, "{refused:?}");
            assert!(refused.body.contains("lacks the scope `write`"));
        }
        // Probes have no token, and address the server by IP.
        let probe = client.send("GET", "/v1/health", &[("host", "10.0.0.7:8420")], "");
        assert_eq!(probe.status, 200);

        let listed = tokens(&place, &database, &["list"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(
            listed.contains("reader") && listed.contains("owner team"),
            "{listed}"
        );
        assert!(!listed.contains(&reader) && !listed.contains(&writer));
        assert!(
            tokens(&place, &database, &["revoke", "writer"])
                .status
                .success()
        );
        assert_eq!(ask(client, "GET", "/v1/runs", &writer, "").status, 401);
        let twice = tokens(&place, &database, &["revoke", "writer"]);
        assert_eq!(twice.status.code(), Some(2));
    }
}

#[test]
fn tokens_never_appear() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    let token = create(&place, database, &["ci"]);
    let twice = tokens(&place, database, &["create", "ci"]);
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    let words = ["--workers", "0", "--require-tokens"];
    let daemon = ServerProcess::start_with(&place, database, None, "data", &words);
    let reply = ask(&daemon.client, "GET", "/v1/runs", &token, "");
    assert_eq!(reply.status, 200);
    assert!(!format!("{reply:?}").contains(&token));
    assert_eq!(daemon.terminate(), Some(0));
    for entry in std::fs::read_dir(place.path("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let has_token = bytes
                .windows(token.len())
                .any(|part| part == token.as_bytes());
            assert!(!has_token, "{}", path.display());
        }
    }
}

#[test]
fn login_sets_http_only_cookie() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    let token = create(&place, database, &["someone"]);
    let words = ["--workers", "0", "--require-tokens"];
    let daemon = ServerProcess::start_with(&place, database, None, "data", &words);
    let client = &daemon.client;
    let accept = ("accept", "text/html,*/*");
    let away = client.send("GET", "/", &[accept], "");
    assert_eq!(
        (away.status, away.header("location")),
        (303, Some("/login"))
    );
    let own = format!("http://{}", client.address);
    let log_in = |token: &str| {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let headers = [form, ("origin", own.as_str())];
        client.send("POST", "/login", &headers, &format!("token={token}"))
    };
    let wrong = log_in("testwright_guessed");
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("The token is unknown"), "{wrong:?}");
    assert_eq!(wrong.header("set-cookie"), None);
    let right = log_in(&token);
    assert_eq!((right.status, right.header("location")), (303, Some("/")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    let page = client.send("GET", "/", &[accept, ("cookie", pair)], "");
    assert_eq!(page.status, 200);
    // The cookie is not enough: the form must come from a page of this server.
    let form = format!("issue=It+fails&repository={}", example("slugs"));
    let kind = ("content-type", "application/x-www-form-urlencoded");
    for origin in ["http://example.org", "null"] {
        let headers = [kind, ("cookie", pair), ("origin", origin)];
        assert_eq!(client.send("POST", "/new", &headers, &form).status, 403);
    }
    let headers = [kind, ("cookie", pair), ("origin", own.as_str())];
    assert_eq!(client.send("POST", "/new", &headers, &form).status, 303);
}

#[test]
fn remote_clients_need_token() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    // A proxy on this machine passes on its host name.
    let words = ["--workers", "0", "--host", "tests.example.org"];
    let daemon = ServerProcess::start_with(&place, database, None, "data", &words);
    for host in ["tests.example.org", "TESTS.example.org:443", "127.0.0.1:1"] {
        assert_eq!(
            daemon
                .client
                .send("GET", "/v1/runs", &[("host", host)], "")
                .status,
            401
        );
    }
    let other = daemon
        .client
        .send("GET", "/v1/runs", &[("host", "example.org")], "");
    assert_eq!(other.status, 421);
}

#[test]
fn reserved_owners_are_rejected() {
    let (place, database) = (TestDir::new(), databases::embedded());
    std::fs::create_dir(place.path("data")).unwrap();
    for words in [
        &["local"][..],
        &["compare"],
        &["eval"],
        &["github"],
        &["ci", "--owner", "compare"],
    ] {
        let output = tokens(&place, &database, &[&["create"], words].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains("is a reserved owner"), "{stderr}");
    }
    // A token may have this name if its owner has another.
    create(&place, &database, &["local", "--owner", "team"]);
}
