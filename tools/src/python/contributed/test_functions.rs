//! The tests of one file, with their positions in the text.

use std::collections::BTreeMap;
use std::ops::Range;

use super::test_file::TestFile;
use crate::python::Module;
use crate::workspace::Layout;

/// A test function or method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFunction {
    /// `Class::function`, without the file. If several classes inherit a method, the first of them.
    pub id: String,
    /// Whether the class in the id defines the function itself.
    pub is_own: bool,
    /// Byte range of the definition that runs, decorators included.
    pub bytes: Range<usize>,
    /// Byte ranges of earlier definitions of the same name, which never run.
    pub replaced: Vec<Range<usize>>,
}

/// Returns all tests that pytest would collect, one for each function of the text, in order.
pub fn test_functions(module: &Module, layout: &Layout) -> Vec<TestFunction> {
    let file = TestFile::read(module, layout);
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    for test in &file.tests {
        let id = ids.entry(&test.unit).or_insert(&test.id);
        if is_own(&test.id, &test.unit) {
            *id = &test.id;
        }
    }
    let functions = ids.into_iter().filter_map(|(unit, id)| {
        let (last, replaced) = file.units.get(unit)?.spans.split_last()?;
        Some(TestFunction {
            id: id.to_owned(),
            is_own: is_own(id, unit),
            bytes: last.clone(),
            replaced: replaced.to_vec(),
        })
    });
    let mut functions: Vec<TestFunction> = functions.collect();
    functions.sort_by_key(|test| test.bytes.start);
    functions
}

fn is_own(id: &str, unit: &str) -> bool {
    id.replace("::", ".") == unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_one_test() {
        let text = "\
import pytest

@pytest.mark.parametrize('x', [1])
def test_a(x): pass

def helper(): pass

class Mixin:
    def test_m(self): pass

class TestA(Mixin):
    async def test_b(self): pass

class TestB(TestA):
    pass

def test_a(x):
    assert x
";
        let module = Module::parse(text);
        let tests = test_functions(&module, &Layout::default());
        let summaries: Vec<(&str, bool, usize)> = tests
            .iter()
            .map(|test| (test.id.as_str(), test.is_own, test.replaced.len()))
            .collect();
        assert_eq!(
            summaries,
            [
                ("TestA::test_m", false, 0),
                ("TestA::test_b", true, 0),
                ("test_a", true, 1)
            ]
        );
        assert!(text[tests[2].bytes.clone()].ends_with("assert x"));
    }
}
