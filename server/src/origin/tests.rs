#![allow(clippy::unwrap_used)]
use super::*;

fn is_refused(host: &str, origin: Option<&str>) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, host.parse().unwrap());
    if let Some(origin) = origin {
        headers.insert(header::ORIGIN, origin.parse().unwrap());
    }
    refusal(&Access::default(), &Method::GET, "/v1/runs", &headers).is_some()
}

#[test]
fn proxy_is_refused_without_tokens() {
    for name in FORWARDED {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost".parse().unwrap());
        headers.insert(name, "192.0.2.1".parse().unwrap());
        let is_refused =
            |access: &Access| refusal(access, &Method::GET, "/v1/runs", &headers).is_some();
        assert!(is_refused(&Access::default()));
        let access = Access::new("127.0.0.1:1".parse().unwrap(), &[], true);
        assert!(!is_refused(&access));
    }
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    for host in ["localhost:8000", "127.0.0.1", "[::1]:8000", "[::1]"] {
        assert!(!is_refused(host, None), "{host}");
        assert!(!is_refused(host, Some(&format!("http://{host}"))));
    }
    for host in [
        "example.org",
        "localhost.example.org:8000",
        "127.0.0.1.nip.io",
        "",
    ] {
        assert!(is_refused(host, None), "{host}");
    }
    for origin in ["http://example.org", "null", "http://localhost:9999", ""] {
        assert!(is_refused("localhost:8000", Some(origin)), "{origin}");
    }
}

#[test]
fn cross_site_writes_without_origin_are_refused() {
    let is_refused = |method: Method, site: &str, authorization: Option<&str>| {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost".parse().unwrap());
        headers.insert(SEC_FETCH_SITE, site.parse().unwrap());
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        }
        refusal(&Access::default(), &method, "/v1/runs", &headers).is_some()
    };
    for site in ["cross-site", "same-site", "another"] {
        for method in [Method::POST, Method::DELETE] {
            assert!(is_refused(method.clone(), site, None), "{site}");
            // Browsers send basic authentication themselves.
            assert!(is_refused(method.clone(), site, Some("Basic abc")));
            assert!(!is_refused(method, site, Some("Bearer abc")));
        }
        // This is a link to a page.
        assert!(!is_refused(Method::GET, site, None));
    }
    for site in OWN_SITE {
        assert!(!is_refused(Method::POST, site, None), "{site}");
    }
}
