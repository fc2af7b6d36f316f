#![allow(clippy::unwrap_used)]

use std::fs;

use super::*;
use crate::testing::Fixture;

const EMPTY: &[u8] = b"";

/// Returns the modules that the new files would replace.
fn found(base: &[&str], new: &[&str]) -> Vec<(String, String)> {
    let base: Vec<(&str, &[u8])> = base.iter().map(|path| (*path, EMPTY)).collect();
    let mut f = Fixture::new(&base);
    for path in new {
        let path = f.workspace.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let changes = f.workspace.changes().unwrap();
    shadows(&f.workspace, &changes)
        .unwrap()
        .into_iter()
        .collect()
}

#[test]
fn modules_that_shadow_others_are_found() {
    let base = [
        "src/slugs/__init__.py",
        "six.py",
        "src/spaces/a.py",
        "tests/test_a.py",
    ];
    for (new, name) in [
        ("tests/slugs.py", "slugs"),
        ("tests/slugs/__init__.py", "slugs"),
        ("tests/slugs.cpython-311-x86_64-linux-gnu.so", "slugs"),
        ("tests/spaces/__init__.py", "spaces"),
        ("tests/six.py", "six"),
        ("tests/json.py", "json"),
        ("tests/_socket.py", "_socket"),
    ] {
        assert_eq!(found(&base, &[new]), [(new.to_owned(), name.to_owned())]);
    }
    let both = ["tests/deep/test_b.py", "tests/deep/slugs.py"];
    assert_eq!(
        found(&base, &both).len(),
        1,
        "its own new test file makes it importable"
    );
    for new in [
        "tests/helpers.py",
        "tests/__init__.py",
        "tests/conftest.py",
        "tests/slugs/data.json",
        "tests/test_b.py",
        // This folder has no tests, so it is not searched for modules.
        "tests/data/slugs.py",
    ] {
        assert!(found(&base, &[new]).is_empty(), "{new}");
    }
}

#[test]
fn package_modules_do_not_shadow() {
    let base = [
        "slugs/__init__.py",
        "slugs/tests/__init__.py",
        "slugs/tests/test_a.py",
    ];
    for new in ["slugs/tests/json.py", "slugs/tests/slugs/__init__.py"] {
        assert!(found(&base, &[new]).is_empty(), "{new}");
    }
    // Modules that were importable from there stay importable.
    let base = ["slugs.py", "tests/json/__init__.py", "tests/test_a.py"];
    assert!(found(&base, &["tests/json/more.py"]).is_empty());
    assert!(found(&base, &["test/__init__.py", "test/test_b.py"]).is_empty());
}
