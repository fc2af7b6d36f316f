//! A test that does nothing, in the place of one that is there: what runs with it runs for the sake of its file alone.

use testwright_tools::python::Module;

/// The file with this test (`Class::test_x` or `test_x`) emptied: no decorators, no fixtures, no body. `None` where there is
/// no such test.
pub fn empty_test(source: &str, test: &str) -> Option<String> {
    let module = Module::parse(source);
    let name = test.split('[').next().unwrap_or(test);
    // The last one of a name is the one that counts.
    let definition = module.find(name).pop()?;
    let mut emptied = source.to_owned();
    // Any arguments: as a function, as a method, and neither of them fixtures to pytest.
    let nothing = format!("def {}(*_): pass", definition.name);
    emptied.replace_range(definition.bytes, &nothing);
    Some(emptied)
}

#[cfg(test)]
mod tests {
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
    fn a_test_is_emptied_and_nothing_else() {
        let emptied = empty_test(FILE, "test_a[1]");
        let (before, _) = FILE.split_once("@pytest").unwrap_or_default();
        let (_, after) = FILE.split_once("assert x\n").unwrap_or_default();
        let expected = format!("{before}def test_a(*_): pass\n{after}");
        assert_eq!(emptied.as_deref(), Some(expected.as_str()));
        let emptied = empty_test(FILE, "TestB::test_c");
        assert!(emptied.is_some_and(|text| text.ends_with("\n    def test_c(*_): pass\n")));
        assert_eq!(empty_test(FILE, "test_none"), None);
    }
}
