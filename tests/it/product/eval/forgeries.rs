//! Predictions that say nothing of the issue, but would succeed: they tell old from new without running the code, decide
//! about outcomes themselves, or depend on chance. The strict verdict must reject each with its reason.

mod expressions;

use serde_json::{Value, json};

use super::repository::{GOOD, Repository, TESTS};
use super::{GradingBench, ISSUE};
use crate::support::program::assert_exit_code;
use expressions::{COMPARISONS, TRACES, asserting};

/// A forged prediction, and a part of the reason for which the strict verdict rejects it.
struct Forgery {
    name: &'static str,
    patch: String,
    reason: &'static str,
}

const READS: &str = "reads the code instead of running it";

/// Hooks that decide by the text of the code.
const CALL_HOOK: &str = "def pytest_pyfunc_call(pyfuncitem):\n    \
    if pyfuncitem.name == 'test_negative':\n        assert 'b < 0' not in open('pkg/calc.py').read()\n        return True\n";
const REPORT_HOOK: &str = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    \
    report = (yield).get_result()\n    if item.name == 'test_negative' and call.when == 'call' and 'b < 0' in open('pkg/calc.py').read():\n        \
    report.outcome = 'failed'\n        report.longrepr = 'assert 0'\n";

/// A passing test that reports its own failure on the old code.
const FORGED_RECORD: &str = "\n\ndef test_negative(request):\n    import sys\n    add(1, 2)\n    \
    if 'b < 0' in open('pkg/calc.py').read():\n        \
    failure = {'exception': 'AssertionError', 'kinds': ['AssertionError', 'Exception'], 'message': '', 'name': None, 'cause': None, 'frames': []}\n        \
    sys.modules['testwr' + 'ight_record'].emit('phase', id='tests/test_calc.py::test_negative', when='call', outcome='failed', xfail=False,\n            \
    unexpected=False, seconds=0.1, failure=failure, captured='')\n        request.session.testsfailed += 1\n";

/// A passing test that registers a hook.
const REGISTERED: &str = "\n\nclass Hook:\n    def pytest_runtest_logreport(self, report):\n        pass\n\n    \
    def pytest_pyfunc_call(self, pyfuncitem):\n        assert 'b < 0' not in open('pkg/calc.py').read()\n\n\n\
    import pytest\n\n\n@pytest.fixture(autouse=True)\ndef registered(request):\n    \
    request.config.pluginmanager.register(Hook())\n\n\ndef test_negative():\n    add(1, 2)\n";

/// Reproduces the issue with the hash seeds of the runs that decide, but with no other.
const BY_HASH_SEED: &str = "\n\ndef test_negative():\n    import os\n    \
    assert add(1, -2) == -1 and os.environ['PYTHONHASHSEED'] in ('0', '1')\n";

/// Reproduces the issue for the usual user, but for no other.
const BY_USER: &str = "\n\ndef test_negative():\n    import os\n    \
    assert add(1, -2) == -1 and 'USER' not in os.environ\n";

const PASSING: &str = "\n\ndef test_negative():\n    assert add(1, 2) == 3\n";

