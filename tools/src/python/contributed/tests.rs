#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn changed(before: &str, after: &str) -> Vec<String> {
    contributed("tests/test_a.py", Some(before), after, &Layout::default())
        .into_iter()
        .map(|t| {
            let sign = match t.change {
                Change::Added => '+',
                Change::Modified => '~',
                Change::Deleted => '-',
            };
            format!("{sign}{}", t.id.strip_prefix("tests/test_a.py::").unwrap())
        })
        .collect()
}

const FILE: &str = "\
import pytest
from pkg import a, b

DATA = [1, 2]
OTHER = {'x': 1}

@pytest.fixture
def thing():
    return a(helper())

def helper():
    return 1

def test_one(thing):
    assert thing

@pytest.mark.parametrize('n', DATA)
def test_two(n):
    assert b(n)

class TestBox:
    size = 3

    def setup_method(self):
        self.box = 1

    def test_in(self):
        assert self.box == self.size

    class TestInner:
        def test_deep(self):
            assert OTHER

class Plain:
    def test_not_collected(self):
        pass
";

fn edit(from: &str, to: &str) -> Vec<String> {
    assert!(FILE.contains(from), "{from}");
    changed(FILE, &FILE.replacen(from, to, 1))
}

#[test]
fn cosmetic_changes_contribute_nothing() {
    assert!(changed(FILE, FILE).is_empty());
    assert!(
        edit(
            "    assert thing\n",
            "    # why\n\n    assert thing  # so\n"
        )
        .is_empty()
    );
    assert!(
        edit(
            "    assert thing\n",
            "    \"\"\"Docs.\"\"\"\n    assert thing\n"
        )
        .is_empty()
    );
    assert!(edit("{'x': 1}", "{\n    \"x\": 1,\n}").is_empty());
    assert!(edit("import a, b", "import (\n    b,\n    a,\n)").is_empty());
    assert!(
        edit(
            "    def test_not_collected(self):\n        pass",
            "    def test_not_collected(self):\n        1"
        )
        .is_empty()
    );
}

#[test]
fn own_code_changes_count() {
    assert_eq!(
        edit("    assert thing\n", "    assert not thing\n"),
        ["~test_one"]
    );
    assert_eq!(edit("'n', DATA", "'n', DATA + [3]"), ["~test_two"]);
    assert_eq!(
        edit("def test_two", "@pytest.mark.slow\ndef test_two"),
        ["~test_two"]
    );
    assert_eq!(edit("test_one(thing)", "test_one()"), ["~test_one"]);
    assert_eq!(
        edit("assert OTHER", "assert not OTHER"),
        ["~TestBox::TestInner::test_deep"]
    );
}

#[test]
fn block_ends_count() {
    let before = "def test_a():\n    for x in y:\n        f(x)\n        g(x)\n";
    let after = "def test_a():\n    for x in y:\n        f(x)\n    g(x)\n";
    assert_eq!(changed(before, after), ["~test_a"]);
}

#[test]
fn one_element_tuple_is_not_a_number() {
    assert_eq!(
        changed(
            "def test_a():\n    f((1))\n",
            "def test_a():\n    f((1,))\n"
        ),
        ["~test_a"]
    );
}

#[test]
fn changes_in_used_code_count() {
    assert_eq!(edit("return 1", "return 2"), ["~test_one"]);
    assert_eq!(edit("DATA = [1, 2]", "DATA = [1]"), ["~test_two"]);
    assert_eq!(edit("import a, b", "import a, c as b"), ["~test_two"]);
    assert_eq!(edit("size = 3", "size = 4"), ["~TestBox::test_in"]);
    assert_eq!(edit("self.box = 1", "self.box = 2"), ["~TestBox::test_in"]);
    assert_eq!(
        edit("{'x': 1}", "{'x': 2}"),
        ["~TestBox::TestInner::test_deep"]
    );
    let class = edit("class TestBox:", "@pytest.mark.slow\nclass TestBox:");
    assert_eq!(
        class,
        ["~TestBox::test_in", "~TestBox::TestInner::test_deep"]
    );
    let mark = edit("DATA =", "pytestmark = pytest.mark.slow\nDATA =");
    assert_eq!(mark.len(), 4);
    let auto = edit("@pytest.fixture\n", "@pytest.fixture(autouse=True)\n");
    assert_eq!(auto.len(), 4);
}

