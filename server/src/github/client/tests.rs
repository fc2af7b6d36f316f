#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn refusal_contains_listed_errors() {
    let errors = serde_json::json!([{"message": "A pull request exists."}, {"field": "base", "code": "invalid"}]);
    let value = serde_json::json!({"message": "Validation Failed", "errors": errors});
    assert_eq!(
        refusal(&value),
        "Validation Failed: A pull request exists.: base invalid"
    );
    assert_eq!(refusal(&Value::Null), "");
}

fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, String)| (name.parse().unwrap(), value.parse().unwrap());
    pairs.iter().map(pair).collect()
}

fn client() -> GitHubClient {
    GitHubClient {
        api: "https://api.github.com".parse().unwrap(),
        http: http_client::builder().build().unwrap(),
        pause: Mutex::default(),
        tokens: Mutex::default(),
    }
}

#[test]
fn wait_without_time_doubles_while_limit_lasts() {
    let client = client();
    let wait_after = |pause_end: i64| {
        lock(&client.pause).end = pause_end;
        let _ = client.check_response(StatusCode::TOO_MANY_REQUESTS, &headers(&[]), b"");
        (lock(&client.pause).end - now()) as f64 / DEFAULT_RETRY_AFTER as f64
    };
    let in_pause = now() + DEFAULT_RETRY_AFTER;
    for (pause_end, expected) in [
        (0, 1.0),
        (now(), 2.0),
        (now(), 4.0),
        // A concurrent request meets the same limit.
        (in_pause, 4.0),
        (now(), 8.0),
        // The last pause ended long ago.
        (now() - 9 * DEFAULT_RETRY_AFTER, 1.0),
    ] {
        let _ = client.check_response(StatusCode::OK, &headers(&[]), b"");
        let wait = wait_after(pause_end);
        assert!((wait - expected).abs() < 0.3, "{wait} {expected}");
    }
}

#[test]
fn shorter_limit_does_not_end_longer_one() {
    let client = client();
    let check = |status, after: &str| {
        let headers = headers(&[("retry-after", after.to_owned())]);
        client.check_response(status, &headers, b"").unwrap_err()
    };
    let limited = check(StatusCode::FORBIDDEN, "600");
    assert_eq!(check(StatusCode::TOO_MANY_REQUESTS, "5"), limited);
}

#[test]
fn rate_limit_differs_from_other_refusals() {
    let soon = (now() / 1000 + 100).to_string();
    let used_up = [
        ("x-ratelimit-remaining", "0".to_owned()),
        ("x-ratelimit-reset", soon),
    ];
    let after = [("retry-after", "7".to_owned())];
    let long = [("retry-after", "999999999999".to_owned())];
    let none = headers(&[]);
    let forbidden = StatusCode::FORBIDDEN;
    assert_eq!(
        rate_limit_wait(forbidden, &none, "Must have admin rights"),
        None
    );
    assert_eq!(rate_limit_wait(forbidden, &headers(&after), ""), Some(7000));
    assert_eq!(
        rate_limit_wait(forbidden, &headers(&long), ""),
        Some(MAX_WAIT)
    );
    let secondary = "You have exceeded a secondary rate limit.";
    assert_eq!(rate_limit_wait(forbidden, &none, secondary), Some(0));
    assert_eq!(
        rate_limit_wait(StatusCode::TOO_MANY_REQUESTS, &none, ""),
        Some(0)
    );
    for status in [forbidden, StatusCode::OK] {
        let wait = rate_limit_wait(status, &headers(&used_up), "").unwrap();
        assert!((90_000..=100_000).contains(&wait), "{wait}");
        let past = (now() / 1000 - 100).to_string();
        let past = [used_up[0].clone(), ("x-ratelimit-reset", past)];
        assert_eq!(rate_limit_wait(status, &headers(&past), ""), Some(0));
    }
    assert_eq!(rate_limit_wait(StatusCode::OK, &none, ""), None);
    assert_eq!(
        rate_limit_wait(StatusCode::NOT_FOUND, &headers(&used_up), ""),
        None
    );
}
