//! Programs that tools start must not reach the toolbox: its memory, streams, files or lifetime.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testwright_tools::outcomes::report::Outcome;

use crate::project::{Project, answer, test};
use crate::toolbox::Client;

/// A project with a private toolbox folder, outside the folders that programs write to.
struct PrivateProject {
    project: Project,
    private: tempfile::TempDir,
}

impl PrivateProject {
    fn new(files: &[(&str, &str)]) -> Self {
        let private = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut project = Project::new(files);
        project.config.private = Some(private.path().join("private"));
        PrivateProject { project, private }
    }

    fn folder(&self) -> PathBuf {
        self.private.path().join("private")
    }
}

const PKG: &str = "def half(n):\n    return n // 2\n";
const TESTS: &str = "import pkg\n\ndef test_old():\n    assert pkg.half(4) == 2\n";

fn private_project() -> PrivateProject {
    PrivateProject::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", TESTS)])
}

/// A snippet that makes several attempts and prints `name: result` for each.
const ATTEMPTS: &str = r#"
import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
toolbox = os.getppid()

def attempt(name, work):
    try:
        work()
        print(name + ": worked")
    except OSError as error:
        print(name + ": refused")

def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

def own_signals():
    read, write = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, toolbox)
"#;

fn attempts(isolated: &PrivateProject, tried: &[(&str, &str)]) -> String {
    let mut client = Client::start(&isolated.project);
    let mut code = ATTEMPTS.to_owned();
    for (name, work) in tried {
        code.push_str(&format!("attempt({name:?}, lambda: {work})\n"));
    }
    let (text, _) = client.call("run_python", &json!({ "code": code }));
    // The toolbox still answers.
    let (alive, _) = client.call("shell", &json!({ "command": "echo alive" }));
    assert_eq!(alive, "alive");
    text
}

/// The calls have no effect if they are allowed, so that the toolbox survives and can report.
#[test]
fn toolbox_is_out_of_reach() {
    let tried = [
        ("memory", "open('/proc/%d/mem' % toolbox, 'r+b')"),
        ("output", "open('/proc/%d/fd/1' % toolbox, 'wb', 0)"),
        ("input", "open('/proc/%d/fd/0' % toolbox, 'rb', 0)"),
        ("signal", "os.kill(toolbox, 0)"),
        ("stop", "os.kill(toolbox, signal.SIGCONT)"),
        ("everybody", "os.kill(-1, 0)"),
        ("group", "os.kill(-os.getpgid(toolbox), 0)"),
        (
            "threads",
            "[os.kill(int(thread), 0) for thread in sorted(os.listdir('/proc/%d/task' % toolbox))]",
        ),
        ("owner of signals", "own_signals()"),
        (
            "queue",
            "call(129, toolbox, 0, ctypes.create_string_buffer(128))",
        ),
        ("x32", "call(0x40000000 + 62, toolbox, 0)"),
        ("pidfd", "os.close(os.pidfd_open(toolbox))"),
        ("process vm", "call(311, toolbox, 0, 0, 0, 0, 0)"),
        (
            "limits",
            "call(302, toolbox, 7, 0, ctypes.create_string_buffer(16))",
        ),
        ("priority", "os.setpriority(os.PRIO_PROCESS, toolbox, 0)"),
        (
            "scheduler",
            "os.sched_setaffinity(toolbox, os.sched_getaffinity(0))",
        ),
        (
            "memory victim",
            "open('/proc/%d/oom_score_adj' % toolbox, 'w').write('0')",
        ),
    ];
    let text = attempts(&private_project(), &tried);
    let worked: Vec<&str> = text.lines().filter(|l| !l.ends_with("refused")).collect();
    assert_eq!(worked, Vec::<&str>::new());
    assert_eq!(text.lines().count(), tried.len());
}