#[test]
fn added_and_deleted_tests_are_contributed() {
    assert_eq!(
        edit("def test_two", "def test_three"),
        ["+test_three", "-test_two"]
    );
    assert_eq!(
        edit("class TestInner", "class Inner"),
        ["-TestBox::TestInner::test_deep"]
    );
    let new = contributed("tests/test_a.py", None, FILE, &Layout::default());
    assert_eq!(new.len(), 4);
    assert_eq!(new[1].line, 17);
    assert!(new[1].source.starts_with("@pytest.mark.parametrize"));
    assert_eq!(
        new[2].source,
        "def test_in(self):\n    assert self.box == self.size\n"
    );
    assert!(contributed("src/a.py", None, FILE, &Layout::default()).is_empty());
    assert!(contributed("tests/conftest.py", None, FILE, &Layout::default()).is_empty());
    assert_eq!(
        contributed("tests/test_conftest.py", None, FILE, &Layout::default()).len(),
        4
    );
}

#[test]
fn unittest_and_inherited_tests_are_found() {
    let before = "\
import unittest

class Base:
    n = 1
    def test_base(self):
        self.check(self.n)

class AThings(Base, unittest.TestCase):
    def check(self, n):
        assert n
    def test_own(self):
        pass

class BThings(Base, unittest.TestCase):
    n = 2
    def check(self, n):
        assert n
";
    assert_eq!(
        changed(
            before,
            &before.replace("self.check(self.n)", "self.check(0)")
        ),
        ["~AThings::test_base", "~BThings::test_base"]
    );
    assert_eq!(
        changed(before, &before.replace("n = 2", "n = 3")),
        ["~BThings::test_base"]
    );
    assert_eq!(
        changed(before, &before.replace("n = 1", "n = 3")),
        ["~AThings::test_base"]
    );
    assert_eq!(
        changed("", before),
        [
            "+AThings::test_base",
            "+BThings::test_base",
            "+AThings::test_own"
        ]
    );
}

#[test]
fn equal_method_names_stay_separate() {
    let before = "class TestA:\n    def test_x(self):\n        f(1)\n\nclass TestB:\n    def test_x(self):\n        f(1)\n";
    let at = before.rfind("f(1)").unwrap();
    let after = format!("{}f(2)\n", &before[..at]);
    assert_eq!(changed(before, &after), ["~TestB::test_x"]);
}

#[test]
fn fixtures_named_in_strings_count() {
    let before = "import pytest\n@pytest.fixture\ndef db():\n    return 1\n@pytest.mark.usefixtures('db')\ndef test_x():\n    pass\n";
    assert_eq!(
        changed(before, &before.replace("return 1", "return 2")),
        ["~test_x"]
    );
    let twice = "def test_x():\n    1\ndef test_x():\n    2\n";
    assert_eq!(changed("", twice), ["+test_x"]);
}

#[test]
fn last_class_of_a_name_counts() {
    let twice = "class TestA:\n    def test_old(self): pass\nclass TestA:\n    def test_x(self): assert 1\n";
    assert_eq!(changed("", twice), ["+TestA::test_x"]);
    assert_eq!(
        changed(twice, &twice.replace("assert 1", "assert 2")),
        ["~TestA::test_x"]
    );
}

/// Generates sources of `n` tests each. Comparing all pairs of something in them would take quadratic time.
fn many(n: usize) -> Vec<String> {
    let each = |one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<String>();
    vec![
        each(&|i| format!("def test_{i}(): pass\n")),
        each(&|i| format!("class Test{i}:\n    def test_a(self): pass\n")),
        each(&|i| {
            format!(
                "def test_{i}(): help_{i}()\ndef help_{i}(): help_{}()\n",
                i + 1
            )
        }),
        each(&|i| {
            format!(
                "def setup_{i}(): pass\n@pytest.fixture(autouse=True)\ndef f_{i}(): pass\ndef test_{i}(): pass\n"
            )
        }),
        format!(
            "if 1:\n  for x in y:\n{}",
            each(&|i| format!("    a_{i} = test_{i} = 1\n"))
        ),
        format!("{} = 1\ndef test_a(): a_0\n", each(&|i| format!("a_{i}, "))),
        each(&|i| {
            format!(
                "class Test{i}(Test{}):\n    def test_{i}(self): pass\n",
                i.wrapping_sub(1)
            )
        }),
    ]
}

/// Returns the processor time of this thread, since other threads may keep the processors busy.
fn processor_seconds() -> f64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    std::time::Duration::from(time).as_secs_f64()
}

