#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

#[test]
fn decorators_are_shortened_and_fixtures_listed() {
    let tests = b"@pytest.mark.parametrize(\n    ('a', \"b\"),\n    [(1, 2), (3, 4)],\n)\n@pytest.mark.parametrize('n, m', [(1, 'x')])\n@pytest.mark.parametrize(NAMES, VALUES)\ndef test_a(a, b): pass\n";
    let conftest = b"@pytest.fixture(scope='module')\ndef box():\n    \"\"\"A box.\n\n    More.\"\"\"\n\n@fixture\ndef plain(): pass\n\ndef no(): pass\n";
    let above =
        b"@fixture\ndef plain(): pass\n\n@fixture\ndef far():\n    r'''\n    Far away.\n    '''\n";
    let mut f = Fixture::new(&[
        ("tests/unit/test_a.py", tests),
        ("tests/conftest.py", conftest),
        ("conftest.py", above),
    ]);
    assert_eq!(
        f.text("outline", json!({"path": "tests/unit/test_a.py"})),
        "tests/unit/test_a.py, 7 lines\n1-7 @parametrize(a, b) @parametrize(n, m) @pytest.mark.parametrize(NAMES, VALUES) def test_a(a, b)\n\
             Fixtures from conftest.py:\n  box (tests/conftest.py:2): A box.\n  plain (tests/conftest.py:8)\n  far (conftest.py:5): Far away.\n"
    );
}

#[test]
fn nested_definitions_have_ranges() {
    let file = b"import a\n\n@deco(1)\nclass A(B):\n    @property\n    def f(self,\n          x=1):  # why\n        def inner(): pass\n\nif a:\n    async def g(): pass\n";
    let mut f = Fixture::new(&[("a.py", file), ("b.py", b"x = 1\n")]);
    assert_eq!(
        f.text("outline", json!({"path": "a.py"})),
        "a.py, 11 lines\n3-8 @deco(1) class A(B)\n  5-8 @property def f(self, x=1)\n11-11 async def g()\n"
    );
    f.shows(
        "outline",
        json!({"path": "a.py", "within": "A.f"}),
        "  8-8 def inner()",
    );
    assert_eq!(
        f.text("outline", json!({"path": "a.py", "name": "A.F"})),
        "a.py, 11 lines\n5-8 @property def A.f(self, x=1)\n8-8 def A.f.inner()\n"
    );
    assert_eq!(
        f.text("outline", json!({"path": "a.py", "name": "g"})),
        "a.py, 11 lines\n11-11 async def g()\n"
    );
    f.refuses(
        "outline",
        json!({"path": "a.py", "name": "zz"}),
        "defines no `zz`",
    );
    f.shows("outline", json!({"path": "b.py"}), "No classes");
    f.refuses("outline", json!({"path": "a.py", "within": "A.ff"}), "A.f");
}