#[test]
fn toolbox_folder_is_not_writable() {
    let isolated = private_project();
    let folder = isolated.folder().display().to_string();
    let tried = [
        ("new file", format!("open({folder:?} + '/x', 'w')")),
        (
            "baseline",
            format!("open({folder:?} + '/baseline.json', 'a')"),
        ),
        (
            "truncated",
            format!("os.truncate({folder:?} + '/baseline.json', 0)"),
        ),
        (
            "removed",
            format!("os.unlink({folder:?} + '/baseline.json')"),
        ),
        (
            "renamed",
            format!("os.rename({folder:?}, {folder:?} + '2')"),
        ),
        (
            "linked",
            format!("os.link({folder:?} + '/baseline.json', '/tmp/linked-%d' % os.getpid())"),
        ),
    ];
    let tried: Vec<(&str, &str)> = tried.iter().map(|(n, w)| (*n, w.as_str())).collect();
    let text = attempts(&isolated, &tried);
    let worked: Vec<&str> = text.lines().filter(|l| !l.ends_with("refused")).collect();
    assert_eq!(worked, Vec::<&str>::new());
}

/// Operations that tests need stay allowed.
#[test]
fn programs_can_write_elsewhere() {
    let tried = [
        ("workspace", "open('written', 'w').write('x')"),
        ("renamed", "os.rename('written', 'pkg/written')"),
        (
            "temporary",
            "open('/tmp/written-%d' % os.getpid(), 'w').write('x')",
        ),
        (
            "moved",
            "os.rename('/tmp/written-%d' % os.getpid(), '/tmp/moved-%d' % os.getpid())",
        ),
        ("removed", "os.unlink('/tmp/moved-%d' % os.getpid())"),
        ("null", "open('/dev/null', 'w').write('x')"),
        ("stderr", "open('/dev/stderr', 'w').write('')"),
        (
            "shared memory",
            "open('/dev/shm/written-%d' % os.getpid(), 'w').write('x')",
        ),
        ("pipe", "os.mkfifo('pipe')"),
        ("home", "open(os.path.expanduser('~/x'), 'w').write('x')"),
        (
            "own child",
            "__import__('subprocess').Popen(['sleep', '60']).kill()",
        ),
        ("own group", "os.killpg(os.getpgrp(), 0)"),
        (
            "own limits",
            "__import__('resource').setrlimit(__import__('resource').RLIMIT_CORE, (0, 0))",
        ),
    ];
    let text = attempts(&private_project(), &tried);
    let refused: Vec<&str> = text.lines().filter(|l| !l.ends_with("worked")).collect();
    assert_eq!(refused, Vec::<&str>::new());
}

#[test]
fn handshake_reports_confinement_layers() {
    let (_, data) = Client::start(&private_project().project).call("handshake", &json!({}));
    let all = json!({ "undumpable": true, "signals": true, "files": true, "filter": true });
    assert_eq!(data["layers"], all);
}

/// A service of the repository runs before the toolbox does, in the same sandbox.
#[test]
fn earlier_program_cannot_change_toolbox() {
    let isolated = private_project();
    std::fs::create_dir_all(isolated.folder()).unwrap();
    let toolbox = isolated.folder().join("toolbox");
    std::fs::copy(env!("CARGO_BIN_EXE_toolbox"), &toolbox).unwrap();
    let tried = [
        ("write", "open(toolbox, 'r+b')"),
        ("replace", "os.rename(__file__, toolbox)"),
        ("remove", "os.remove(toolbox)"),
        ("beside", "open(toolbox + '2', 'w')"),
        (
            "move its folder",
            "os.rename(os.path.dirname(toolbox), os.path.dirname(toolbox) + '2')",
        ),
        (
            "its own files",
            "open(os.path.dirname(__file__) + '/own', 'w')",
        ),
        ("itself", "os.kill(os.getpid(), 0)"),
    ];
    let mut code = format!(
        "import os\ntoolbox = {:?}\ndef attempt(name, work):\n    try:\n        work()\n        print(name + ': worked')\n    \
         except OSError as error:\n        print(name + ': refused')\n",
        toolbox.display().to_string()
    );
    for (name, work) in tried {
        code.push_str(&format!("attempt({name:?}, lambda: {work})\n"));
    }
    let script = isolated.project.config.workspace.join("service.py");
    std::fs::write(&script, code).unwrap();
    let words = isolated.project.config.confine(&toolbox).unwrap();
    let output = std::process::Command::new(&words[0])
        .args(&words[1..])
        .arg("python3")
        .arg(&script)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(
        lines,
        [
            "write: refused",
            "replace: refused",
            "remove: refused",
            "beside: refused",
            "move its folder: refused",
            "its own files: worked",
            "itself: worked",
        ]
    );
}