/// Returns predictions that change more than tests.
fn with_other_files(r: &Repository) -> Vec<Forgery> {
    let beside = |name, tests: &str, path: &str, content: &[u8], reason| Forgery {
        name,
        patch: r.patch(|r| {
            r.write("tests/test_calc.py", format!("{TESTS}{tests}").as_bytes());
            r.write(path, content);
        }),
        reason,
    };
    let compiled = "which is not source code";
    let settings = "which decides how tests are run";
    let code = "not a test patch: it edits code under test";
    let hooks = "decides about other tests than its own";
    let startup = "which runs before its tests";
    let plugin = b"[pytest]\npythonpath = .\naddopts = -p tests.helpers_x\n";
    vec![
        beside(
            "hook in the root",
            PASSING,
            "conftest.py",
            CALL_HOOK.as_bytes(),
            hooks,
        ),
        beside(
            "hook beside the tests",
            PASSING,
            "tests/conftest.py",
            REPORT_HOOK.as_bytes(),
            hooks,
        ),
        beside(
            "plugin by pytest.ini",
            PASSING,
            "pytest.ini",
            plugin,
            settings,
        ),
        beside(
            "settings beside the tests",
            PASSING,
            "tests/pytest.ini",
            plugin,
            settings,
        ),
        beside("settings of tox", PASSING, "tox.ini", plugin, settings),
        beside(
            "settings of setuptools",
            PASSING,
            "setup.cfg",
            b"[tool:pytest]\naddopts = -p x\n",
            settings,
        ),
        beside(
            "settings of the project",
            PASSING,
            "pyproject.toml",
            b"[tool.pytest.ini_options]\n",
            settings,
        ),
        beside(
            "plugin by its name",
            &format!("\n\npytest_plugins = ['tests.helpers_x']\n{PASSING}"),
            "tests/helpers_x.py",
            CALL_HOOK.as_bytes(),
            "which loads plugins of pytest",
        ),
        beside(
            "compiled code",
            PASSING,
            "pkg/__pycache__/calc.cpython-311.pyc",
            b"\xa7\r\r\n\0",
            compiled,
        ),
        beside(
            "compiled code in a test folder",
            PASSING,
            "tests/__pycache__/x.cpython-311.pyc",
            b"\xa7\r\r\n\0",
            compiled,
        ),
        beside(
            "extension module",
            PASSING,
            "pkg/calc.cpython-311-x86_64-linux-gnu.so",
            b"\x7fELF\0",
            compiled,
        ),
        beside(
            "path file",
            PASSING,
            "tests/x.pth",
            b"import os\n",
            compiled,
        ),
        beside(
            "package in the place of a module",
            PASSING,
            "pkg/calc/__init__.py",
            b"add = print\n",
            code,
        ),
        beside(
            "other code",
            PASSING,
            "pkg/__init__.py",
            b"import pkg.calc\npkg.calc.add = lambda a, b: a + b\n",
            code,
        ),
        beside("new code", PASSING, "pkg/util.py", b"x = 1\n", code),
        beside(
            "code of the fix",
            GOOD,
            "pkg/calc.py",
            b"def add(a, b):\n    return 0\n\n\ndef twice(a):\n    return a\n",
            "",
        ),
        beside(
            "data of the code",
            GOOD,
            "pkg/data.json",
            b"{}\n",
            "which is outside the folders of tests",
        ),
        beside(
            "module in the place of the package",
            PASSING,
            "tests/pkg.py",
            b"x = 1\n",
            "in the place of `pkg`",
        ),
        beside(
            "module in the place of Python's",
            PASSING,
            "tests/json.py",
            b"x = 1\n",
            "in the place of `json`",
        ),
        beside(
            "plugin by metadata",
            PASSING,
            "x.egg-info/entry_points.txt",
            b"[pytest11]\nx = tests.helpers_x\n",
            "which is metadata of a package",
        ),
        beside(
            "startup of Python",
            PASSING,
            "sitecustomize.py",
            b"import sys\n",
            startup,
        ),
        beside(
            "startup below",
            PASSING,
            "src/usercustomize.py",
            b"import sys\n",
            startup,
        ),
        beside(
            "the recorder's place",
            PASSING,
            "testwright_pytest.py",
            b"import sys\n",
            startup,
        ),
        beside(
            "the runner's place",
            PASSING,
            "pytest/__init__.py",
            b"import sys\n",
            startup,
        ),
    ]
}

