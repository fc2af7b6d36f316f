#![allow(clippy::unwrap_used)]
use super::*;
use crate::error::ErrorKind;

#[test]
fn embedded_private_addresses_are_detected() {
    for address in [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:1::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
    for address in ["151.101.0.223", "2a04:4e42::223", "64:ff9b::9765:df"] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn apt_sources_in_both_formats_parse() {
    let text = "# deb http://old.example.org/debian x main\ndeb [signed-by=/k] http://deb.debian.org/debian bookworm main\n\
                Types: deb\nURIs: https://security.debian.org/debian-security\nSigned-By: /usr/share/keyrings/x.gpg\n";
    let expected = ["deb.debian.org", "security.debian.org"];
    let expected: Vec<Host> = expected.iter().map(|h| Host::parse(h).unwrap()).collect();
    assert_eq!(Host::in_apt_sources(text), expected);
}

#[test]
fn hosts_match_by_name_and_port() {
    let matches =
        |pattern: &str, host: &str, port| Host::parse(pattern).unwrap().matches(host, port);
    assert!(matches("github.com", "GitHub.com.", 443));
    assert!(!matches("github.com", "github.com", 22));
    assert!(!matches("github.com", "evilgithub.com", 443));
    assert!(matches("*.example.org", "a.b.example.org", 80));
    assert!(!matches("*.example.org", "example.org", 80));
    assert!(!matches("*.example.org", "evilexample.org", 80));
    assert!(matches("git.example.org:8443", "git.example.org", 8443));
    assert!(!matches("git.example.org:8443", "git.example.org", 443));
    for wrong in ["", "https://github.com", "a b", "*", "a/b", "host:port"] {
        assert_eq!(
            Host::parse(wrong).unwrap_err().kind,
            ErrorKind::Input,
            "{wrong}"
        );
    }
}
