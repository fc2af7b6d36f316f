//! The pages as a browser asks for them.

use serde_json::json;

use super::Daemon;
use super::client::Client;
use crate::program::{Place, example};

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
fn forms_are_taken_from_the_pages_of_the_server_alone() {
    let place = Place::new();
    let daemon = Daemon::start_idle(&place);
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
    assert!(client.get(&run).body.contains("Cancel the run"));
    assert_eq!(
        post_form(client, &format!("{run}/cancel"), None, "").status,
        403
    );
    assert_eq!(
        post_form(client, &format!("{run}/cancel"), Some(&own), "").status,
        303
    );
    assert!(client.get(&run).body.contains("Go on with the run"));
    // What was filled in comes back as it was, beside what is wrong with it.
    let wrong = post_form(
        client,
        "/new",
        Some(&own),
        "issue=%0D%0Aa%3Cb%0D%0A%09c&repository=%2Fetc",
    );
    assert_eq!(wrong.status, 422);
    assert!(
        wrong.body.contains("it is not allowed here"),
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
fn what_strangers_wrote_is_text_on_every_page() {
    let place = Place::new();
    let daemon = Daemon::start_idle(&place);
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
