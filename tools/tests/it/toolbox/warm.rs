//! Repeated runs are forked from a process that has everything loaded, and give the same result as a new process.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Client;
use crate::project::Project;

/// Loading takes time, and is recorded in a file beside the workspace.
const PKG: &str = "\
import os, time
time.sleep(0.35)
with open(os.path.join(os.path.dirname(__file__), '../../loads'), 'a') as f:
    f.write('x')
def half(n):
    return n // 2
";

const TESTS: &str = "\
import os, random, sys
import pkg
import pytest

STATE = []

def test_passes(tmp_path):
    STATE.append(1)
    assert len(STATE) == 1 and pkg.half(4) == 2

def test_fails(capsys):
    print('captured')
    print('also', file=sys.stderr)
    assert pkg.half(3) == 2

@pytest.mark.parametrize('n', [1, 2, 'a b'])
def test_parameters(n):
    assert n == 1

@pytest.mark.skip(reason='not now')
def test_skipped():
    assert False

@pytest.mark.xfail
def test_xfails():
    assert False

@pytest.fixture
def broken():
    raise ValueError('broken')

def test_error(broken):
    pass

def test_a_process_of_its_own():
    assert os.getsid(0) == os.getpid()
    assert os.read(0, 1) == b''
    assert 'testwright_fork_server' not in os.environ.get('PYTHONPATH', '')
";

fn project(files: &[(&str, &str)]) -> Project {
    let base_files = [("pkg/__init__.py", PKG), ("tests/test_a.py", TESTS)];
    let mut all: Vec<(&str, &str)> = base_files.to_vec();
    for file in files {
        all.retain(|(path, _)| path != &file.0);
        all.push(*file);
    }
    Project::new(&all)
}

/// Returns how often the package was loaded.
fn loads(project: &Project) -> usize {
    let file: PathBuf = project.root().join("../loads");
    std::fs::read(file).map_or(0, |bytes| bytes.len())
}

fn write(project: &Project, path: &str, content: &str) {
    // The kernel's clock advances in ticks.
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::fs::write(project.root().join(path), content).unwrap();
}

/// Runs tests and returns the report without the parts that differ between runs.
fn run_pytest(client: &mut Client, ids: &[&str]) -> (String, Value) {
    let (text, mut data) = client.call("run_pytest", &json!({ "tests": ids }));
    data["seconds"] = Value::Null;
    for test in data["tests"].as_array_mut().unwrap() {
        test["seconds"] = Value::Null;
    }
    // pytest's last line contains the duration.
    let printed = data["printed"].as_str().unwrap();
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| !line.contains(" in "))
        .collect();
    data["printed"] = lines.join("\n").into();
    (text, data)
}

/// Waits until the server is ready. The package is loaded by the process that collects, and by the one it was forked
/// from.
fn until_loaded(project: &Project, times: usize) {
    let begun = Instant::now();
    while loads(project) < times && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The load is recorded before loading is complete.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(loads(project), times);
}

#[test]
fn repeated_run_loads_nothing() {
    let project = project(&[]);
    let mut client = Client::start(&project);
    let cold = run_pytest(&mut client, &["tests/test_a.py"]);
    assert!(
        cold.0.starts_with("9 tests: 3 failed, 1 error, 3 passed"),
        "{}",
        cold.0
    );
    until_loaded(&project, 3);
    for _ in 0..3 {
        assert_eq!(cold, run_pytest(&mut client, &["tests/test_a.py"]));
    }
    let one = run_pytest(&mut client, &["tests/test_a.py::test_fails"]);
    assert!(one.0.starts_with("1 test: 1 failed"), "{}", one.0);
    assert_eq!(loads(&project), 3);
    // Other programs start and end meanwhile.
    client.call("run_python", &json!({ "code": "print(1)" }));
    assert_eq!(
        one,
        run_pytest(&mut client, &["tests/test_a.py::test_fails"])
    );
    assert_eq!(loads(&project), 3);
    assert!(client.close());
}

#[test]
fn edits_cause_collection_or_reload() {
    let project = project(&[]);
    let mut client = Client::start(&project);
    let id = ["tests/test_a.py::test_fails"];
    assert!(run_pytest(&mut client, &id).0.contains("assert 1 == 2"));
    until_loaded(&project, 3);
    write(
        &project,
        "tests/test_a.py",
        &TESTS.replace("half(3) == 2", "half(9) == 2"),
    );
    for _ in 0..2 {
        assert!(run_pytest(&mut client, &id).0.contains("assert 4 == 2"));
    }
    assert_eq!(loads(&project), 3);

    write(&project, "pkg/__init__.py", &PKG.replace("// 2", "// 3"));
    assert!(run_pytest(&mut client, &id).0.contains("assert 3 == 2"));
    until_loaded(&project, 6);
    assert!(run_pytest(&mut client, &id).0.contains("assert 3 == 2"));
    assert_eq!(loads(&project), 6);

    // Files that loaded code reads may have any content.
    write(&project, "tests/data.json", "{}");
    assert!(run_pytest(&mut client, &id).0.contains("assert 3 == 2"));
    until_loaded(&project, 9);
}

