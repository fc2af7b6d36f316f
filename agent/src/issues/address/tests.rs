#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::*;

#[test]
fn api_server_is_clone_server() {
    for (url, server) in [
        ("https://github.com", "github.com"),
        ("https://api.github.com/", "github.com"),
        (
            "https://GitHub.example.org:8443/api/v3",
            "github.example.org:8443",
        ),
        (
            "https://me:secret@github.example.org/",
            "github.example.org",
        ),
        ("https://api.company.ghe.com", "company.ghe.com"),
    ] {
        assert_eq!(server_of(url), server, "{url}");
    }
}

fn parsed(url: &str, base: Option<&str>) -> (Vec<String>, String, u64) {
    let base = base.map(BaseUrl::new);
    let address = parse(url, base.as_ref()).unwrap().unwrap();
    (address.apis.clone(), address.repository(), address.number)
}

fn is(apis: &[&str], repository: &str, number: u64) -> (Vec<String>, String, u64) {
    (
        apis.iter().map(|&a| a.to_owned()).collect(),
        repository.to_owned(),
        number,
    )
}

#[test]
fn issue_addresses_are_parsed() {
    let github = is(
        &["https://api.github.com"],
        "https://github.com/psf/requests",
        1723,
    );
    for url in [
        "https://github.com/psf/requests/issues/1723",
        "https://github.com/psf/requests/issues/1723#issuecomment-5",
        "https://github.com/psf/requests/issues/1723/?x=y",
        "https://www.github.com/psf/requests/issues/1723",
        "http://GitHub.com/psf/requests/issues/1723",
        "github.com/psf/requests/issues/1723",
        "https://api.github.com/repos/psf/requests/issues/1723",
    ] {
        assert_eq!(parsed(url, None), github, "{url}");
    }
    let enterprise = "https://github.example.org/o/r/issues/7";
    assert_eq!(
        parsed(enterprise, Some("https://github.example.org/")),
        is(
            &[
                "https://github.example.org/api/v3",
                "https://github.example.org"
            ],
            "https://github.example.org/o/r",
            7
        )
    );
    assert_eq!(
        parsed(enterprise, Some("https://github.example.org/api/v3/")).0,
        ["https://github.example.org/api/v3"]
    );
    for (url, base) in [
        (
            "https://company.ghe.com/o/r/issues/7",
            "https://company.ghe.com/",
        ),
        (
            "https://company.ghe.com/o/r/issues/7",
            "https://api.company.ghe.com",
        ),
        (
            "https://api.company.ghe.com/repos/o/r/issues/7",
            "https://company.ghe.com",
        ),
    ] {
        let api = ["https://api.company.ghe.com"];
        let expected = is(&api, "https://company.ghe.com/o/r", 7);
        assert_eq!(parsed(url, Some(base)), expected, "{url} {base}");
    }
    // The server stands in for github.com.
    assert_eq!(
        parsed(
            "https://github.com/o/r/issues/7",
            Some("http://127.0.0.1:8000/api")
        ),
        is(&["http://127.0.0.1:8000/api"], "https://github.com/o/r", 7)
    );
    for file in ["issue.md", "-", "C:/issue.md", "github.company/issue.md"] {
        assert_eq!(parse(file, None).unwrap(), None);
    }
}

#[test]
fn forge_follows_from_address() {
    for (url, forge, api, page) in [
        (
            "https://gitlab.com/group/sub/slugs/-/issues/7#note_1",
            Forge::GitLab,
            "https://gitlab.com/api/v4",
            "https://gitlab.com/group/sub/slugs/-/issues/7",
        ),
        (
            "https://git.example.org/acme/slugs/-/work_items/7",
            Forge::GitLab,
            "https://git.example.org/api/v4",
            "https://git.example.org/acme/slugs/-/issues/7",
        ),
        (
            "https://codeberg.org/acme/slugs/issues/7",
            Forge::Gitea,
            "https://codeberg.org/api/v1",
            "https://codeberg.org/acme/slugs/issues/7",
        ),
        (
            "https://bitbucket.org/acme/slugs/issues/7/it-fails",
            Forge::Bitbucket,
            "https://api.bitbucket.org/2.0",
            "https://bitbucket.org/acme/slugs/issues/7",
        ),
    ] {
        let address = parse(url, None).unwrap().unwrap();
        let parsed = (address.forge, address.api(), address.page());
        assert_eq!(parsed, (forge, api, page.to_owned()), "{url}");
    }
    for url in [
        "https://gitlab.com/acme/slugs/-/merge_requests/7",
        "https://codeberg.org/acme/slugs/pulls/7",
        "https://codeberg.org/slugs/issues/7",
        "https://codeberg.org/acme/slugs/issues/new",
        "https://gitlab.com/acme/../-/issues/7",
        "https://example.org/",
    ] {
        assert!(parse(url, None).is_err(), "{url}");
    }
}

#[test]
fn other_addresses_are_refused() {
    let refused = |url: &str, base: Option<&str>| {
        let error = parse_github(url, base.map(BaseUrl::new).as_ref()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.render()
    };
    insta::assert_snapshot!(refused("https://github.com/psf/requests/pull/5", None), @r"
    error: failed to read the issue at https://github.com/psf/requests/pull/5
      cause: it is a pull request, not an issue
      hint: give the issue that the pull request is about
    ");
    insta::assert_snapshot!(refused("https://github.com/psf/requests", None), @r"
    error: failed to read the issue at https://github.com/psf/requests
      cause: it is not the address of an issue
      hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
    ");
    insta::assert_snapshot!(refused("https://github.com/psf/requests/issues", None), @r"
    error: failed to read the issue at https://github.com/psf/requests/issues
      cause: it is not the address of an issue
      hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
    ");
    insta::assert_snapshot!(refused("https://github.com/a/b/issues/new", None), @r"
    error: failed to read the issue at https://github.com/a/b/issues/new
      cause: it is not the address of an issue
      hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
    ");
    insta::assert_snapshot!(refused("https://gitlab.example.org/o/r/issues/5", None), @r"
    error: failed to read the issue at https://gitlab.example.org/o/r/issues/5
      cause: gitlab.example.org is not github.com
      hint: for GitHub Enterprise set TESTWRIGHT_GITHUB_BASE_URL=https://gitlab.example.org
    ");
    insta::assert_snapshot!(refused("https://u:pw@gitlab.example.org/o/r/issues/5", Some("https://github.example.org")), @r"
    error: failed to read the issue at https://…@gitlab.example.org/o/r/issues/5
      cause: gitlab.example.org is neither github.com nor github.example.org, the server in github.base-url
      hint: set TESTWRIGHT_GITHUB_BASE_URL to the server of the issue
    ");
    insta::assert_snapshot!(refused("file:///etc/passwd", None), @r"
    error: failed to read the issue at file:///etc/passwd
      cause: `file:` is not an address of an issue
      hint: use an address such as https://github.com/OWNER/NAME/issues/NUMBER, a file, or `-`
    ");
    insta::assert_snapshot!(refused("https://github.com/a/../issues/5", None), @r"
    error: failed to read the issue at https://github.com/a/../issues/5
      cause: `..` cannot be part of a repository's name
      hint: use the address of an issue, such as https://github.com/OWNER/NAME/issues/NUMBER
    ");
}
