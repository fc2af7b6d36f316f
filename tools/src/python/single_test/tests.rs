#![allow(clippy::unwrap_used)]
use super::*;
use crate::python::test_functions;
use crate::workspace::Layout;

const FILE: &str = "\
import pytest

LIMIT = 3


@pytest.fixture
def box():
    return LIMIT


def test_a(box):
    # First.
    assert box


class TestOther:
    \"\"\"Others.\"\"\"

    def test_b(self):
        pass

    def test_c(self): pass


class TestKept:
    size = 1

    @pytest.mark.asyncio
    async def test_d(
        self,
    ):  # slow
        x = 1
        assert x

    def test_e(self): assert self.size


if LIMIT:
    def test_f():
        pass


def late():
    return LIMIT
";

fn kept(id: &str) -> SingleTest {
    let module = Module::parse(FILE);
    let tests = test_functions(&module, &Layout::default());
    let keep = tests.iter().position(|test| test.id == id).unwrap();
    single_test(&module, &tests, keep).unwrap()
}

#[test]
fn other_tests_are_removed() {
    let test = kept("TestKept::test_d");
    assert_eq!(
        test.header,
        "    @pytest.mark.asyncio\n    async def test_d(\n        self,\n    ):  # slow\n"
    );
    assert_eq!(test.body, "        x = 1\n        assert x\n");
    assert_eq!(test.indent, "        ");
    let text = test.text();
    for removed_text in ["test_a", "TestOther", "test_b", "test_e"] {
        assert!(!text.contains(removed_text), "{removed_text}: {text}");
    }
    for stays in ["def box", "size = 1", "if LIMIT:\n    pass\n", "def late"] {
        assert!(text.contains(stays), "{stays}: {text}");
    }
    // The surrounding empty lines are removed too.
    assert!(!text.contains("\n\n\n\n"), "{text}");
    assert!(Module::parse(text).errors().is_empty());
}

#[test]
fn all_tests_can_be_removed() {
    let module = Module::parse(FILE);
    let tests = test_functions(&module, &Layout::default());
    let text = without_tests(&module, &tests);
    for removed_text in ["test_", "TestOther", "assert", "x = 1"] {
        assert!(!text.contains(removed_text), "{removed_text}: {text}");
    }
    for stays in ["def box", "class TestKept:\n    size = 1\n", "def late"] {
        assert!(text.contains(stays), "{stays}: {text}");
    }
    // The surrounding empty lines are removed too.
    assert!(!text.contains("\n\n\n\n"), "{text}");
    assert!(Module::parse(text).errors().is_empty());
}

#[test]
fn body_on_header_line_is_split() {
    let test = kept("TestKept::test_e");
    assert_eq!(test.header, "    def test_e(self):");
    assert_eq!(test.body, " assert self.size\n");
    assert!(
        test.text()
            .contains("    def test_e(self): assert self.size\n")
    );
    let first = kept("test_a");
    assert_eq!(first.body, "    # First.\n    assert box\n");
}

#[test]
fn referenced_class_is_kept() {
    let text = "class TestA:\n    def test_x(self): pass\n\nclass TestB(TestA):\n    def test_y(self): pass\n";
    let module = Module::parse(text);
    let tests = test_functions(&module, &Layout::default());
    let test = single_test(&module, &tests, 1).unwrap();
    assert_eq!(
        test.text(),
        "class TestA:\n    pass\n\nclass TestB(TestA):\n    def test_y(self): pass\n"
    );
}