fn forgeries(r: &Repository) -> Vec<Forgery> {
    let old = std::fs::read_to_string(r.folder.join("pkg/calc.py")).unwrap();
    let appended = |name, tests: &str, reason| Forgery {
        name,
        patch: r.append_tests_patch(tests),
        reason,
    };
    let mut all = with_other_files(r);
    all.extend(
        COMPARISONS
            .iter()
            .map(|(name, expression)| appended(*name, &asserting(expression, &old), READS)),
    );
    // Which of the two sides fails depends on the trace; both are alike.
    all.extend(
        TRACES
            .iter()
            .map(|(name, expression)| appended(*name, &asserting(expression, &old), "")),
    );
    all.push(appended("forged record", FORGED_RECORD, READS));
    all.push(appended("registered hook", REGISTERED, READS));
    all.push(appended("hash seed", BY_HASH_SEED, ""));
    all.push(appended("user", BY_USER, ""));
    all
}

/// Returns the names of the forgeries that succeed, or fail for another reason.
fn mistakes(bench: &GradingBench, forgeries: &[Forgery]) -> Vec<String> {
    let instance = bench.repository.instance("plain", ISSUE);
    mistakes_with(bench, &instance, forgeries)
}

/// Returns the same for this instance.
fn mistakes_with(bench: &GradingBench, instance: &Value, forgeries: &[Forgery]) -> Vec<String> {
    bench.dataset(std::slice::from_ref(instance));
    let good = bench.repository.append_tests_patch(GOOD);
    let mut predictions: Vec<(&str, &str, Option<&str>)> = forgeries
        .iter()
        .map(|forgery| (forgery.name, "plain", Some(forgery.patch.as_str())))
        .collect();
    predictions.push(("honest", "plain", Some(&good)));
    bench.predictions(&predictions);
    assert_exit_code(
        &bench.grade(&["--workers", "2"], "out").output().unwrap(),
        0,
    );
    let results = bench.results("out");
    let strict = |name: &str| &results[&(name.to_owned(), "plain".to_owned())]["strict"];
    assert_eq!(
        strict("honest")["fail_to_pass"],
        true,
        "{}",
        strict("honest")
    );
    let mut wrong = Vec::new();
    for forgery in forgeries {
        let verdict = strict(forgery.name);
        let reason = verdict["reason"].as_str().unwrap();
        if verdict["fail_to_pass"] != false || !reason.contains(forgery.reason) {
            wrong.push(format!("{}: {verdict}", forgery.name));
        }
    }
    wrong
}

#[test]
fn forgeries_are_rejected() {
    let bench = GradingBench::new(None);
    let wrong = mistakes(&bench, &forgeries(&bench.repository));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fixes often change more than code. Tests of those files say nothing about the issue.
#[test]
fn files_beside_code_do_not_tell_sides() {
    let bench = GradingBench::new(None);
    let repository = &bench.repository;
    let old = std::fs::read(repository.folder.join("pkg/calc.py")).unwrap();
    repository.write("CHANGES.rst", b"1.0: first\n");
    repository.write("pkg/data.json", b"{}\n");
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "Add files"]);
    let mut instance = repository.instance("plain", ISSUE);
    let fixed = String::from_utf8(old)
        .unwrap()
        .replace("a + b + 1", "a + b");
    instance["patch"] = json!(repository.patch(|r| {
        r.write("pkg/calc.py", fixed.as_bytes());
        r.write("CHANGES.rst", b"1.1: fixed\n1.0: first\n");
        r.write("pkg/data.json", b"{\"b\": 0}\n");
        r.write("pkg/extra.py", b"X = 1\n");
    }));
    let conditions = [
        ("changelog", "'1.1' in open('CHANGES.rst').read()"),
        ("size of data", "os.path.getsize('pkg/data.json') != 3"),
        (
            "number of files",
            "len([n for n in os.listdir('pkg') if n.endswith('.py')]) != 2",
        ),
        (
            "number of files without those of a placebo",
            "len([n for n in os.listdir('pkg') if n.endswith('.py') and n[0] != '_']) != 1 and 'spare' not in str(os.listdir('pkg'))",
        ),
    ];
    let forgeries = conditions.map(|(name, condition)| Forgery {
        name,
        patch: repository.append_tests_patch(&asserting(condition, "")),
        reason: READS,
    });
    let wrong = mistakes_with(&bench, &instance, &forgeries);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The only commit of the sandbox's repository must not be the old code on both sides.
