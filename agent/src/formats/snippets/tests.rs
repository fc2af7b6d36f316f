#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use super::*;

fn old() -> BTreeMap<String, String> {
    let text = "import x\n\n\nclass TestX:\n    def test_a(self):\n        assert x.a() == 1\n";
    BTreeMap::from([("tests/test_x.py".to_owned(), text.to_owned())])
}

fn file(reply: &str, path: &str) -> String {
    read(reply, &old()).unwrap().files[path].clone().unwrap()
}

#[test]
fn pieces_are_replaced_anywhere() {
    let reply = "Here:\n```\n# modification 1\n<file>./tests/test_x.py</file>\n<original>        assert x.a() == 1</original>\n\
                 <patched>        assert x.a() == 1\n\n    def test_b(self):\n        assert x.b() == 2</patched>\n```\n";
    assert!(
        file(reply, "tests/test_x.py")
            .ends_with("== 1\n\n    def test_b(self):\n        assert x.b() == 2\n")
    );
    // Different indentation, in a file given by the end of its path.
    let reply = "<file>test_x.py</file>\n<original>\ndef test_a(self):\n    assert x.a() == 1\n</original>\n\
                 <patched>\ndef test_a(self):\n    assert x.a() == 2\n</patched>";
    let proposed = read(reply, &old()).unwrap();
    assert!(
        proposed.files["tests/test_x.py"]
            .as_deref()
            .unwrap()
            .ends_with("    def test_a(self):\n        assert x.a() == 2\n")
    );
    assert_eq!(proposed.repairs.len(), 2);
}

#[test]
fn line_ends_of_file_stay() {
    let old = old()["tests/test_x.py"].replace('\n', "\r\n");
    let old = BTreeMap::from([("tests/test_x.py".to_owned(), old)]);
    let reply = "<file>tests/test_x.py</file>\n<original>\nimport x\n</original>\n<patched>\nimport x\nimport y\n</patched>";
    let proposed = read(reply, &old).unwrap();
    let text = proposed.files["tests/test_x.py"].as_deref().unwrap();
    assert_eq!(
        text,
        old["tests/test_x.py"].replace("import x\r\n", "import x\r\nimport y\r\n")
    );
}

#[test]
fn spaces_become_tabs_of_file() {
    let old = old()["tests/test_x.py"].replace("    ", "\t");
    let old = BTreeMap::from([("tests/test_x.py".to_owned(), old)]);
    let reply = "<file>tests/test_x.py</file>\n<original>\n    def test_a(self):\n        assert x.a() == 1\n</original>\n\
                 <patched>\n    def test_a(self):\n        if x:\n            assert x.a() == 2\n</patched>";
    let proposed = read(reply, &old).unwrap();
    let text = proposed.files["tests/test_x.py"].as_deref().unwrap();
    assert!(
        text.ends_with("\tdef test_a(self):\n\t\tif x:\n\t\t\tassert x.a() == 2\n"),
        "{text}"
    );
}

#[test]
fn missing_original_adds_text() {
    let new = "<file>tests/test_y.py</file><original></original><patched>\ndef test_y():\n    pass\n</patched>";
    assert_eq!(file(new, "tests/test_y.py"), "def test_y():\n    pass\n");
    let more = "<file>tests/test_x.py</file>\n<patched>\ndef test_y():\n    pass\n</patched>";
    assert!(file(more, "tests/test_x.py").ends_with("== 1\n\n\ndef test_y():\n    pass\n"));
}

#[test]
fn errors_give_the_reason() {
    let error = |reply: &str| read(reply, &old()).unwrap_err().0;
    assert_eq!(error("No."), "the reply contains no <file>");
    assert!(error("<file>tests/test_x.py</file>").contains("no <patched>"));
    let absent = "<file>tests/test_x.py</file><original>y = 1</original><patched>y = 2</patched>";
    assert_eq!(
        error(absent),
        "the <original> is not in `tests/test_x.py`: y = 1"
    );
    assert!(
        error("<file>../x</file><patched>1</patched>").contains("not a path in the repository")
    );
}