/// Files that earlier calls left in the folders of a run have no effect on the next one.
#[test]
fn test_runs_ignore_leftover_files() {
    let isolated = private_project();
    let mut client = Client::start(&isolated.project);
    let tests = json!({ "tests": ["tests/test_a.py"] });
    client.call("run_pytest", &tests);
    let scratch = isolated.project.config.scratch.display().to_string();
    let private = isolated.folder().display().to_string();
    let code = format!(
        "import os\n\
         for root in [{scratch:?}, {private:?}]:\n    \
         for folder, below, files in [(root, [], [])] + list(os.walk(root)):\n        \
         for name in ['sitecustomize.py', 'usercustomize.py', 'testwright_record.py', 'json.py', 'pytest.py']:\n            \
         try:\n                \
         open(os.path.join(folder, name), 'w').write('import os; os._exit(77)')\n            \
         except OSError:\n                \
         pass\n\
         for folder in ['pytest/plugin', 'pytest/children', 'children', 'plugin']:\n    \
         os.makedirs(os.path.join({scratch:?}, folder), exist_ok=True)\n    \
         open(os.path.join({scratch:?}, folder, 'sitecustomize.py'), 'w').write('import os; os._exit(77)')\n"
    );
    client.call("run_python", &json!({ "code": code }));
    let (text, data) = client.call("run_pytest", &tests);
    assert_eq!(data["tests"][0]["outcome"], "passed", "{text}");
}

/// A toolbox folder that is now a link, a file, or inaccessible.
#[test]
fn replaced_folders_are_recreated() {
    let isolated = private_project();
    let mut client = Client::start(&isolated.project);
    let scratch = isolated.project.config.scratch.display().to_string();
    let tests = json!({ "tests": ["tests/test_a.py"] });
    for replace in [
        format!("rm -rf {scratch}; ln -s /nowhere {scratch}"),
        format!("rm -rf {scratch}; touch {scratch}"),
        format!("rm -rf {scratch}; mkdir {scratch}; ln -s /nowhere {scratch}/home"),
        format!("chmod 0 {scratch}"),
    ] {
        client.call("shell", &json!({ "command": replace }));
        let (text, data) = client.call("run_pytest", &tests);
        assert_eq!(data["tests"][0]["outcome"], "passed", "{replace}: {text}");
    }
}

const FORGER: &str = r#"
import json, os, pkg, sys

def test_forger():
    assert pkg.half(4) == 2
    settings = sys.modules["testwright_record"].SETTINGS
    me = "tests/test_a.py::test_forger"
    failure = {"exception": "AssertionError", "kinds": ["AssertionError"], "message": "1 == 2", "name": None, "cause": None, "frames": []}
    phase = {"event": "phase", "id": me, "when": "call", "outcome": "failed", "xfail": False, "unexpected": False, "seconds": 0.1, "failure": failure, "captured": ""}
    with open(settings["report"], "wb", buffering=0, closefd=False) as report:
        for event in [phase, {"event": "executed", "id": me, "files": ["pkg/__init__.py"]}, {"event": "end", "id": me}]:
            report.write(json.dumps(event).encode() + b"\n")
"#;

/// A test can add to the record, since it runs in the same process as the recorder, but it cannot forge the exit
/// status.
#[test]
fn forged_record_contradicts_exit_status() {
    let isolated = PrivateProject::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", FORGER)]);
    let report = answer(&isolated.project.request(&["tests/test_a.py"])).report;
    assert!(report.contradicted, "{report:#?}");
    let sound = isolated_report(&private_project_with(
        "def test_a():\n    assert 0\ndef test_b(): pass\n",
    ));
    assert!(!sound.contradicted && sound.tests.len() == 2, "{sound:#?}");
}

fn private_project_with(tests: &str) -> PrivateProject {
    PrivateProject::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", tests)])
}

fn isolated_report(isolated: &PrivateProject) -> testwright_tools::outcomes::report::TestReport {
    answer(&isolated.project.request(&["tests/test_a.py"])).report
}

