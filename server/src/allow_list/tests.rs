#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn unlisted_repository_is_refused() {
    let patterns = [DEFAULT.to_owned(), "/srv/git/*".to_owned()];
    let list = AllowList::new(&patterns, false).unwrap();
    for allowed in [
        "https://github.com/psf/requests",
        "https://github.com/psf/requests.git",
        "https://github.com/psf/requests/",
        "/srv/git/one",
    ] {
        list.check(allowed).unwrap();
    }
    for refused in [
        "http://github.com/psf/requests",
        "https://github.com.example.org/psf/requests",
        "https://github.com@127.0.0.1/psf/requests",
        "https://user:word@github.com/psf/requests",
        "https://github.com/../../etc",
        "https://github.com/psf/requests/../../..",
        "https://github.com/psf/%2e%2e",
        "https://127.0.0.1/psf/requests",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc",
        "ext::sh -c id",
        "/etc",
        "/srv/git/../../etc",
        "/srv/git/one/two",
        "srv/git/one",
        ".",
        "",
        "https://github.com/psf/requests\n",
    ] {
        assert!(list.check(refused).is_err(), "{refused}");
    }
}

#[test]
fn folder_links_are_resolved() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    for folder in ["allowed/own.git", "allowed/own/below", "elsewhere/secret"] {
        std::fs::create_dir_all(path(folder)).unwrap();
    }
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, path(name)).unwrap();
    link(&path("elsewhere/secret"), "allowed/out");
    link("../elsewhere", "allowed/group");
    link("own", "allowed/in");
    link("nowhere", "allowed/dangling");
    link("allowed", "named");
    let check = |pattern: String, repository: String| {
        let list = AllowList::new(&[pattern], false).unwrap();
        list.check(&repository)
    };
    for pattern in ["allowed/*", "named/*", "allowed/**"] {
        let top = pattern.split('/').next().unwrap();
        for before in ["", "file://"] {
            let checked = |name: &str| {
                let repository = format!("{before}{}", path(&format!("{top}/{name}")));
                check(format!("{before}{}", path(pattern)), repository)
            };
            for name in ["own", "own/", "own.git", "in", "not-here"] {
                checked(name).unwrap();
            }
            for name in ["out", "out/", "group", "group/secret", "dangling"] {
                let error = checked(name).unwrap_err();
                // The error must not reveal link targets.
                assert!(!error.with_cause().contains("elsewhere"), "{error:?}");
            }
        }
    }
    // The operator may allow a link.
    check(path("allowed/out"), path("allowed/out")).unwrap();
}
