#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::Fixture;

#[test]
fn executed_files_and_siblings_get_placebo() {
    let code = b"def half(n):\n    return n // 2\n";
    let fixture = Fixture::new(&[
        ("pkg/a.py", code),
        ("pkg/beside.py", code),
        ("pkg/conftest.py", code),
        ("pkg/latin.py", b"# coding: latin-1\nX = '\xe4'\n"),
        ("pkg/data.txt", b"1"),
        ("pkg/sub/c.py", code),
        ("tests/test_a.py", code),
    ]);
    let executed = ["pkg/a.py", "pkg/latin.py"].map(str::to_owned);
    let files = placebo_files(&fixture.workspace, &executed, 1);
    let paths: Vec<&str> = files.iter().filter_map(|file| file.path.to_str()).collect();
    assert_eq!(paths, ["pkg/a.py", "pkg/beside.py"]);
    assert_eq!(files[0].original, code);
}

#[test]
fn only_own_bytecode_is_removed() {
    let fixture = Fixture::new(&[("pkg/a.py", b"X = 1\n")]);
    let root = fixture.workspace.root();
    let cache = root.join("pkg/__pycache__");
    fs::create_dir(&cache).unwrap();
    for name in ["a.cpython-311.pyc", "a.cpython-311.opt-1.pyc", "ab.pyc"] {
        fs::write(cache.join(name), "stale").unwrap();
    }
    remove_bytecode(root, Path::new("pkg/a.py"));
    let left: Vec<_> = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["ab.pyc"]);
}

#[test]
fn files_become_an_hour_older() {
    let fixture = Fixture::new(&[("pkg/a.py", b"X = 1\n")]);
    let (path, before) = make_older(&fixture.workspace, "pkg/a.py").unwrap();
    let modified = || fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(before.duration_since(modified()).unwrap(), EXTRA_AGE);
    assert!(set_modified(&path, before));
    assert_eq!(modified(), before);
    assert_eq!(make_older(&fixture.workspace, "../outside.py"), None);
    assert_eq!(make_older(&fixture.workspace, "pkg/none.py"), None);
}
