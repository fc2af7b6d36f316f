#![allow(clippy::unwrap_used)]
use std::path::Path;

use testwright_sandboxes::repository::{OpenOptions, open};

use super::*;

const OLD: &str = "import a\n\n\ndef test_one():\n    assert a\n";
const PATCH: &str = "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -3,3 +3,7 @@\n \n def test_one():\n     assert a\n\
                     +\n+\n+def test_new():\n+    assert a.b\n";

fn source(folder: &Path, name: &str, content: &str) -> Source {
    let root = folder.join(name);
    std::fs::create_dir_all(root.join("tests")).unwrap();
    std::fs::write(root.join("tests/test_a.py"), content).unwrap();
    let opened = open(
        root.to_str().unwrap(),
        None,
        &folder.join("cache"),
        &OpenOptions::default(),
    );
    opened.unwrap().source().unwrap()
}

#[test]
fn test_is_placed_beside_rewritten_file() {
    let folder = tempfile::tempdir().unwrap();
    let tree = |name: &str, content: &str| source(folder.path(), name, content).tree().unwrap();
    let base = source(folder.path(), "base", OLD);
    let id = "tests/test_a.py::test_new";
    let tests = BaseTests::new(&base, PATCH, [id]).unwrap().unwrap();
    let whole = tests.files["tests/test_a.py"].clone();

    let longer = tree("longer", &format!("# A comment.\n{OLD}"));
    let placed = tests.place(&longer).unwrap().unwrap();
    assert_eq!(placed.id(id), id);
    let content = placed.files["tests/test_a.py"].clone().unwrap().content;
    assert!(content.starts_with(b"# A comment.\nimport a\n"));

    let rewritten = tree("rewritten", "class TestOther:\n    pass\n");
    let placed = tests.place(&rewritten).unwrap().unwrap();
    let copy = "tests/test_testwright_history_a.py";
    assert_eq!(placed.id(id), format!("{copy}::test_new"));
    assert_eq!(placed.files[copy], whole);
    assert!(!placed.files.contains_key("tests/test_a.py"));

    // The repository has the test already.
    let text = String::from_utf8(whole.unwrap().content).unwrap();
    let placed = tests.place(&tree("merged", &text)).unwrap().unwrap();
    assert_eq!((placed.id(id), placed.files.len()), (id.to_owned(), 0));
}

#[test]
fn files_without_accepted_tests_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let base = source(folder.path(), "base", OLD);
    let id = "tests/test_a.py::test_new";
    let other = |name: &str| {
        let added = format!("--- /dev/null\n+++ b/tests/{name}\n@@ -0,0 +1 @@\n+X = 1\n");
        let patch = format!("{PATCH}{added}");
        let tests = BaseTests::new(&base, &patch, [id]).unwrap().unwrap();
        let tests_folder = folder.path().join(name).join("tests");
        std::fs::create_dir_all(&tests_folder).unwrap();
        std::fs::write(tests_folder.join(name), "X = 2\n").unwrap();
        let rewritten = source(folder.path(), name, "class TestOther:\n    pass\n");
        let placed = tests.place(&rewritten.tree().unwrap()).unwrap();
        placed.map(|placed| placed.files.into_keys().collect::<Vec<_>>())
    };
    let copy = "tests/test_testwright_history_a.py".to_owned();
    assert_eq!(other("test_b.py").unwrap(), [copy]);
    assert!(other("helpers.py").is_err());
}
