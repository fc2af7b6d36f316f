#![allow(clippy::unwrap_used)]
use super::super::git::{Git, Remote};
use super::super::process::{self, ProcessLimits};
use super::*;

#[test]
fn credentials_are_removed_from_url() {
    let (url, credential) = split_credentials("https://me:s%40cret@Example.org/a/b.git", None);
    assert_eq!(url, "https://Example.org/a/b.git");
    let credential = credential.unwrap();
    assert_eq!(credential.server, "https://example.org");
    assert_eq!(
        (credential.user.as_str(), credential.password.as_str()),
        ("me", "s@cret")
    );
    assert!(!format!("{credential:?}").contains("s@cret"));
}

#[test]
fn token_needs_its_server_and_https() {
    let token = Token::new("github.com", "t");
    let credential_for = |url: &str| split_credentials(url, Some(&token)).1;
    for url in [
        "https://github.com/a/b",
        "https://GitHub.com/a/b",
        "https://github.com:443/a/b",
    ] {
        assert_eq!(credential_for(url).unwrap().password, "t", "{url}");
    }
    for url in [
        "http://github.com/a/b",
        "https://evil.org/a/b",
        "https://github.com.evil.org/a/b",
        "https://evilgithub.com/a/b",
        "https://gist.github.com/a/b",
        "https://github.com:8443/a/b",
        "https://github.com./a/b",
        "https://evil.org/github.com/a",
        "https://evil.org?@github.com.evil.org/a",
        "https://evil.org#.github.com/a",
        "https://github.com\\.evil.org/a",
        "https://*.com/a/b",
        "git@github.com:a/b",
        "ssh://git@github.com/a/b",
        "file:///github.com/b",
        "git://github.com/a/b",
    ] {
        // The part in front of an `@` is a separate login.
        assert!(
            credential_for(url).is_none_or(|c| c.password != "t"),
            "{url}"
        );
    }
    assert!(!format!("{token:?}").contains("\"t\""));
}

/// Runs git itself, as it asks for a credential after a redirect.
#[test]
fn git_sends_login_only_to_its_server() {
    let token = Token::new("github.com", "tok%en$(date)'\"");
    let (_, credential) = split_credentials("https://github.com/a/b", Some(&token));
    let git = Git {
        directory: None,
        remote: Remote {
            protocols: "https".to_owned(),
            credential,
            ..Remote::default()
        },
    };
    let git_login = |protocol: &str, host: &str| {
        let mut command = git.network();
        command.args(["credential", "fill"]);
        let question = format!("protocol={protocol}\nhost={host}\n\n");
        let output = process::run(command, question.as_bytes(), &ProcessLimits::default()).unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let answer = git_login("https", "github.com");
    assert!(
        answer.contains("password=tok%en$(date)'\"\n")
            && answer.contains("username=x-access-token"),
        "{answer}"
    );
    for (protocol, host) in [
        ("https", "evil.org"),
        ("http", "github.com"),
        ("https", "github.com:8443"),
        ("https", "api.github.com"),
        ("https", "github.com.evil.org"),
        ("ssh", "github.com"),
    ] {
        let answer = git_login(protocol, host);
        assert!(!answer.contains("password"), "{protocol} {host}: {answer}");
    }
}

#[test]
fn only_git_protocols_are_allowed() {
    for address in [
        "https://github.com/a/b",
        "http://127.0.0.1:80/a",
        "ssh://git@host:22/a",
        "git@host:a/b",
        "file:///a/b",
        "git://host/a",
    ] {
        assert!(protocols(address).is_ok(), "{address}");
    }
    for address in [
        "ext::sh -c x",
        "ext::sh://",
        "fd::3://x",
        "evil://a/b",
        "HTTPS://a/b",
        "ssh://-oProxyCommand=x/a",
        "ssh://git@-oProxyCommand=x/a",
        "-oProxyCommand=x@host:a",
        "file://host/a",
        "https:///a",
        "https://host/a\nb",
    ] {
        assert!(protocols(address).is_err(), "{address}");
    }
}
