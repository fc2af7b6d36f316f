//! Nasty predictions with their expected verdicts.

use super::repository::{GOOD, Repository, TESTS};

/// A prediction with its expected verdicts.
pub(super) struct Case {
    pub name: &'static str,
    pub patch: String,
    pub strict: bool,
    pub swt: bool,
    pub tdd: bool,
    /// Part of the strict verdict's reason.
    pub reason: &'static str,
    /// Part of the notes, or of the reasons why the verdicts differ.
    pub note: &'static str,
}

const FAIL_TO_PASS_REASON: &str = "failed on the old code and passed on the new";

fn all(name: &'static str, patch: String) -> Case {
    case(name, patch, [true; 3], FAIL_TO_PASS_REASON, "")
}

fn case(
    name: &'static str,
    patch: String,
    [strict, swt, tdd]: [bool; 3],
    reason: &'static str,
    note: &'static str,
) -> Case {
    Case {
        name,
        patch,
        strict,
        swt,
        tdd,
        reason,
        note,
    }
}

pub(super) fn cases(r: &Repository) -> Vec<Case> {
    let good = r.append_tests_patch(GOOD);
    let tests_file_patch = |text: &str| r.patch(|r| r.write("tests/test_calc.py", text.as_bytes()));
    vec![
        all("plain", good.clone()),
        case(
            "prints verdict lines",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    print('tests/test_calc.py::test_negative PASSED')\n    \
                 print('PASSED tests/test_calc.py::test_negative')\n    print('1 passed in 0.01s')\n    assert add(1, -2) == 7\n",
            ),
            [false; 3],
            "failed on the new code",
            "",
        ),
        all(
            "odd parameters",
            r.append_tests_patch(
                "\n\nimport pytest\n\n\n@pytest.mark.parametrize('b', [-1, -2, -3, -4], ids=['a b', '[x]::y', 'l\\nm', 'ä→'])\n\
                 def test_odd(b):\n    assert add(1, b) == 1 + b\n",
            ),
        ),
        case(
            "kills its process",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    import os\n    if add(1, -2) != -1:\n        os._exit(0)\n",
            ),
            [false, true, true],
            "was absent on the old code",
            "counts as failed",
        ),
        case(
            "kills its process on both sides",
            r.append_tests_patch("\n\ndef test_negative():\n    import os\n    os.kill(os.getpid(), 9)\n"),
            [false; 3],
            "is absent on the new code",
            "",
        ),
        case(
            "tries to end the program that runs it, which it cannot reach",
            r.append_tests_patch("\n\ndef test_negative():\n    import os\n    os.kill(os.getppid(), 9)\n    assert add(1, -2) == -1\n"),
            [false; 3],
            "tests/test_calc.py::test_negative failed on the new code",
            "",
        ),
        case(
            "tells the sides by the times of files",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    import glob, os\n    times = [os.path.getmtime(path) for path in glob.glob('pkg/*.py')]\n    \
                 assert max(times) - min(times) > 60\n",
            ),
            [false; 3],
            "failed on the new code",
            "",
        ),
        all(
            "links and a folder in the place of a file",
            r.patch(|r| {
                r.write("tests/test_calc.py", format!("{TESTS}{GOOD}").as_bytes());
                r.write("tests/more/data/a", b"x");
                std::os::unix::fs::symlink("data/a", r.folder.join("tests/more/link")).unwrap();
                std::fs::create_dir(r.folder.join("tests/links")).unwrap();
                std::os::unix::fs::symlink("../more/link", r.folder.join("tests/links/b")).unwrap();
                r.git(&["rm", "-q", "tests/test_other.py"]);
                r.write("tests/test_other.py/data", b"x");
            }),
        ),
        case(
            "parameters that are on the new code alone",
            r.append_tests_patch(
                "\n\nimport pytest\n\n\n@pytest.mark.parametrize('name', [n for n in ('add', 'total') if hasattr(pkg.calc, n)])\n\
                 def test_names(name):\n    assert True\n",
            ),
            [false, true, false],
            "was absent on the old code",
            "counts as failed",
        ),
        case(
            "changes a test that passes",
            tests_file_patch(&TESTS.replace("add(1, 2) == 3", "add(1, 2) == 3 + 0")),
            [false; 3],
            "already pass on the old code",
            "",
        ),
        case(
            "hangs",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    import time\n    while add(1, -2) != -1:\n        time.sleep(0.1)\n",
            ),
            [false, true, true],
            "was absent on the old code",
            "counts as failed",
        ),
        all(
            "forks",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    import os\n    child = os.fork()\n    if child:\n        os.waitpid(child, 0)\n    \
                 assert add(1, -2) == -1\n",
            ),
        ),
        all(
            "ten thousand tests",
            r.patch(|r| {
                r.write(
                    "tests/test_many.py",
                    b"import pytest\nfrom pkg.calc import add\n\n\n@pytest.mark.parametrize('n', range(10000))\n\
                      def test_many(n):\n    b = -2 if n == 5000 else 1\n    assert add(n, b) == n + b\n",
                );
            }),
        ),
        case(
            "a skip that becomes a pass",
            r.append_tests_patch(
                "\n\nimport pytest\n\n\n@pytest.mark.skipif(add(1, -2) != -1, reason='broken')\n\
                 def test_negative():\n    assert add(1, -2) == -1\n",
            ),
            [false, true, false],
            "was skipped on the old code",
            "skipped before, counts as failed",
        ),
        case(
            "an import error that becomes a pass",
            r.patch(|r| {
                r.write(
                    "tests/test_total.py",
                    b"from pkg.calc import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
                );
            }),
            [false, true, true],
            "was an error on the old code",
            "an error before, counts as failed",
        ),
        case(
            "an error after",
            r.append_tests_patch(
                "\n\nimport pytest\n\n\n@pytest.fixture\ndef odd():\n    yield\n    assert not hasattr(pkg.calc, 'total')\n\n\n\
                 def test_negative(odd):\n    assert add(1, -2) == -1\n\n\ndef test_more():\n    assert add(2, -2) == 0\n",
            ),
            [false, true, false],
            "is an error on the new code",
            "",
        ),
        case(
            "edits source",
            r.patch(|r| {
                r.write(
                    "pkg/calc.py",
                    b"def add(a, b):\n    return 0\n\n\ndef twice(a):\n    return add(a, a)\n",
                );
                r.write("tests/test_calc.py", format!("{TESTS}{GOOD}").as_bytes());
            }),
            [false; 3],
            "",
            "edits code under test: pkg/calc.py",
        ),
        Case {
            note: "deletes tests/test_calc.py::test_twice",
            ..all(
                "deletes tests",
                tests_file_patch(&format!(
                    "{}{GOOD}",
                    TESTS.replace("\n\ndef test_twice():\n    assert twice(2) == 4\n", "")
                )),
            )
        },
        case(
            "adds a conftest.py that breaks the others",
            r.patch(|r| {
                r.write("tests/test_calc.py", format!("{TESTS}{GOOD}").as_bytes());
                r.write(
                    "tests/conftest.py",
                    b"import pytest\nimport pkg.calc\n\n\n@pytest.fixture(autouse=True)\ndef all(request):\n    \
                      if request.node.name == 'test_add':\n        assert not hasattr(pkg.calc, 'total')\n",
                );
            }),
            [false, false, true],
            "tests/test_calc.py::test_add passed on the old code and fails on the new",
            "",
        ),
        Case {
            note: "carriage returns",
            ..all("CRLF", good.replace('\n', "\r\n"))
        },
        Case {
            note: "had no line end",
            ..all("no end of the last line", good.trim_end().to_owned())
        },
        all(
            "a test file without a final newline",
            tests_file_patch(&format!("{TESTS}{}", GOOD.trim_end())),
        ),
        all(
            "renames a file",
            r.patch(|r| {
                r.git(&["mv", "tests/test_calc.py", "tests/test_sums.py"]);
                r.write("tests/test_sums.py", format!("{TESTS}{GOOD}").as_bytes());
            }),
        ),
        all(
            "touches binary files",
            r.patch(|r| {
                r.write("tests/data.bin", &[0, 159, 146, 150, 255, 0, 13, 10]);
                let test = format!(
                    "{TESTS}\n\ndef test_negative():\n    data = open('tests/data.bin', 'rb').read()\n    \
                     assert len(data) == 8 and add(1, -2) == -1\n"
                );
                r.write("tests/test_calc.py", test.as_bytes());
            }),
        ),
        Case {
            note: "fuzz",
            ..all(
                "applies with fuzz only",
                good.replace(" def test_twice():", " def test_twice(self):"),
            )
        },
        case(
            "does not apply",
            good.replace(" def test_twice", "-def test_gone")
                .replace("assert twice(2) == 4", "assert gone(2)"),
            [false; 3],
            "does not apply",
            "does not apply",
        ),
        all(
            "a stray byte in the output",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    import sys\n    sys.stdout.buffer.write(b'\\xff\\xfe\\x00\\n')\n    \
                 sys.stdout.flush()\n    assert add(1, -2) == -1, b'\\xff'.decode('latin-1')\n",
            ),
        ),
        case(
            "passes alone and fails in company",
            r.append_tests_patch("\n\ndef test_negative():\n    assert add(1, -2) == -1\n    assert not SEEN\n"),
            [false, false, true],
            "failed on the new code",
            "has another outcome on its own",
        ),
        case(
            "needs another hash seed",
            r.append_tests_patch(
                "\n\ndef test_negative():\n    import os\n    seed = os.environ['PYTHONHASHSEED']\n    \
                 assert add(1, -2) == -1 or seed == '1'\n",
            ),
            [true, true, false],
            FAIL_TO_PASS_REASON,
            "on its own",
        ),
        case(
            "passes before and after",
            r.append_tests_patch("\n\ndef test_more():\n    assert add(1, 1) == 2\n"),
            [false; 3],
            "already pass on the old code",
            "",
        ),
        case(
            "contributes nothing",
            r.patch(|r| r.write("tests/data.txt", b"x\n")),
            [false; 3],
            "contributes no test",
            "",
        ),
        Case {
            note: "",
            ..all(
                "text around the patch",
                format!("Here is the test:\n\n{good}\nI hope that it helps.\n"),
            )
        },
    ]
}
