use super::*;

#[test]
fn tests_are_extracted_or_counted_unparsed() {
    let mut counts = Counts::default();
    let text = "import a\n\nclass TestA:\n    async def test_x(self):\n        assert a\n\ndef test_y(): assert a\n";
    let tests = isolated_tests("t/test_a.py", text, &Layout::default(), &mut counts);
    let names: Vec<String> = tests.iter().map(IsolatedTest::name).collect();
    assert_eq!(names, ["t/test_a.py::TestA::test_x", "t/test_a.py::test_y"]);
    assert_eq!(tests[1].text.text(), "import a\n\ndef test_y(): assert a\n");
    isolated_tests(
        "test_b.py",
        "def test_z():\n    x = = 1\n",
        &Layout::default(),
        &mut counts,
    );
    assert_eq!(
        (counts.found, counts.dropped[&DropReason::NotParsed]),
        (3, 1)
    );
}

#[test]
fn test_files_are_recognized_by_name() {
    for (path, is) in [
        ("tests/test_a.py", true),
        ("a_test.py", true),
        ("tests/conftest.py", false),
        ("src/testing.py", false),
        ("test_a.txt", false),
    ] {
        assert_eq!(is_test_file(path), is, "{path}");
    }
}