#[test]
fn comparison_time_is_linear() {
    let seconds = |n: usize| -> Vec<f64> {
        let layout = Layout::default();
        let one = |source: String| {
            let after = format!("x = 1\n{source}");
            let once = || {
                let began = processor_seconds();
                contributed("tests/test_a.py", Some(&source), &after, &layout);
                processor_seconds() - began
            };
            once().min(once())
        };
        many(n).into_iter().map(one).collect()
    };
    let (few, more) = (seconds(250), seconds(2_000));
    for (at, (few, more)) in few.iter().zip(&more).enumerate() {
        // The input is eight times as long; quadratic time would be 64 times as much.
        assert!(more / few < 30.0, "source {at}: {few} s, {more} s");
    }
}

#[test]
fn beyond_step_limit_everything_counts() {
    let helper = |n: usize| -> String {
        let names: Vec<String> = (0..n).map(|i| format!("h_{i}")).collect();
        let functions: String = names
            .iter()
            .map(|h| format!("def {h}(): {}\n", names.join(", ")))
            .collect();
        let tests: String = (0..n)
            .map(|i| format!("def test_{i}(): h_{i}(), {i}\n"))
            .collect();
        format!("OTHER = 1\n{functions}{tests}")
    };
    let file = helper(80);
    assert!(changed(&file, &file).is_empty());
    assert_eq!(
        changed(&file, &file.replace("h_79(), 79", "h_79(), 0")),
        ["~test_79"]
    );
    // Dependencies of the first tests were followed; those of the last ones are unknown.
    let other = changed(&file, &file.replace("OTHER = 1", "OTHER = 2"));
    assert!(other.contains(&"~test_79".to_owned()) && !other.contains(&"~test_0".to_owned()));
}

