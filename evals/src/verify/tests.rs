use super::*;

#[test]
fn dataset_names_match_node_ids() {
    for (id, name, is) in [
        ("t/test_a.py::test_x", "t/test_a.py::test_x", true),
        ("t/test_a.py::test_x[a b]", "t/test_a.py::test_x[a", true),
        ("sympy/core/tests/test_a.py::test_x", "test_x", true),
        ("sympy/core/tests/test_a.py::test_xy", "test_x", false),
        (
            "tests/admin/tests.py::Case::test_x",
            "test_x (admin.tests.Case)",
            true,
        ),
        (
            "tests/admin/tests.py::Other::test_x",
            "test_x (admin.tests.Case)",
            false,
        ),
        (
            "tests/model_forms/tests.py::Case::test_x",
            "test_x (forms.tests.Case)",
            false,
        ),
    ] {
        assert_eq!(is_named(id, name), is, "{id} {name}");
    }
}

#[test]
fn differing_outcomes_are_listed() {
    let pair = |old, new| Pair { old, new };
    let pairs = Pairs::from([
        ("a::x".to_owned(), pair(Outcome::Failed, Outcome::Passed)),
        ("a::y".to_owned(), pair(Outcome::Failed, Outcome::Failed)),
    ]);
    let list = ["a::x", "a::y", "a::z"].map(str::to_owned);
    let result = agreement(&list, &pairs, &|old| old != Outcome::Passed);
    assert_eq!((result.listed, result.matching), (3, 1));
    assert_eq!(
        result.mismatches,
        ["a::y: failed, then failed", "a::z: not found"]
    );
}