/// Recorded events cannot be removed, neither by truncating nor by deleting the report.
#[test]
fn record_cannot_be_rewritten() {
    let tests = r#"
import os, sys

def test_a():
    assert 0

def test_b():
    report = sys.modules["testwright_record"].SETTINGS["report"]
    name = "/proc/self/fd/%d" % report
    for work in [lambda: os.ftruncate(report, 0), lambda: os.truncate(name, 0), lambda: os.unlink(name),
                 lambda: os.lseek(report, 0, 0), lambda: open(name, "w").close()]:
        try:
            work()
        except OSError:
            pass
"#;
    let report = isolated_report(&private_project_with(tests));
    let a = test(&report, "tests/test_a.py::test_a");
    assert_eq!(a.outcome, Outcome::Failed, "{report:#?}");
    let b = test(&report, "tests/test_a.py::test_b");
    assert_eq!(b.outcome, Outcome::Passed, "{report:#?}");
}

/// An endless record exceeds the limit: the deadline still applies, and earlier events are kept.
#[test]
fn endless_record_is_read_until_deadline() {
    let tests = r#"
import os, sys

def test_a():
    assert 0

def test_b():
    report = open(sys.modules["testwright_record"].SETTINGS["report"], "wb", buffering=0)
    while True:
        report.write(b"x" * 65536)
"#;
    let isolated = private_project_with(tests);
    let mut request = isolated.project.request(&["tests/test_a.py"]);
    request.seconds = 8;
    let begun = Instant::now();
    let report = answer(&request).report;
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(report.timed_out);
    let a = test(&report, "tests/test_a.py::test_a");
    assert_eq!(a.outcome, Outcome::Failed, "{report:#?}");
}

/// Returns the changes that are not part of the patch, with the reasons.
fn dropped(isolated: &PrivateProject, prepare: &str) -> Vec<(String, String)> {
    let mut client = Client::start(&isolated.project);
    client.call("shell", &json!({ "command": prepare }));
    let (_, sorted) = client.call("test_patch", &json!({}));
    let files = sorted["files"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    files
        .iter()
        .filter(|file| file["kept"] == false)
        .map(|file| (text(&file["path"]), text(&file["reason"])))
        .collect()
}

#[test]
fn patch_excludes_runner_settings_and_links() {
    let isolated = private_project();
    let dropped_files = dropped(
        &isolated,
        "printf '[pytest]\\naddopts = -p planted\\n' | tee tests/pytest.ini tests/tox.ini tests/.pytest.ini > /dev/null; \
         printf 'x' | tee tests/sitecustomize.py tests/.coveragerc > /dev/null; ln -s /etc/passwd tests/link; \
         ln -s ../pkg/__init__.py tests/test_link.py; mkdir -p tests/data; echo '[x]' > tests/data/setup.cfg; \
         printf 'def test_x(): pass\\n' > tests/test_x.py",
    );
    let paths: Vec<&str> = dropped_files
        .iter()
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "tests/.coveragerc",
            "tests/.pytest.ini",
            "tests/link",
            "tests/pytest.ini",
            "tests/sitecustomize.py",
            "tests/test_link.py",
            "tests/tox.ini"
        ]
    );
}

