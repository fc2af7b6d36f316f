//! Tests of the pages as a browser requests them.

use serde_json::{Value, json};
use testwright_server::store::{JobFilter, Store};

use super::client::Client;
use super::{ServerProcess, databases};
use crate::support::program::{TestDir, example};

fn post_form(
    client: &Client,
    path: &str,
    origin: Option<&str>,
    form: &str,
) -> super::client::Reply {
    let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
    headers.extend(origin.map(|origin| ("origin", origin)));
    client.send("POST", path, &headers, form)
}

#[test]
fn forms_of_other_origins_are_rejected() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let client = &daemon.client;
    let own = format!("http://{}", client.address);
    let form = format!(
        "issue=It+fails&repository={}&commit=&approach=&model=",
        example("slugs").replace('/', "%2F")
    );
    for origin in [None, Some("null"), Some("http://example.org")] {
        assert_eq!(
            post_form(client, "/new", origin, &form).status,
            403,
            "{origin:?}"
        );
    }
    assert_eq!(client.get("/v1/runs").json()["runs"], json!([]));
    let made = post_form(client, "/new", Some(&own), &form);
    assert_eq!(made.status, 303, "{made:?}");
    let run = made.header("location").unwrap().to_owned();
    assert!(client.get(&run).body.contains("Cancel run"));
    assert_eq!(
        post_form(client, &format!("{run}/cancel"), None, "").status,
        403
    );
    assert_eq!(
        post_form(client, &format!("{run}/cancel"), Some(&own), "").status,
        303
    );
    assert!(client.get(&run).body.contains("Resume run"));
    // The form comes back as it was filled in, with the error.
    let wrong = post_form(
        client,
        "/new",
        Some(&own),
        "issue=%0D%0Aa%3Cb%0D%0A%09c&repository=%2Fetc",
    );
    assert_eq!(wrong.status, 422);
    assert!(
        wrong.body.contains("this server does not allow it"),
        "{}",
        wrong.body
    );
    assert!(
        wrong.body.contains(">\n\r\na&lt;b\r\n\tc</textarea>"),
        "{}",
        wrong.body
    );
}

