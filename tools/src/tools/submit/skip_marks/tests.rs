#![allow(clippy::unwrap_used)]
use super::*;
use crate::python::contributed;
use crate::workspace::Layout;

fn found(before: Option<&str>, after: &str) -> Vec<String> {
    let path = "tests/test_a.py";
    let tests = contributed(path, before, after, &Layout::default());
    let base = before.map(Module::parse);
    in_file(path, base.as_ref(), &Module::parse(after), &tests)
}

#[test]
fn marks_and_calls_are_found() {
    for code in [
        "@pytest.mark.skip\ndef test_a(): pass\n",
        "@pytest.mark.xfail(reason='x')\ndef test_a(): pass\n",
        "def test_a():\n    pytest.skip('x')\n",
        "class TestA:\n    def test_a(self):\n        self.skipTest('x')\n",
        "if True:\n    def test_a():\n        pytest.skip('x')\n",
        "def test_a(x):\n    if x:\n        pytest.xfail('x')\n",
        "@unittest.skip('x')\nclass TestA:\n    def test_a(self): pass\n",
        "@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.xfail)])\ndef test_a(a): pass\n",
        "pytestmark = [pytest.mark.skip]\ndef test_a(): pass\n",
        "def test_a(request):\n    request.node.add_marker(pytest.mark.xfail)\n    assert 0\n",
        "def test_a(request):\n    request.applymarker(pytest.mark.xfail)\n    assert 0\n",
    ] {
        assert_eq!(
            found(None, code).len(),
            1,
            "{code}: {:?}",
            found(None, code)
        );
    }
}

#[test]
fn existing_and_conditional_marks_are_allowed() {
    let before = "@pytest.mark.xfail\ndef test_a(): assert 1\n";
    assert!(found(Some(before), &before.replace("assert 1", "assert 2")).is_empty());
    for code in [
        "def test_a(testdir):\n    testdir.makepyfile('''@pytest.mark.skip\ndef test_b(): pytest.skip()''')\n",
        "@pytest.mark.skipif(True, reason='')\ndef test_a(): pass\n",
        "def test_a(skip): XFAIL = 1\n",
        "def test_a():\n    xfail = pytest.mark.xfail\n    @xfail('a')\n    class A: pass\n    assert marks(A)\n",
        "def test_a():\n    @pytest.mark.skip\n    def f(): pass\n    assert marks(f)\n",
        "@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.skip)])\ndef test_a(a): pass\n",
        "def test_a(dask):\n    if dask and not has_dask:\n        pytest.skip('requires dask')\n    assert 0\n",
    ] {
        assert!(
            found(None, code).is_empty(),
            "{code}: {:?}",
            found(None, code)
        );
    }
}
