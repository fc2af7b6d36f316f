use super::*;

const FILE: &str = "\
import os
from a import b, c

SIZE = 3
OTHER = 4

def helper():
    return SIZE

@pytest.fixture
def box():
    return b()

def test_other():
    assert OTHER

class TestA:
    def setup_method(self):
        self.x = helper()

    def unused(self):
        pass

    def test_a(self, box):
        assert self.x == box
";

#[test]
fn long_imports_show_used_names() {
    let file =
        "from a import (\n    b,\n    c as d,\n    e,\n)\n\ndef test_a():\n    assert d(e)\n";
    let used = used_code("t.py", file, &["test_a"], &Layout::default());
    assert_eq!(used[0].source, "from a import c as d, e");
    assert_eq!(used[0].line, 1);
}

#[test]
fn empty_code_is_not_shown() {
    let file = "\
class TestA:
    def setUp(self):
        \"\"\"Nothing yet.\"\"\"
        pass

    def tearDown(self):
        close()
        pass

    def test_a(self):
        assert SIZE

SIZE = 3

if __name__ == '__main__':
    unittest.main()
";
    let used = used_code("t.py", file, &["TestA::test_a"], &Layout::default());
    let lines: Vec<usize> = used.iter().map(|excerpt| excerpt.line).collect();
    assert_eq!(lines, [6, 13]);
}

#[test]
fn used_code_is_found_with_lines() {
    let used = used_code("t.py", FILE, &["TestA::test_a"], &Layout::default());
    let excerpts: Vec<(usize, &str)> = used
        .iter()
        .map(|excerpt| {
            (
                excerpt.line,
                excerpt.source.lines().next().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        excerpts,
        [
            (2, "from a import b, c"),
            (4, "SIZE = 3"),
            (7, "def helper():"),
            (10, "@pytest.fixture"),
            (18, "    def setup_method(self):"),
        ]
    );
    assert_eq!(
        used[3].source,
        "@pytest.fixture\ndef box():\n    return b()"
    );
}
