use super::*;

#[test]
fn tests_go_only_into_test_files() {
    let repository = Repository::of_files(&[
        ("pkg/a.py", "def f():\n    pass\n"),
        ("tests/test_a.py", "async def test_a():\n    pass\n"),
    ]);
    let read = |reply| read(reply, &repository, &Options::default());
    let (plan, invalid) = read("read pkg/a.py::f\nwrite pkg/a.py::test_f\nmodify pkg/a.py::f");
    assert_eq!(plan.lines(), ["read pkg/a.py::f"]);
    assert_eq!(invalid, ["write pkg/a.py::test_f", "modify pkg/a.py::f"]);
    let (plan, invalid) = read("modify tests/test_a.py::test_a");
    assert_eq!(plan.lines(), ["modify tests/test_a.py::test_a"]);
    assert!(invalid.is_empty());
}

#[test]
fn new_file_without_localized_tests() {
    let repository = Repository::of_files(&[
        ("pkg/a.py", "def f():\n    pass\n"),
        ("tests/test_a.py", "def test_a():\n    pass\n"),
    ]);
    let target = Action::new_test(&Localized::default(), &repository);
    assert_eq!(target.name.path, "tests/test_issue.py");
    let localized = Localized {
        test_files: vec!["tests/test_a.py".to_owned()],
        ..Localized::default()
    };
    let target = Action::new_test(&localized, &repository);
    assert_eq!(target.name.path, "tests/test_a.py");
}

#[test]
fn satisfaction_needs_a_plain_word() {
    for (reply, satisfied) in [
        ("Satisfied\nread a.py::f", true),
        ("**Satisfied**", true),
        ("I am Unsatisfied with it.", false),
        ("Unsure: satisfied but for one thing", false),
        ("read a.py::f", false),
    ] {
        assert_eq!(is_satisfied(reply), satisfied, "{reply}");
    }
}