/// Description, text before, text after, and the tests that the change contributes.
const RESOLUTION: &[(&str, &str, &str, &[&str])] = &[
    (
        "a string that is also an import's name",
        "def test_a():\n    assert f('minidom')\n",
        "from xml.dom import minidom\n\ndef test_a():\n    assert f('minidom')\n\ndef test_b():\n    minidom.parse('x')\n",
        &["+test_b"],
    ),
    (
        "a test that imports the name itself",
        "def test_a():\n    import sys\n    assert sys.path\n",
        "import sys\n\ndef test_a():\n    import sys\n    assert sys.path\n\ndef test_b():\n    assert sys.argv\n",
        &["+test_b"],
    ),
    (
        "a test that used the import through another name",
        "import os as sys\n\ndef test_a():\n    assert sys.path\n",
        "import sys\n\ndef test_a():\n    assert sys.path\n",
        &["~test_a"],
    ),
    (
        "a variable of the test's own",
        "def test_a():\n    data = [1]\n    assert data\n",
        "data = [2]\n\ndef test_a():\n    data = [1]\n    assert data\n",
        &[],
    ),
    (
        "the variable of a loop, of a comprehension, of an except",
        "def test_a():\n    for x in f():\n        [y for y in x]\n    try:\n        f()\n    except E as e:\n        e\n",
        "x = y = e = 1\n\ndef test_a():\n    for x in f():\n        [y for y in x]\n    try:\n        f()\n    except E as e:\n        e\n",
        &[],
    ),
    (
        "an attribute of something else",
        "def test_a(m):\n    assert m.helper()\n",
        "def helper():\n    pass\n\ndef test_a(m):\n    assert m.helper()\n",
        &[],
    ),
    (
        "a keyword argument",
        "def test_a():\n    f(helper=1)\n",
        "helper = 2\n\ndef test_a():\n    f(helper=1)\n",
        &[],
    ),
    (
        "a parameter that parametrize gives",
        "@pytest.mark.parametrize('a, size', [(1, 2)])\ndef test_a(a, size):\n    assert a\n",
        "size = 2\n\n@pytest.mark.parametrize('a, size', [(1, 2)])\ndef test_a(a, size):\n    assert a\n",
        &[],
    ),
    (
        "a parameter that parametrize gives to a fixture",
        "@pytest.fixture\ndef box(request):\n    return 1\n\n@pytest.mark.parametrize('box', [1], indirect=True)\ndef test_a(box):\n    assert box\n",
        "@pytest.fixture\ndef box(request):\n    return 2\n\n@pytest.mark.parametrize('box', [1], indirect=True)\ndef test_a(box):\n    assert box\n",
        &["~test_a"],
    ),
    (
        "a helper's parameter",
        "def helper(size):\n    return size\n\ndef test_a():\n    helper(1)\n",
        "size = 2\n\ndef helper(size):\n    return size\n\ndef test_a():\n    helper(1)\n",
        &[],
    ),
    (
        "a fixture that is asked for by a string",
        "@pytest.fixture\ndef box():\n    return 1\n\n@pytest.mark.parametrize('name', ['box'])\ndef test_a(name, request):\n    assert request.getfixturevalue(name)\n",
        "@pytest.fixture\ndef box():\n    return 2\n\n@pytest.mark.parametrize('name', ['box'])\ndef test_a(name, request):\n    assert request.getfixturevalue(name)\n",
        &["~test_a"],
    ),
    (
        "a fixture of another name than its function",
        "@pytest.fixture(name='box')\ndef box_fixture():\n    return 1\n\n@pytest.mark.usefixtures('box')\ndef test_a():\n    pass\n\ndef test_b(box):\n    pass\n",
        "@pytest.fixture(name='box')\ndef box_fixture():\n    return 2\n\n@pytest.mark.usefixtures('box')\ndef test_a():\n    pass\n\ndef test_b(box):\n    pass\n",
        &["~test_a", "~test_b"],
    ),
    (
        "an imported fixture",
        "from a import box\n\ndef test_a(box):\n    pass\n",
        "from b import box\n\ndef test_a(box):\n    pass\n",
        &["~test_a"],
    ),
    (
        "a member of the class is not what a method's name means",
        "def helper():\n    pass\n\nclass TestA:\n    def helper(self):\n        return 1\n\n    def test_a(self):\n        assert helper()\n",
        "def helper():\n    pass\n\nclass TestA:\n    def helper(self):\n        return 2\n\n    def test_a(self):\n        assert helper()\n",
        &[],
    ),
    (
        "a function of the module is not what a member means",
        "def helper():\n    return 1\n\nclass TestA:\n    def helper(self):\n        pass\n\n    def test_a(self):\n        assert self.helper()\n",
        "def helper():\n    return 2\n\nclass TestA:\n    def helper(self):\n        pass\n\n    def test_a(self):\n        assert self.helper()\n",
        &[],
    ),
    (
        "a member by getattr",
        "class TestA:\n    def helper(self):\n        return 1\n\n    def test_a(self):\n        assert getattr(self, 'helper')()\n",
        "class TestA:\n    def helper(self):\n        return 2\n\n    def test_a(self):\n        assert getattr(self, 'helper')()\n",
        &["~TestA::test_a"],
    ),
    (
        "data of the class's body in a decorator",
        "class TestA:\n    CASES = [1]\n\n    @pytest.mark.parametrize('n', CASES)\n    def test_a(self, n):\n        assert n\n",
        "class TestA:\n    CASES = [2]\n\n    @pytest.mark.parametrize('n', CASES)\n    def test_a(self, n):\n        assert n\n",
        &["~TestA::test_a"],
    ),
    (
        "a global that the test sets",
        "COUNT = 0\n\ndef test_a():\n    global COUNT\n    COUNT += 1\n",
        "COUNT = 1\n\ndef test_a():\n    global COUNT\n    COUNT += 1\n",
        &["~test_a"],
    ),
    (
        "what a nested function uses",
        "LIMIT = 1\n\ndef test_a():\n    def inner():\n        return LIMIT\n    assert inner()\n",
        "LIMIT = 2\n\ndef test_a():\n    def inner():\n        return LIMIT\n    assert inner()\n",
        &["~test_a"],
    ),
    (
        "an import under another local name",
        "from a import b as c\n\ndef test_a():\n    assert c()\n",
        "from a import b as c\nfrom a import d as b\n\ndef test_a():\n    assert c()\n",
        &[],
    ),
    (
        "a try around imports",
        "try:\n    import a\nexcept ImportError:\n    a = None\n\ndef test_a():\n    assert a\n",
        "try:\n    import b as a\nexcept ImportError:\n    a = None\n\ndef test_a():\n    assert a\n",
        &["~test_a"],
    ),
];

#[test]
fn names_are_resolved() {
    for (what, before, after, expected) in RESOLUTION {
        assert_eq!(changed(before, after), *expected, "{what}");
    }
}

#[test]
fn described_functions_are_tests() {
    let block = |inner: &str| {
        format!(
            "def describe_f():\n    LIMIT = 1\n\n    def a():\n        assert f(LIMIT)\n\n    def _helper():\n        pass\n\n    \
             @pytest.fixture\n    def box():\n        pass\n\n    def describe_more():\n        def b():\n            assert 1\n{inner}"
        )
    };
    let new = block("\n    def c():\n        assert 2\n");
    assert_eq!(changed(&block(""), &new), ["+describe_f::c"]);
    let all = ["~describe_f::a", "~describe_f::describe_more::b"];
    assert_eq!(
        changed(&block(""), &block("").replace("LIMIT = 1", "LIMIT = 2")),
        all
    );
    let one = block("").replace("assert 1", "assert 3");
    assert_eq!(changed(&block(""), &one), ["~describe_f::describe_more::b"]);
}
