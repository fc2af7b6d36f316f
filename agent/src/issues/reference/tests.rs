#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn short_names_follow_remote() {
    let github = "https://github.com/acme/slugs/issues/12";
    for (text, remote, page) in [
        ("12", Some("https://github.com/acme/slugs.git"), github),
        ("#12", Some("git@github.com:acme/slugs.git"), github),
        ("#12", Some("ssh://git@github.com:22/acme/slugs"), github),
        (
            "12",
            Some("ssh://git@ssh.github.com:443/acme/slugs.git"),
            github,
        ),
        (
            "12",
            Some("ssh://git@altssh.gitlab.com:443/acme/slugs.git"),
            "https://gitlab.com/acme/slugs/-/issues/12",
        ),
        ("acme/slugs#12", None, github),
        ("acme/slugs#12", Some("/srv/git/words"), github),
        (
            "#12",
            Some("https://me:secret@gitlab.com/group/sub/slugs.git"),
            "https://gitlab.com/group/sub/slugs/-/issues/12",
        ),
        (
            "acme/words#12",
            Some("git@codeberg.org:acme/slugs.git"),
            "https://codeberg.org/acme/words/issues/12",
        ),
    ] {
        assert_eq!(page_of(text, remote).unwrap().as_deref(), Some(page));
    }
    for remote in [None, Some("/srv/git/slugs"), Some("file:///srv/git/slugs")] {
        assert!(page_of("#12", remote).is_err(), "{remote:?}");
    }
    for text in ["issue.md", "#", "12a", "slugs#12", "/slugs#12", "a b"] {
        assert_eq!(page_of(text, None).unwrap(), None, "{text}");
    }
}
#[test]
fn github_repository_needs_github_remote() {
    let enterprise = BaseUrl::new("https://github.example.org/api/v3");
    let api = BaseUrl::new("https://api.github.com");
    for (remote, base, expected) in [
        (
            "https://github.com/acme/slugs.git",
            None,
            Some("acme/slugs"),
        ),
        ("git@github.com:acme/slugs", None, Some("acme/slugs")),
        ("git@github.com:acme/slugs", Some(&api), Some("acme/slugs")),
        (
            "ssh://git@ssh.github.com:443/acme/slugs.git",
            None,
            Some("acme/slugs"),
        ),
        (
            "ssh://git@github.example.org:2222/acme/slugs",
            Some(&enterprise),
            Some("acme/slugs"),
        ),
        ("git@github.com:acme/slugs", Some(&enterprise), None),
        ("git@gitlab.com:acme/slugs.git", None, None),
        ("https://github.com/acme", None, None),
        ("https://github.com/acme/slugs/issues", None, None),
        ("/srv/git/acme/slugs", None, None),
    ] {
        let name = github_repository(remote, base);
        assert_eq!(name.as_deref(), expected, "{remote}");
    }
}
