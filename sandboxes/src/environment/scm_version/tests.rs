use super::*;

#[test]
fn next_version_matches_setuptools_scm() {
    for (describe, version) in [
        ("v1.2.3", Some("1.2.3")),
        ("v0.16.0-27-g98dc1f4ea", Some("0.16.1.dev27")),
        ("6.0.0rc1-51-g41d211c24", Some("6.0.0rc2.dev51")),
        ("7.2.0.dev0-157-gaa55975c7", Some("7.2.0.dev157")),
        ("sympy-1.6-10004-gb1cb676cf9", Some("1.7.dev10004")),
        ("v2022.06.0-78-g45c0a114e", Some("2022.06.1.dev78")),
        ("release-1-final", None),
        ("nothing", None),
    ] {
        assert_eq!(guess_next(describe).as_deref(), version, "{describe}");
    }
}

#[test]
fn changelog_headings_give_version() {
    for (text, version) in [
        (
            "# Changes\n\n## Unreleased\n\n## [1.10.2] - 2024-01-01\n\n## [1.9.0]\n",
            Some("1.10.2"),
        ),
        (
            "History\n=======\n\nv0.3 (2020-01-01)\n---\n0.10.1\n-----\n",
            Some("0.10.1"),
        ),
        ("Version 2.0.0rc1\n----\n", Some("2.0.0")),
        ("click 8.1\n", Some("8.1")),
        ("Since 2024-05-01 we support 3 things\n", None),
        ("", None),
    ] {
        assert_eq!(highest_heading(text).as_deref(), version, "{text}");
    }
}

#[test]
fn missing_versions_are_recognized() {
    for output in [
        "LookupError: setuptools-scm was unable to detect version for /testbed.",
        "ValueError: Cannot find the version from SCM or SCM isn't detected.",
        "versioningit.errors.NotVCSError: '/testbed' is not in a Git repository",
        "Error getting the version from source `versioningit`: NotSdistError: /testbed does not contain a PKG-INFO file",
        "RuntimeError: This does not appear to be a Git project; version from tags",
        "fatal: not a git repository (or any of the parent directories): .git",
    ] {
        assert!(lacks_version(output), "{output}");
    }
    assert!(!lacks_version("error: command 'gcc' failed: No such file"));
}
