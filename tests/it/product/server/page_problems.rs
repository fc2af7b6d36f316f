//! Error pages for browsers, with the same status and a link back, and the login, which leads to the requested page.

use super::client::{Client, Reply};
use super::{ServerProcess, databases, tokens};
use crate::support::program::{TestDir, example};

const PAGE: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn is_page(reply: &Reply) -> bool {
    let kind = reply.header("content-type").unwrap_or_default();
    kind.starts_with("text/html") && reply.header("content-security-policy").is_some()
}

#[test]
fn browsers_get_pages_and_programs_json() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let client = &daemon.client;
    let comparison = "/comparisons/0190a1b2c3dabcdefgh";
    let report = format!("{comparison}/report");
    for (method, path, status, message, back) in [
        ("GET", "/runs/x", 404, "No run has this id.", "/"),
        ("GET", "/nothing", 404, "This address does not exist.", "/"),
        (
            "GET",
            report.as_str(),
            404,
            "No comparison has this id.",
            comparison,
        ),
        (
            "GET",
            "/matrices/x",
            404,
            "No matrix has this id.",
            "/matrices",
        ),
        (
            "POST",
            "/new",
            403,
            "The form was sent without an Origin header.",
            "/new",
        ),
        (
            "PUT",
            "/new",
            405,
            "This address does not support this method.",
            "/new",
        ),
    ] {
        let reply = client.send(method, path, &[PAGE], "");
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert!(is_page(&reply), "{path}: {reply:?}");
        assert!(reply.body.contains(message), "{path}: {}", reply.body);
        assert!(!reply.body.contains("/v1/"), "{path}: {}", reply.body);
        let link = format!("<p><a href=\"{back}\">");
        let body = reply.body.replace("&#x2f;", "/");
        assert!(body.contains(&link), "{path}: {body}");
        let program = client.send(method, path, &[], "");
        assert_eq!(program.status, status, "{path}: {program:?}");
        let kind = program.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{path}");
        assert_eq!(reply.header("allow"), program.header("allow"), "{path}");
    }
    // The API responds with JSON even to a browser.
    let api = client.send("GET", "/v1/runs/x", &[PAGE], "");
    let kind = api.header("content-type");
    assert_eq!((api.status, kind), (404, Some("application/problem+json")));
}

fn log_in(client: &Client, token: &str, next: &str) -> Reply {
    let own = format!("http://{}", client.address);
    let form = format!("token={token}&next={next}");
    client.send("POST", "/login", &[FORM, PAGE, ("origin", &own)], &form)
}

#[test]
fn login_redirects_only_to_own_pages() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    let words = ["--workers", "0", "--require-tokens"];
    let daemon = ServerProcess::start_with(&place, database, None, "data", &words);
    let client = &daemon.client;
    let token = tokens::create(&place, database, &["someone"]);
    for (path, login, next_path) in [
        ("/", "/login", None),
        ("/workers", "/login?next=/workers", Some("/workers")),
        (
            "/?status=accepted&before=x",
            "/login?next=/%3Fstatus%3Daccepted%26before%3Dx",
            Some("/?status=accepted&amp;before=x"),
        ),
        ("//example.org/x", "/login", None),
    ] {
        let away = client.send("GET", path, &[PAGE], "");
        assert_eq!((away.status, away.header("location")), (303, Some(login)));
        let page = client.send("GET", login, &[PAGE], "").body;
        let page = page.replace("&#x2f;", "/");
        let field = next_path.map(|next| format!("name=\"next\" value=\"{next}\""));
        match field {
            Some(field) => assert!(page.contains(&field), "{page}"),
            None => assert!(!page.contains("name=\"next\""), "{page}"),
        }
    }
    let wrong = log_in(client, "testwright_guessed", "%2Fworkers");
    assert_eq!(wrong.status, 401);
    let page = wrong.body.replace("&#x2f;", "/");
    assert!(page.contains("name=\"next\" value=\"/workers\""), "{page}");

    let to = |next: &str| {
        let reply = log_in(client, &token, next);
        assert_eq!(reply.status, 303, "{next}: {reply:?}");
        reply.header("location").unwrap().to_owned()
    };
    assert_eq!(to("%2Fworkers"), "/workers");
    assert_eq!(
        to("/?status=accepted%26before=x"),
        "/?status=accepted&before=x"
    );
    for elsewhere in [
        "",
        "https://example.org",
        "//example.org",
        "/%5Cexample.org",
        "%5C%5Cexample.org",
        "/%09/example.org",
        "/%0A/example.org",
        "%20//example.org",
        "javascript:alert(1)",
        "/runs%0D%0Aset-cookie:a=b",
        "/login?next=//example.org",
    ] {
        assert_eq!(to(elsewhere), "/", "{elsewhere}");
        let page = client.send("GET", &format!("/login?next={elsewhere}"), &[PAGE], "");
        assert!(!page.body.contains("name=\"next\""), "{}", page.body);
    }

    // A browser does not send its cookie with a link from another site. The page reloads from this site, once.
    for (site, status, refresh) in [
        ("cross-site", 200, Some("0; url=/workers?a=b")),
        ("same-origin", 303, None),
        ("none", 303, None),
    ] {
        let headers = [PAGE, ("sec-fetch-site", site)];
        let away = client.send("GET", "/workers?a=b", &headers, "");
        assert_eq!((away.status, away.header("refresh")), (status, refresh));
        assert!(!away.body.contains("Slots"), "{}", away.body);
        let elsewhere = client.send("GET", "//example.org", &headers, "");
        assert_eq!(elsewhere.header("location"), Some("/login"));
    }

    // A form without a cookie gets a page about the missing login, not a JSON error.
    let own = format!("http://{}", client.address);
    let form = format!("issue=It+fails&repository={}", example("slugs"));
    let headers = [FORM, PAGE, ("origin", own.as_str())];
    let refused = client.send("POST", "/new", &headers, &form);
    assert_eq!(refused.status, 401);
    assert!(is_page(&refused), "{refused:?}");
    let body = refused.body.replace("&#x2f;", "/");
    assert!(body.contains("<a href=\"/login\">Log in</a>"), "{body}");
}
