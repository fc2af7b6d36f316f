#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

fn now() -> SystemTime {
    httpdate::parse_http_date("Sat, 21 Nov 2026 22:00:00 GMT").unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| {
            let name = reqwest::header::HeaderName::from_static(name);
            (name, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn hints_in_headers_are_read() {
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(Pairs, Option<f64>); 25] = [
        (&[("retry-after", "7")], Some(7.0)),
        (&[("retry-after", "7.5")], Some(7.5)),
        (&[("retry-after", "7s")], Some(7.0)),
        (&[("retry-after", "PT1M30S")], Some(90.0)),
        (
            &[("retry-after", "Sat, 21 Nov 2026 22:01:30 GMT")],
            Some(90.0),
        ),
        (
            &[("retry-after", "Sat, 21 Nov 2026 21:00:00 GMT")],
            Some(0.0),
        ),
        (
            &[
                ("retry-after", "Sat, 21 Nov 2026 22:01:30 GMT"),
                ("date", "Sat, 21 Nov 2026 22:01:00 GMT"),
            ],
            Some(30.0),
        ),
        (&[("retry-after-ms", "1500")], Some(1.5)),
        (&[("x-retry-after", "7")], Some(7.0)),
        (&[("x-retry-after", "700"), ("retry-after", "3")], Some(3.0)),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-4")], None),
        (&[], None),
        (&[("x-ratelimit-reset-tokens", "1m26.5s")], Some(86.5)),
        (&[("x-ratelimit-reset-requests", "20ms")], Some(0.02)),
        (
            &[
                ("x-ratelimit-reset-requests", "24h0m0s"),
                ("x-ratelimit-remaining-requests", "100"),
                ("x-ratelimit-reset-tokens", "6m0s"),
                ("x-ratelimit-remaining-tokens", "0"),
            ],
            Some(360.0),
        ),
        (
            &[
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-reset-tokens", "6m0s"),
                ("retry-after", "3"),
            ],
            Some(3.0),
        ),
        (
            &[
                ("x-ratelimit-reset-requests-day", "33011.38"),
                ("x-ratelimit-remaining-requests-day", "90"),
                ("x-ratelimit-reset-tokens-minute", "11.5"),
                ("x-ratelimit-remaining-tokens-minute", "0"),
            ],
            Some(11.5),
        ),
        (&[("ratelimitbysize-reset", "13")], Some(13.0)),
        (&[("ratelimit", "\"api\";r=0;t=55")], Some(55.0)),
        (&[("x-ms-retry-after-ms", "500")], Some(0.5)),
        (&[("x-ratelimit-reset", "1795298430")], Some(30.0)),
        (&[("x-ratelimit-reset", "1795298430000")], Some(30.0)),
        (&[("x-ratelimit-reset", "45")], Some(45.0)),
        (
            &[("anthropic-ratelimit-requests-reset", "2026-11-21T22:00:10Z")],
            Some(10.0),
        ),
    ];
    for (pairs, seconds) in cases {
        assert_eq!(in_headers(&headers(pairs), now()), seconds, "{pairs:?}");
    }
}

#[test]
fn hints_in_bodies_are_read() {
    let error_body = |text: &str| json!({"error": {"message": text}}).to_string();
    for (body, seconds) in [
        (error_body("Please try again in 1m26.5s."), Some(86.5)),
        (error_body("Please try again in 20ms. Visit https://x.example/42"), Some(0.02)),
        (error_body("Please try again in 1h2m3.5s."), Some(3723.5)),
        (error_body("Please try again in 0m20.0s."), Some(20.0)),
        (error_body("Limit 30000, Used 29000. Please try again in 1.3s."), Some(1.3)),
        (error_body("You exceeded your current quota.\nPlease retry in 34.074824224s."), Some(34.074_824_224)),
        (error_body("Please retry after 26 seconds."), Some(26.0)),
        (error_body("Try again in 2 minutes and 5 seconds"), Some(125.0)),
        (error_body("Retry after: 30"), Some(30.0)),
        (error_body("Please wait 15 seconds before the next call"), Some(15.0)),
        (error_body("Please wait for 1 minute"), Some(60.0)),
        (error_body("Your quota will reset after 1h16m44s."), Some(4604.0)),
        (error_body("try again in 5 min"), Some(300.0)),
        (error_body("Limit resets at: 2026-11-21 22:01:00 UTC"), Some(60.0)),
        (error_body("Your limit resets at 2026-11-21T22:00:30.5Z"), Some(30.5)),
        (error_body("retry_delay {\n  seconds: 40\n}"), Some(40.0)),
        (error_body("VertexAIException - {\"details\": [{\"retryDelay\": \"34s\"}]}"), Some(34.0)),
        (error_body("Come back in 3 minutes."), Some(180.0)),
        (error_body("Retry after PT20S"), Some(20.0)),
        (error_body("Please wait PT1M30.5S before the next request"), Some(90.5)),
        (error_body("Try again at 2026-11-21T22:01:00Z"), Some(60.0)),
        (error_body("No capacity until 2026-11-21 23:01:00+01:00."), Some(60.0)),
        (error_body("Please retry after Sat, 21 Nov 2026 22:01:30 GMT"), Some(90.0)),
        (error_body("The limit was reset at 2026-11-21 21:00:00"), None),
        (error_body("The certificate is valid from 2026-11-22"), None),
        (error_body("Your quota resets on 2026-11-22"), Some(7200.0)),
        (error_body("Please wait till 2026-11-21 22:01:00"), Some(60.0)),
        (error_body("The limit was reset at 2026-11-21 21:00:00. Try again in 12s."), Some(12.0)),
        (error_body("Try again in 12s. The quota resets at 2026-12-01 00:00:00."), Some(12.0)),
        (json!({"retryDelay": "PT1M30S"}).to_string(), Some(90.0)),
        (json!({"error": {"reset_time": "2026-11-21T22:01:00Z"}}).to_string(), Some(60.0)),
        (json!({"error": {"retry_at": "Sat, 21 Nov 2026 22:01:30 GMT"}}).to_string(), Some(90.0)),
        (json!({"quotaResetTimeStamp": 1_795_298_430}).to_string(), Some(30.0)),
        (json!({"retry_count": 3, "message": "slow down"}).to_string(), None),
        (json!({"reset_time_ms": 1_795_298_430_000_i64}).to_string(), Some(30.0)),
        (json!({"last_reset": "2026-11-21T21:00:00Z", "message": "retry in 12s"}).to_string(), Some(12.0)),
        (error_body("Try again at 12:30"), None),
        (error_body("Try again later (limit 100 requests per minute)"), None),
        (json!({"error": {"type": "usage_limit_reached", "resets_in_seconds": 90}}).to_string(), Some(90.0)),
        (error_body("try again in one minute"), Some(60.0)),
        (error_body("Try again in 00:01:20"), Some(80.0)),
        (error_body("Cooling down for 20 seconds"), Some(20.0)),
        (error_body("20s remaining until reset"), Some(20.0)),
        (error_body("请求过于频繁，请 20 秒后再试"), Some(20.0)),
        (json!({"error": {"details": [{"metadata": {"quotaResetDelay": "20.5s"}}]}}).to_string(), Some(20.5)),
        (error_body("slow down"), None),
        (error_body("Rate limit: 60 requests per minute, 1000 per day"), None),
        (error_body("Limit reached for requests per min (RPM): Limit 3000, Used 3000"), None),
        (error_body("Please wait, the limit is 1000 per day"), None),
        (error_body("retry_in: 5"), Some(5.0)),
        (error_body("the model gpt-4 is busy, limit 3"), None),
        ("try again in 12s".to_owned(), Some(12.0)),
        (json!([{"error": {"code": 429, "message": "quota", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]}}]).to_string(), Some(34.07)),
        (json!({"error": {"details": [{"retryDelay": {"seconds": 5, "nanos": 500_000_000}}]}}).to_string(), Some(5.5)),
        (json!({"message": "x", "retry_after": 2.5}).to_string(), Some(2.5)),
        (json!({"retry_after_ms": 1200}).to_string(), Some(1.2)),
        (json!({"error": {"metadata": {"headers": {"X-RateLimit-Reset": "1795298430000"}}}}).to_string(), Some(30.0)),
    ] {
        assert_eq!(in_body(&body, now()), seconds, "{body}");
    }
}