/// Large files do not fit into records, answers and messages between toolbox and host.
#[test]
fn patch_excludes_large_files() {
    let isolated = private_project();
    let mut client = Client::start(&isolated.project);
    let script = "truncate -s 30M tests/data.bin; for n in 1 2 3; do truncate -s 1500K tests/part$n.bin; done; \
                printf 'def test_x(): assert 0\\n' > tests/test_x.py";
    client.call("shell", &json!({ "command": script }));
    let (_, state) = client.call("changes", &json!({}));
    assert_eq!(state["left_out"], json!(["tests/data.bin"]));
    let (_, sorted) = client.call("test_patch", &json!({}));
    let problems: Vec<(&str, &str)> = (sorted["problems"].as_array().unwrap().iter())
        .map(|problem| {
            (
                problem["kind"].as_str().unwrap(),
                problem["text"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        "tests/data.bin: it has 30720 KiB; a file in a test patch has at most 2048 KiB.",
        "tests/part3.bin: with its 1500 KiB the files of the test patch have more than 4096 KiB together.",
    ];
    assert_eq!(problems, expected.map(|text| ("too_large", text)));
    assert!(!isolated.project.root().join("tests/data.bin").exists());
    let (_, state) = client.call("changes", &json!({}));
    assert_eq!(state["files"].as_array().unwrap().len(), 3, "{state}");
    assert!(state.get("left_out").is_none());
}

/// The base commit decides which files are tests, even if a model changes the settings before a restart.
#[test]
fn settings_cannot_turn_code_into_tests() {
    let isolated = PrivateProject::new(&[("pkg/latest.py", PKG), ("tests/test_a.py", TESTS)]);
    std::fs::write(
        isolated.project.root().join("pytest.ini"),
        "[pytest]\npython_files = *.py\n",
    )
    .unwrap();
    let changed = dropped(&isolated, "echo 'def half(n): return 0' > pkg/latest.py");
    assert!(
        changed.iter().any(|(path, _)| path == "pkg/latest.py"),
        "{changed:?}"
    );
}

/// Searches for the record under every name and number, and tries to read it back while it is written.
const TAKER: &str = r#"
import os, socket, stat, sys

def test_taker():
    record = sys.modules["testwright_record"]
    report = record.SETTINGS["report"]
    names = [report] if isinstance(report, str) else []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            names += ["/proc/%s/fd/%s" % (process, fd) for fd in os.listdir("/proc/%s/fd" % process)]
        except OSError:
            pass
    opened = []
    for name in names:
        try:
            if not stat.S_ISREG(os.stat(name).st_mode):
                opened.append(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
        except OSError:
            pass
    for fd in range(3, 2000):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                opened.append(fd)
        except OSError:
            pass
    taken = []
    for _ in range(200):
        record.emit("deselected", ids=["tests/test_a.py::test_lost"])
        for fd in opened:
            for read in (lambda: os.read(fd, 1 << 16), lambda: socket.socket(fileno=os.dup(fd)).recv(1 << 16, socket.MSG_PEEK | socket.MSG_DONTWAIT)):
                try:
                    if b'"event"' in read():
                        taken.append(fd)
                except OSError:
                    pass
    assert taken == []
"#;

#[test]
fn tests_cannot_read_the_record() {
    let isolated = private_project_with(TAKER);
    let report = isolated_report(&isolated);
    assert_eq!(report.tests.len(), 1, "{report:#?}");
    assert_eq!(report.tests[0].outcome, Outcome::Passed, "{report:#?}");
    // Run in a process forked from a warm one.
    let mut client = Client::start(&isolated.project);
    for _ in 0..2 {
        let (text, data) = client.call("run_pytest", &json!({ "tests": ["tests/test_a.py"] }));
        assert_eq!(data["tests"][0]["outcome"], "passed", "{text}");
    }
}

/// Tests that misuse their descriptors.
#[test]
fn record_survives_closed_and_foreign_descriptors() {
    let closes = "import os, sys
def test_closes():
    os.close(sys.modules['testwright_record'].SETTINGS['report'])
def test_after(): assert 0
";
    let report = isolated_report(&private_project_with(closes));
    let outcomes: Vec<_> = report.tests.iter().map(|test| test.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed, Outcome::Failed], "{report:#?}");

    // A socket that takes an hour to close must not block the toolbox.
    let sends = "import array, os, socket, struct, sys
def test_sends():
    listener = socket.create_server(('127.0.0.1', 0))
    client = socket.create_connection(listener.getsockname())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
    client.setblocking(False)
    try:
        while True: client.send(b'x' * 65536)
    except BlockingIOError: pass
    report = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(sys.modules['testwright_record'].SETTINGS['report']))
    report.sendmsg([b' '], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [client.fileno()]))])
    held = os.dup(listener.fileno())
    if os.fork() == 0:
        client.detach()
        os.setsid()
        import time
        time.sleep(600)
        os._exit(0)
    os.close(client.detach())
";
    let begun = Instant::now();
    let report = isolated_report(&private_project_with(sends));
    assert!(begun.elapsed() < Duration::from_secs(60), "{report:#?}");
}
