use super::empty_test;

const FILE: &str = "\
import pytest

@pytest.mark.parametrize('x', [1, 2])
async def test_a(x, tmp_path):
    assert x

class TestB:
    def test_c(self):
        assert 1
";

#[test]
fn only_the_named_test_is_emptied() {
    let emptied = empty_test(FILE, "test_a[1]");
    let (before, _) = FILE.split_once("@pytest").unwrap_or_default();
    let (_, after) = FILE.split_once("assert x\n").unwrap_or_default();
    let expected = format!("{before}def test_a(*_): pass\n{after}");
    assert_eq!(emptied.as_deref(), Some(expected.as_str()));
    let emptied = empty_test(FILE, "TestB::test_c");
    assert!(emptied.is_some_and(|text| text.ends_with("\n    def test_c(*_): pass\n")));
    assert_eq!(empty_test(FILE, "test_none"), None);
}
