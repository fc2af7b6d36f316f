use super::*;

#[test]
fn new_use_of_test_runner_is_found() {
    for (code, expected) in [
        ("import os, pytest\n", Some((1, "pytest"))),
        ("import unittest.mock\n", Some((1, "unittest"))),
        (
            "name = os.getenv('PYTEST_CURRENT_TEST')\n",
            Some((1, "pytest")),
        ),
        ("import pytest_mock\n", None),
        ("from .pytest import run\n", None),
        ("x = 1  # import pytest\n", None),
        ("\"\"\"Example::\n\n    import pytest\n\"\"\"\n", None),
        ("name = \"pytest\"\n", None),
        (
            "def f():\n    from _pytest.python import Function\n",
            Some((2, "_pytest")),
        ),
        (
            "import sys\nif 'pytest' in sys.modules:\n    x = 1\n",
            Some((2, "pytest")),
        ),
        (
            "m = sys.modules.get(\"_pytest.runner\")\n",
            Some((1, "_pytest")),
        ),
        (
            "m = importlib.import_module('_pytest.python')\n",
            Some((1, "_pytest")),
        ),
    ] {
        let uses = find_new_uses("", code);
        assert_eq!(uses.first().copied(), expected, "{code}");
    }
    let old = "import pytest\n";
    assert!(find_new_uses(old, "import pytest\nx = pytest.approx(1)\n").is_empty());
    let new = "import pytest\nfrom _pytest import python\n";
    assert_eq!(find_new_uses(old, new), [(2, "_pytest")]);
}