#[test]
fn untrusted_text_is_escaped_on_pages() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let hostile = "</textarea></pre><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}";
    let request = json!({"issue": hostile, "repository": example("slugs"), "commit": "a"});
    let id = daemon.run(&request);
    for page in ["/".to_owned(), format!("/runs/{id}")] {
        let shown = daemon.client.get(&page);
        let policy = shown.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(
            shown.body.contains("&lt;script&gt;alert(1)"),
            "{}",
            shown.body
        );
        assert_eq!(shown.body.matches("<script").count(), 1, "that of the page");
        assert!(!shown.body.contains("<img") && !shown.body.contains('\u{202e}'));
    }
    for (path, status) in [
        ("/runs/nothing", 404),
        ("/new", 200),
        ("/settings", 200),
        ("/?status=lost", 200),
    ] {
        assert_eq!(daemon.client.get(path).status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_form_accepts_limits() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_with(
        &place,
        &databases::embedded(),
        None,
        "data",
        &["--workers", "0"],
    );
    let client = &daemon.client;
    let page = client.get("/new").body;
    for part in [
        "Steps (at most 60)",
        "name=\"tokens\"",
        "name=\"dollars\"",
        "Minutes (at most 30)",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let own = format!("http://{}", client.address);
    let post = |limits: &str| {
        let repository = example("slugs").replace('/', "%2F");
        let form = format!("issue=It+fails&repository={repository}&approach=snippet{limits}");
        post_form(client, "/new", Some(&own), &form)
    };
    for (limits, reason) in [
        (
            "&steps=many",
            "Steps: “many” is not a whole number above zero",
        ),
        ("&tokens=0", "Tokens: “0” is not a whole number above zero"),
        (
            "&dollars=inf",
            "US dollars: “inf” is not a number above zero",
        ),
        ("&minutes=-1", "Minutes: “-1” is not a number above zero"),
    ] {
        let wrong = post(limits);
        assert_eq!(wrong.status, 422, "{wrong:?}");
        assert!(wrong.body.contains(reason), "{reason}: {}", wrong.body);
    }
    let made = post("&steps=5&tokens=1000&dollars=0.5&minutes=2.5");
    assert_eq!(made.status, 303, "{made:?}");
    let store = Store::open(&Store::url_in(&place.path("data"))).await;
    let filter = JobFilter {
        limit: 2,
        ..JobFilter::default()
    };
    let runs = store
        .unwrap()
        .runs(&filter, |run| run.request)
        .await
        .unwrap();
    let request: Value = serde_json::from_str(&runs[0]).unwrap();
    assert_eq!(
        request["limits"],
        json!({"steps": 5, "tokens": 1000, "dollars": 0.5, "minutes": 2.5})
    );
    assert_eq!(runs.len(), 1, "what was wrong is not stored");
}

#[test]
fn settings_page_shows_server_options() {
    let place = TestDir::new();
    let words = [
        "--workers",
        "0",
        "--keep-runs",
        "14",
        "--mcp-sandboxes",
        "3",
    ];
    let daemon = ServerProcess::start_with(&place, &databases::all()[0], None, "data", &words);
    let page = daemon.client.get("/settings").body.replace("&#x2f;", "/");
    for part in [
        daemon.client.address.as_str(),
        "<code>--keep-runs</code>",
        "14 days after their end",
        "<td class=\"long\">3</td>",
        &example("*"),
        "/artifacts",
        "run.max-steps",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains(">SQLite<") || page.contains(">Postgres<"));
    assert!(
        !page.contains("sqlite:") && !page.contains("postgres:"),
        "{page}"
    );
}

#[test]
fn matrix_page_shows_issue_and_progress() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let named = |name: &str| json!({"name": name, "patch": "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-x\n+y\n"});
    let mut request = json!({"repository": example("slugs"), "issue": "# Add <b> fails\n\nAlways.",
        "tests": [named("good")], "patches": [named("one"), named("two")]});
    let made = daemon.client.post("/v1/matrices", &request);
    assert_eq!(made.status, 201, "{made:?}");
    let page = daemon.client.get("/matrices").body;
    for part in ["Add &lt;b&gt; fails", "0 of 2", "queued"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    request["issue"] = Value::Null;
    let made = daemon.client.post("/v1/matrices", &request);
    assert_eq!(made.status, 201, "{made:?}");
    assert!(daemon.client.get("/matrices").body.contains(">good</a>"));
}

const BOUNDARY: &str = "----------a-boundary";

/// Encodes form fields as a browser does. A file field has a file name.
fn multipart(fields: &[(&str, Option<&str>, &str)]) -> String {
    let mut form = String::new();
    for (name, file, value) in fields {
        let file = file.map_or(String::new(), |file| format!("; filename=\"{file}\""));
        form += &format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
        );
    }
    form + &format!("--{BOUNDARY}--\r\n")
}

fn post_comparison(
    client: &Client,
    headers: &[(&str, &str)],
    fields: &[(&str, Option<&str>, &str)],
) -> super::client::Reply {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let headers = [&[("content-type", kind.as_str())], headers].concat();
    client.send("POST", "/comparisons/new", &headers, &multipart(fields))
}

fn instance(id: &str) -> String {
    json!({"instance_id": id, "repo": "examples/slugs", "base_commit": "abcdef0123456789", "problem_statement": "It fails"})
        .to_string()
}

#[test]
fn comparison_form_creates_comparison() {
    let place = TestDir::new();
    let prices = "[prices.\"m\"]\nprompt = 1\ncompletion = 2\n";
    std::fs::write(place.path("prices.toml"), prices).unwrap();
    let config = place.path("prices.toml").display().to_string();
    let words = ["--workers", "0", "--config", &config];
    let daemon = ServerProcess::start_with(&place, &databases::embedded(), None, "data", &words);
    let client = &daemon.client;
    assert!(
        client
            .get("/comparisons")
            .body
            .contains("href=\"/comparisons/new\"")
    );
    let form = client.get("/comparisons/new");
    for part in [
        "value=\"testwright\" checked",
        "value=\"otter-plus-plus\">",
        "name=\"model\" value=\"m\">",
        "enctype=\"multipart/form-data\"",
    ] {
        assert!(form.body.contains(part), "{part}: {}", form.body);
    }

    let (one, two) = (instance("slugs-1"), instance("slugs-2"));
    let file = format!("{one}\n{two}\n");
    let repositories = example("{name}");
    let fields = [
        ("file", Some("C:\\sets\\two.jsonl"), file.as_str()),
        ("instances", None, ""),
        ("name", None, ""),
        ("approach", None, "snippet"),
        ("approach", None, "libro"),
        ("variants", None, " otter:planner=off "),
        ("model", None, "m"),
        ("other_models", None, ""),
        ("samples", None, "2"),
        ("effort", None, "low"),
        ("dollars", None, "1.5"),
        ("steps", None, "10"),
        ("tokens", None, ""),
        ("minutes", None, "2.5"),
        ("test_seconds", None, ""),
        ("repositories", None, repositories.as_str()),
    ];
    let own = format!("http://{}", client.address);
    for origin in [None, Some("null"), Some("http://example.org")] {
        let headers: Vec<_> = origin.map(|o| ("origin", o)).into_iter().collect();
        let refused = post_comparison(client, &headers, &fields);
        assert_eq!(refused.status, 403, "{origin:?}");
    }
    let listed = || client.get("/v1/comparisons").json()["comparisons"].clone();
    assert_eq!(listed(), json!([]));
    let own = [("origin", own.as_str())];
    let made = post_comparison(client, &own, &fields);
    assert_eq!(made.status, 303, "{made:?}");
    let comparison = &listed()[0];
    let page = format!("/comparisons/{}", comparison["id"].as_str().unwrap());
    assert_eq!(made.header("location"), Some(page.as_str()));
    assert_eq!(comparison["name"], "two.jsonl");
    assert_eq!(
        (&comparison["instances"], &comparison["samples"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        comparison["systems"],
        json!(["snippet", "libro@m", "otter:planner=off@m"])
    );
    assert!(client.get("/comparisons").body.contains("two.jsonl"));

    // The form comes back as it was filled in, with the file's content in the field of instances.
    let hostile = "</textarea><script>alert(1)</script>";
    for (field, file, value, reason) in [
        (
            "repositories",
            None,
            "/etc/{name}",
            "this server does not allow it",
        ),
        (
            "samples",
            None,
            "many",
            "Samples: “many” is not a whole number from 1 to 100: enter a number such as 10",
        ),
        (
            "dollars",
            None,
            "1,5",
            "US dollars for all runs together: “1,5” is not a number above zero",
        ),
        (
            "steps",
            None,
            "0",
            "Steps per run: “0” is not a whole number",
        ),
        (
            "test_seconds",
            None,
            "9000",
            "is not a whole number from 1 to 7200",
        ),
        ("effort", None, "huge", "Effort: “huge” is not a level"),
        ("other_models", None, "free", "`free` has no price"),
        ("instances", Some("x.jsonl"), hostile, "invalid JSON"),
        (
            "approach",
            None,
            "none-such",
            "find the approach `none-such`",
        ),
        ("more", None, "1", "the form has no field"),
    ] {
        let mut changed = fields.to_vec();
        match changed.iter_mut().find(|f| f.0 == field) {
            Some(found) if file.is_none() => found.2 = value,
            Some(_) => changed[0].2 = value,
            None => changed.push((field, None, value)),
        }
        let wrong = post_comparison(client, &own, &changed);
        assert_eq!(wrong.status, 422, "{wrong:?}");
        assert!(wrong.body.contains(reason), "{reason}: {}", wrong.body);
        assert!(!wrong.body.contains("<script>alert"), "{}", wrong.body);
        if field == "samples" {
            for part in [
                "value=\"many\"",
                "value=\"libro\" checked",
                "value=\"m\" checked",
                "<option selected>low",
                "&quot;instance_id&quot;:&quot;slugs-2&quot;",
            ] {
                assert!(wrong.body.contains(part), "{part}: {}", wrong.body);
            }
        }
    }
    // Missing fields are named by their labels, from top to bottom.
    for (left, reason) in [
        (
            &["file", "name", "approach", "variants"][..],
            "Instances: no instances were given",
        ),
        (&["file", "name"], "Instances: no instances were given"),
        (
            &["approach", "variants"],
            "Approaches: no approach was chosen",
        ),
    ] {
        let mut changed = fields.to_vec();
        for field in changed.iter_mut().filter(|f| left.contains(&f.0)) {
            *field = (field.0, field.1.map(|_| ""), "");
        }
        changed.retain(|field| field.0 != "approach" || !left.contains(&"approach"));
        let wrong = post_comparison(client, &own, &changed);
        assert_eq!(wrong.status, 422, "{wrong:?}");
        assert!(wrong.body.contains(reason), "{reason}: {}", wrong.body);
    }
    let mut unnamed = fields.to_vec();
    unnamed[0] = ("file", Some(""), "");
    unnamed[1].2 = &one;
    let wrong = post_comparison(client, &own, &unnamed);
    let reason = "Name in lists: the name is missing: enter a name";
    assert!(wrong.body.contains(reason), "{}", wrong.body);
    // The returned content is sent again in place of the file.
    let mut again = fields.to_vec();
    again[0] = ("file", Some(""), "");
    again[1].2 = &one;
    again[2].2 = "one";
    assert_eq!(post_comparison(client, &own, &again).status, 303);
    assert_eq!(listed()[0]["name"], "one");
    assert_eq!(listed().as_array().unwrap().len(), 2);
}