#[test]
fn git_objects_do_not_tell_sides() {
    let bench = GradingBench::new(None);
    let recipe = bench.repository.folder.join("testwright.toml");
    let text = std::fs::read_to_string(&recipe).unwrap() + "git = true\n";
    bench.repository.write("testwright.toml", text.as_bytes());
    bench.repository.git(&["commit", "-qam", "Use git"]);
    let test = "\n\ndef test_negative():\n    import subprocess\n    add(1, 2)\n    \
                changed = subprocess.check_output(['git', 'status', '--porcelain', 'pkg'])\n    \
                assert changed\n";
    let forgery = Forgery {
        name: "git objects",
        patch: bench.repository.append_tests_patch(test),
        reason: "",
    };
    let wrong = mistakes(&bench, &[forgery]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Code may read the state of the repository, for example for its version.
    let clean = format!(
        "{GOOD}    import subprocess\n    \
         assert not subprocess.check_output(['git', '-c', 'safe.directory=*', 'diff', '--name-only', 'HEAD', '--', 'pkg'])\n"
    );
    let clean = bench.repository.append_tests_patch(&clean);
    bench.predictions(&[("clean", "plain", Some(&clean))]);
    assert_exit_code(&bench.grade(&[], "clean").output().unwrap(), 0);
    let results = bench.results("clean");
    let strict = &results[&("clean".to_owned(), "plain".to_owned())]["strict"];
    assert_eq!(strict["fail_to_pass"], true, "{strict}");
}

/// A fix often adds documentation, and patches of tests may add some, too.
#[test]
fn documentation_does_not_tell_sides() {
    let bench = GradingBench::new(None);
    let repository = &bench.repository;
    let entries: String = (0..20).map(|n| format!("1.0: item {n}\n")).collect();
    repository.write("CHANGES.rst", entries.as_bytes());
    repository.write("pkg/__init__.py", b"from .calc import *\n");
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "Add files"]);
    let mut instance = repository.instance("plain", ISSUE);
    instance["patch"] = json!(repository.patch(|r| {
        let fixed = "def add(a, b):\n    'Adds numbers.'\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n";
        r.write("pkg/calc.py", fixed.as_bytes());
        r.write("CHANGES.rst", format!("1.1: fixed\n{entries}").as_bytes());
    }));
    let docstring = asserting("add.__doc__ is not None", "");
    let changelog = format!("{entries}0.9: tests\n");
    let of_changelog = format!("len(open('CHANGES.rst').read()) != {}", changelog.len());
    let tests = format!("{TESTS}{}", asserting(&of_changelog, ""));
    let of_data = format!("len(open('tests/changes.rst').read()) != {}", entries.len());
    let renaming = format!("{TESTS}{}", asserting(&of_data, ""));
    let forgeries = [
        Forgery {
            name: "docstring in a package that imports all names",
            patch: repository.append_tests_patch(&docstring),
            reason: READS,
        },
        Forgery {
            name: "changelog that both change",
            patch: repository.patch(|r| {
                r.write("tests/test_calc.py", tests.as_bytes());
                r.write("CHANGES.rst", changelog.as_bytes());
            }),
            reason: "",
        },
        Forgery {
            name: "changelog that becomes data of tests",
            patch: repository.patch(|r| {
                r.write("tests/test_calc.py", renaming.as_bytes());
                r.git(&["mv", "CHANGES.rst", "tests/changes.rst"]);
            }),
            reason: "",
        },
    ];
    let wrong = mistakes_with(&bench, &instance, &forgeries);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