#[test]
fn imports_are_preloaded_for_repeated_runs() {
    let late = "import pkg\n\ndef test_a():\n    import late\n    assert late.VALUE == 1\n";
    let tests = [
        ("tests/test_a.py", late),
        (
            "late.py",
            "with open('../loads-of-late', 'a') as f:\n    f.write('x')\nVALUE = 1\n",
        ),
    ];
    let project = project(&tests);
    let of_late =
        || std::fs::read(project.root().join("../loads-of-late")).map_or(0, |bytes| bytes.len());
    let mut client = Client::start(&project);
    let id = ["tests/test_a.py"];
    let cold = run_pytest(&mut client, &id);
    until_loaded(&project, 3);
    assert_eq!(cold, run_pytest(&mut client, &id));
    // Imported by the new process, the one that tries the import, the collector, and the process that it was forked
    // from.
    let times = of_late();
    assert_eq!(times, 4);
    for _ in 0..3 {
        assert_eq!(cold, run_pytest(&mut client, &id));
    }
    write(&project, "tests/test_a.py", &format!("{late}\n"));
    assert_eq!(cold, run_pytest(&mut client, &id));
    assert_eq!(of_late(), times);

    write(&project, "late.py", "VALUE = 2\n");
    assert!(run_pytest(&mut client, &id).0.contains("assert 2 == 1"));
}

#[test]
fn server_ends_with_toolbox() {
    let project = project(&[]);
    let mut client = Client::start(&project);
    run_pytest(&mut client, &["tests/test_a.py"]);
    until_loaded(&project, 3);
    assert!(client.close());
    let mark = project.config.scratch.display().to_string();
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&mark)
        });
    assert_eq!(processes.count(), 0);
}

/// Description, files, the outcomes that a new process and a fork must both have, and whether a fork is used.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    bool,
);

