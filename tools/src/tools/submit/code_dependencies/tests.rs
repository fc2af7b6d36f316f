#![allow(clippy::unwrap_used)]

use std::fs;

use super::*;
use crate::testing::Fixture;

/// Returns the test-folder files that count as used by the code, if all of them are changed.
fn used(files: &[(&str, &str)]) -> Vec<String> {
    let bytes: Vec<(&str, &[u8])> = files.iter().map(|(p, t)| (*p, t.as_bytes())).collect();
    let mut f = Fixture::new(&bytes);
    for (path, text) in files {
        if f.workspace.layout().is_test_path(path) {
            fs::write(
                f.workspace.root().join(path),
                format!("{text}\n# changed\n"),
            )
            .unwrap();
        }
    }
    let changes = f.workspace.changes().unwrap();
    used_by_code(&f.workspace, &changes).into_iter().collect()
}

const INIT: &str = "";

#[test]
fn imported_folders_are_used() {
    let files = |code: &'static str| {
        [
            ("src/slugs/__init__.py", INIT),
            ("src/slugs/slug.py", code),
            ("src/slugs/testing/__init__.py", INIT),
            ("src/slugs/testing/helpers.py", INIT),
            ("src/slugs/testing/words.json", INIT),
            ("src/slugs/testing/test_own.py", INIT),
            ("tests/helpers.py", INIT),
        ]
    };
    let all = ["__init__.py", "helpers.py", "words.json"].map(|n| format!("src/slugs/testing/{n}"));
    for code in [
        "from .testing import finish\n",
        "from . import testing\n",
        "import slugs.testing\n",
        "def f():\n    if x:\n        from slugs.testing.helpers import y\n",
        "import importlib\ntesting = importlib.import_module('slugs.testing')\n",
        "import importlib\ntesting = importlib.import_module('.testing', __package__)\n",
        "__getattr__ = attach(__name__, [\"testing\"])\n",
        "from testing import finish\n",
    ] {
        assert_eq!(used(&files(code)), all, "{code}");
    }
    for code in [
        "import unittest\n",
        "# for testing\n",
        "from tests_of import testing\n",
    ] {
        assert_eq!(used(&files(code)), [""; 0], "{code}");
    }
}

#[test]
fn folders_used_by_tests_only_are_unused() {
    let files = [
        (
            "astropy/__init__.py",
            "from .tests.runner import TestRunner\n",
        ),
        ("astropy/tests/__init__.py", INIT),
        (
            "astropy/tests/runner.py",
            "from astropy.more.tests.base import x\n",
        ),
        ("astropy/table/__init__.py", INIT),
        (
            "astropy/table/tests/__init__.py",
            "from ...tests import helper\n",
        ),
        ("astropy/table/tests/test_x.py", "from . import data\n"),
        ("astropy/table/tests/data/x.fits", INIT),
        ("astropy/more/__init__.py", INIT),
        ("astropy/more/tests/base.py", INIT),
        ("astropy/more/tests/test_y.py", INIT),
        ("tests/models.py", INIT),
        ("tests/app/models.py", INIT),
        (
            "setup.py",
            "import tests\nsetup(test_suite='astropy.table.tests.test_x')\n",
        ),
        ("runtests.py", "import tests.models, astropy.table.tests\n"),
        ("docs/conf.py", "import astropy.table.tests\n"),
    ];
    let expected = [
        "astropy/more/tests/base.py",
        "astropy/tests/__init__.py",
        "astropy/tests/runner.py",
    ];
    assert_eq!(used(&files), expected);
}

#[test]
fn imported_test_files_are_used() {
    let files = [
        ("pkg/__init__.py", "from .test_support import check\n"),
        ("pkg/test_support.py", INIT),
        ("pkg/test_other.py", INIT),
    ];
    assert_eq!(used(&files), ["pkg/test_support.py"]);
}
