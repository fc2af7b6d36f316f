#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn release_names_are_parsed() {
    for (tag, prefix, text) in [
        ("v2.3.0", "", "2.3.0"),
        ("1.0", "", "1.0"),
        ("release-1.0.1", "", "1.0.1"),
        ("REL_1_4_2", "", "1_4_2"),
        ("releases/v7", "", "7"),
        ("pkg-core-1.0", "pkg-core", "1.0"),
    ] {
        let version = Version::parse(tag).unwrap();
        assert_eq!((&*version.prefix, &*version.text), (prefix, text), "{tag}");
        assert!(!version.is_pre_release(), "{tag}");
    }
    for tag in ["latest", "py3", "before-2.0-rewrite", "1.0-something"] {
        assert_eq!(Version::parse(tag), None, "{tag}");
    }
}

#[test]
fn versions_are_ordered_like_pep440() {
    let order = [
        "1.9",
        "1.10.0.dev1",
        "1.10a2",
        "1.10.0b1",
        "v1.10rc1",
        "1.10.0",
        "1.10.post1",
        "1.10.1",
        "2.0",
    ];
    let versions = order.map(|tag| Version::parse(tag).unwrap());
    assert!(versions.is_sorted(), "{versions:?}");
    let early: Vec<bool> = versions.iter().map(Version::is_pre_release).collect();
    let expected = [1, 2, 3, 4].map(|at| early[at]);
    assert!(expected.iter().all(|early| *early), "{early:?}");
    assert_eq!(early.iter().filter(|early| **early).count(), 4);
    let equal = [Version::parse("1.0"), Version::parse("v1.0.0")].map(Option::unwrap);
    assert_eq!(equal[0].cmp(&equal[1]), Ordering::Equal);
}