/// Cases in which a run could detect whether its process was forked.
const BATTERY: &[Case] = &[
    (
        "a test ends its process",
        &[(
            "tests/test_a.py",
            "import os, pkg\n\ndef test_a():\n    assert True\n\ndef test_b():\n    os._exit(3)\n",
        )],
        "2 tests: 1 did not run, 1 passed",
        false,
    ),
    (
        "a test whose parent is looked at",
        &[(
            "tests/test_a.py",
            "import os, pkg\n\ndef test_a():\n    with open('/proc/%d/cmdline' % os.getppid()) as f:\n        assert '-m\\0pytest' not in f.read()\n",
        )],
        "1 test: 1 passed",
        true,
    ),
    (
        "a file that cannot be imported",
        &[(
            "tests/test_a.py",
            "import pkg, nothing_there\n\ndef test_a():\n    pass\n",
        )],
        "No test ran: 1 could not be collected",
        true,
    ),
    (
        "a file that warns while it is imported, where that is an error",
        &[
            ("pytest.ini", "[pytest]\nfilterwarnings = error\n"),
            (
                "old.py",
                "import warnings\nwarnings.warn('gone soon', DeprecationWarning)\n",
            ),
            (
                "tests/test_a.py",
                "import pkg, old\n\ndef test_a():\n    pass\n",
            ),
        ],
        "No test ran: 1 could not be collected",
        true,
    ),
    (
        "a file that warns while it is imported",
        &[
            (
                "old.py",
                "import warnings\nwarnings.warn('gone soon', DeprecationWarning)\n",
            ),
            (
                "tests/test_a.py",
                "import pkg, old\n\ndef test_a():\n    pass\n",
            ),
        ],
        "1 test: 1 passed",
        true,
    ),
    (
        "numbers that follow from a seed",
        &[
            ("tests/conftest.py", "import random\nrandom.seed(3)\n"),
            (
                "tests/test_a.py",
                "import random, pkg\n\ndef test_a():\n    assert random.Random(3).random() == random.random()\n",
            ),
        ],
        "1 test: 1 passed",
        true,
    ),
    (
        "a thread of the test file's",
        &[(
            "tests/test_a.py",
            "import threading, pkg\nQUEUE = []\nEVENT = threading.Event()\ndef work():\n    EVENT.wait()\n    QUEUE.append(1)\n    DONE.set()\nDONE = threading.Event()\nthreading.Thread(target=work, daemon=True).start()\n\ndef test_a():\n    EVENT.set()\n    assert DONE.wait(30) and QUEUE == [1]\n",
        )],
        "1 test: 1 passed",
        false,
    ),
    (
        "output of every kind, with capturing and without",
        &[(
            "tests/test_a.py",
            "import os, subprocess, sys, pkg\nprint('while importing')\n\ndef test_a(capfd):\n    subprocess.check_call(['echo', 'child'])\n    os.write(1, b'raw')\n    assert capfd.readouterr().out == 'child\\nraw'\n\ndef test_b():\n    print('printed')\n    os.write(2, b'error')\n    assert not sys.stdin.isatty() and os.read(0, 1) == b''\n    assert False\n",
        )],
        "2 tests: 1 failed, 1 passed",
        true,
    ),
    (
        "output that is never captured",
        &[
            ("pytest.ini", "[pytest]\naddopts = -s\n"),
            (
                "tests/test_a.py",
                "import pkg\nprint('while importing')\n\ndef test_a():\n    print('printed')\n\ndef test_b():\n    assert False\n",
            ),
        ],
        "2 tests: 1 failed, 1 passed",
        true,
    ),
    (
        "helpers and fixtures beside the tests, and settings that options change",
        &[
            (
                "pytest.ini",
                "[pytest]\naddopts = -ra --strict-markers\nmarkers = slow\n",
            ),
            (
                "tests/conftest.py",
                "import pytest\n\n@pytest.fixture(scope='session')\ndef made(tmp_path_factory):\n    path = tmp_path_factory.mktemp('made')\n    yield path\n    assert path.exists()\n",
            ),
            ("tests/helpers.py", "VALUE = []\n"),
            (
                "tests/test_a.py",
                "import pytest, pkg\nfrom helpers import VALUE\n\n@pytest.mark.slow\ndef test_a(made):\n    VALUE.append(1)\n    assert VALUE == [1] and not list(made.iterdir())\n\n@pytest.mark.fast\ndef test_b():\n    pass\n",
            ),
        ],
        "No test ran: 1 could not be collected",
        true,
    ),
    (
        "unittest's classes, with set-up for all",
        &[(
            "tests/test_a.py",
            "import unittest, pkg\n\nclass A(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.value = pkg.half(4)\n\n    def test_a(self):\n        self.assertEqual(self.value, 2)\n\n    def test_b(self):\n        with self.subTest('x'):\n            self.assertEqual(self.value, 3)\n",
        )],
        "2 tests: 1 failed, 1 passed",
        true,
    ),
    (
        "a module that a test imports, and its state",
        &[
            ("late.py", "STATE = []\n"),
            (
                "tests/test_a.py",
                "import pkg\n\ndef test_a():\n    import late\n    late.STATE.append(1)\n    assert late.STATE == [1]\n",
            ),
        ],
        "1 test: 1 passed",
        true,
    ),
    (
        "a test that looks whether something is imported",
        &[
            ("late.py", "STATE = []\n"),
            (
                "tests/test_a.py",
                "import sys, pkg\n\ndef test_a():\n    assert 'late' not in sys.modules\n    import late\n    assert sys.modules['late'] is late\n",
            ),
        ],
        "1 test: 1 passed",
        true,
    ),
    (
        "modules that print, warn, change the process or cannot be imported twice, imported by a test",
        &[
            ("prints.py", "print('printed by a module')\n"),
            (
                "warns.py",
                "import warnings\nwarnings.warn('gone soon', DeprecationWarning)\n",
            ),
            (
                "changes.py",
                "import os, random\nos.environ['CHANGED'] = 'x'\nrandom.random()\n",
            ),
            ("quiet.py", "import warns, changes\n"),
            (
                "tests/test_a.py",
                "import os, pkg, pytest\n\ndef test_prints(capsys):\n    assert 'CHANGED' not in os.environ\n    import prints\n    assert capsys.readouterr().out == 'printed by a module\\n'\n\ndef test_warns():\n    with pytest.warns(DeprecationWarning):\n        import quiet\n    assert os.environ['CHANGED'] == 'x'\n\ndef test_fails():\n    import prints\n    assert 0\n",
            ),
        ],
        "3 tests: 1 failed, 2 passed",
        true,
    ),
];

#[test]
fn forked_and_new_processes_agree() {
    for (name, files, outcome, is_forked) in BATTERY {
        let project = project(files);
        let mut client = Client::start(&project);
        let cold = run_pytest(&mut client, &["tests/test_a.py"]);
        assert!(cold.0.starts_with(outcome), "{name}: {}", cold.0);
        for _ in 0..3 {
            let warm = run_pytest(&mut client, &["tests/test_a.py"]);
            assert_eq!(cold, warm, "{name}");
        }
        if *is_forked {
            assert!(loads(&project) <= 3, "{name}");
        } else {
            assert!(loads(&project) > 3, "{name}");
        }
        let path = project.root().join("tests/test_a.py");
        let text = std::fs::read_to_string(&path).unwrap();
        write(&project, "tests/test_a.py", &format!("{text}\n"));
        assert_eq!(
            cold,
            run_pytest(&mut client, &["tests/test_a.py"]),
            "{name}, collected again"
        );
    }
}
