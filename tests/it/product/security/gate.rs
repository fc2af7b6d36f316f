//! Actions of a model in its sandbox do not affect the sandbox of the gate, which judges its submission.
//!
//! Each test plants something with `run_python` and submits a test that passes on the unchanged code. The gate must
//! reject it.

mod unrelated_inputs;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::program::{Boundary, TestDir, calls};

/// A test that passes on the unchanged example.
const PASSING: &str = "def test_bread_stays_bread():\n    assert slugify(\"bread\") == \"bread\"\n";

fn insert(code: &str) -> Value {
    calls(&[(
        "insert_function",
        json!({"path": "tests/test_slug.py", "code": code}),
    )])
}

fn python(code: &str) -> Value {
    calls(&[("run_python", json!({"code": code}))])
}

fn submit() -> Value {
    calls(&[("submit", json!({"reason": "I expected 'how-to'."}))])
}

/// Runs these replies. Returns the gate's objections to the last submission; empty if it was accepted.
fn findings(replies: &[Value], boundary: Boundary) -> Vec<String> {
    let verdict = verdict(replies, boundary);
    let findings = verdict["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["text"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs these replies. Returns the gate's verdict on the last submission.
fn verdict(replies: &[Value], boundary: Boundary) -> Value {
    let place = TestDir::within(boundary);
    let model = place.recording(replies);
    let steps = replies.len().to_string();
    let output = place
        .run_example(&[
            "--approach",
            "testwright",
            "--model",
            &model,
            "--max-steps",
            &steps,
            "--sandbox",
            boundary.sandbox(),
            "--python",
            "3.11",
        ])
        .output()
        .unwrap();
    assert!(
        output.status.code().is_some_and(|code| code <= 1),
        "{output:?}"
    );
    let answers = place.events();
    let last = answers
        .iter()
        .rfind(|event| event["event"] == "answer" && event["tool"] == "submit")
        .unwrap_or_else(|| panic!("{answers:#?}"));
    last["data"]["verdict"].clone()
}

/// Checks that the submission is rejected because its test passes.
#[track_caller]
fn passes(replies: &[Value], boundary: Boundary) {
    let report = findings(replies, boundary).join("\n");
    assert!(
        report.contains("no contributed test fails on this code"),
        "{boundary:?}: the gate found: {report:?}"
    );
}

fn everywhere(replies: impl Fn() -> Vec<Value>) {
    for boundary in Boundary::all() {
        passes(&replies(), boundary);
    }
}

/// Code that plants bytecode which Python never compares with its source.
const UNCHECKED_BYTECODE: &str = r#"
import importlib.util, marshal, pathlib
source = pathlib.Path("src/slugs/slug.py")
code = compile(source.read_text() + "\n\ndef slugify(*args, **more):\n    return 'wrong'\n", str(source.resolve()), "exec")
hashed = importlib.util.source_hash(source.read_bytes())
target = pathlib.Path(importlib.util.cache_from_source(str(source)))
target.parent.mkdir(exist_ok=True)
target.write_bytes(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + hashed + marshal.dumps(code))
import slugs
print(slugs.slugify("bread"))
"#;

#[test]
fn unchecked_bytecode_has_no_effect() {
    everywhere(|| vec![python(UNCHECKED_BYTECODE), insert(PASSING), submit()]);
}

/// A module that breaks `slugify` in every interpreter that imports it.
const HOOK: &str = r#"
import builtins, sys
original = builtins.__import__
def hooked(name, *args, **more):
    module = original(name, *args, **more)
    slug = sys.modules.get("slugs.slug")
    if slug is not None and hasattr(slug, "slugify"):
        slug.slugify = lambda *args, **more: "wrong"
        sys.modules["slugs"].slugify = slug.slugify
    return module
builtins.__import__ = hooked
"#;

/// Returns a call that writes the hook to all import folders, as modules that Python imports at startup.
fn plant() -> Value {
    let hook = serde_json::to_string(HOOK).unwrap();
    python(&format!(
        r#"
import os, pathlib, site, sys, tempfile
folders = [tempfile.gettempdir() + "/testwright/pytest/plugin", tempfile.gettempdir() + "/testwright/children"]
folders += [os.path.expanduser("~"), site.getusersitepackages(), "src", "."] + sys.path
for root in ["/home", os.path.expanduser("~/.."), tempfile.gettempdir()]:
    for folder, below, files in os.walk(root):
        if "plugin" in folder or any(name.startswith("testwright") for name in files):
            folders.append(folder)
for folder in folders:
    try:
        os.makedirs(folder, exist_ok=True)
        for name in ["sitecustomize.py", "usercustomize.py"]:
            pathlib.Path(folder, name).write_text({hook})
        pathlib.Path(folder, "planted.pth").write_text("import sitecustomize")
        print(folder)
    except OSError:
        pass
"#
    ))
}

#[test]
fn startup_modules_have_no_effect() {
    everywhere(|| {
        let tried = calls(&[("run_pytest", json!({"tests": ["tests/test_slug.py"]}))]);
        vec![tried, plant(), insert(PASSING), submit()]
    });
}

/// The test plugin is replaced with bytecode compiled from other code.
#[test]
fn replaced_plugin_has_no_effect() {
    let code = r#"
import importlib.util, marshal, os, pathlib, tempfile
hook = pathlib.Path("hook.txt")
for root in [tempfile.gettempdir(), "/home", os.path.expanduser("~/..")]:
    for folder, below, files in os.walk(root):
        for name in files:
            if name.startswith("testwright") and name.endswith(".py"):
                source = pathlib.Path(folder, name)
                code = compile(HOOK + source.read_text(), str(source), "exec")
                target = pathlib.Path(importlib.util.cache_from_source(str(source)))
                head = (1).to_bytes(4, "little") + importlib.util.source_hash(source.read_bytes())
                try:
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(importlib.util.MAGIC_NUMBER + head + marshal.dumps(code))
                    print(target)
                except OSError as error:
                    print(error)
"#;
    let code = format!("HOOK = {}\n{code}", serde_json::to_string(HOOK).unwrap());
    everywhere(|| {
        let tried = calls(&[("run_pytest", json!({"tests": ["tests/test_slug.py"]}))]);
        vec![tried, python(&code), insert(PASSING), submit()]
    });
}

#[test]
fn files_outside_patch_have_no_effect() {
    // The files are in temporary and home folders, in ignored paths, and in the environment's settings.
    let planted = r#"
import os, pathlib, tempfile
for folder in [tempfile.gettempdir(), os.path.expanduser("~"), "/var/tmp", "/dev/shm", "src/slugs.egg-info", "__pycache__", ".tox"]:
    try:
        os.makedirs(folder, exist_ok=True)
        pathlib.Path(folder, "planted").write_text("x")
    except OSError:
        pass
"#;
    let test = "def test_nothing_is_planted():\n    \
        import os, tempfile\n    \
        assert slugify(\"bread\") == \"bread\"\n    \
        for folder in [tempfile.gettempdir(), os.path.expanduser(\"~\"), \"/var/tmp\", \"/dev/shm\", \"src/slugs.egg-info\", \"__pycache__\", \".tox\"]:\n        \
        assert not os.path.exists(os.path.join(folder, \"planted\"))\n";
    everywhere(|| vec![python(planted), insert(test), submit()]);
}

/// The new test fails only on the changed code, and so do existing tests.
#[test]
fn shared_file_changing_code_is_rejected() {
    let shared = python(
        "open('tests/__init__.py', 'w').write('import slugs\\nold = slugs.slugify\\nslugs.slugify = lambda *a, **k: old(*a, **k) + \\'-\\'\\n')\n\
         open('tests/test_new.py', 'w').write('import slugs\\n\\ndef test_bread():\\n    assert slugs.slugify(\\'bread\\') == \\'bread\\'\\n')",
    );
    let report = findings(&[shared, submit()], Boundary::Namespaces).join("\n");
    let expected = "the change breaks existing tests, which pass without it: tests/test_slug.py::";
    assert!(report.contains(expected), "the gate found: {report:?}");
}

#[test]
fn shadowing_module_is_rejected() {
    let module = python("open('tests/slugs.py', 'w').write('slugify = str.upper\\n')");
    let replies = [module, insert(PASSING), submit()];
    passes(&replies, Boundary::Namespaces);
    let report = findings(&replies, Boundary::Namespaces).join("\n");
    let expected =
        "tests/slugs.py: tests would import it in the place of `slugs`; give it another name";
    assert!(report.contains(expected), "the gate found: {report:?}");
}

/// A file that exceeds the message size is an error of the submission, and the run continues.
#[test]
fn huge_file_is_rejected() {
    let large = python("open('tests/data.bin', 'wb').truncate(30 << 20)");
    let report = findings(&[large, insert(PASSING), submit()], Boundary::Namespaces).join("\n");
    let expected = "tests/data.bin: it has 30720 KiB; a file in a test patch has at most 2048 KiB";
    assert!(report.contains(expected), "the gate found: {report:?}");
}

/// Code under test is changed temporarily. `submit` restores it, so the gate must not judge the changed code.
#[test]
fn changed_code_has_no_effect() {
    let wrong = r#"
import pathlib
path = pathlib.Path("src/slugs/slug.py")
path.write_text(path.read_text() + "\n\ndef slugify(*args, **more):\n    return 'wrong'\n")
"#;
    everywhere(|| vec![python(wrong), insert(PASSING), submit()]);
}

#[test]
fn runner_settings_are_rejected() {
    let settings = r#"
import pathlib
pathlib.Path("tests/pytest.ini").write_text("[pytest]\naddopts = -p planted\npythonpath = .\nxfail_strict = true\n")
pathlib.Path("tests/planted.py").write_text(HOOK)
pathlib.Path("pytest.ini").write_text("[pytest]\npythonpath = tests\naddopts = -p planted\n")
pathlib.Path("tox.ini").write_text("[pytest]\npythonpath = tests\naddopts = -p planted\n")
pathlib.Path("conftest.py").write_text(HOOK)
pathlib.Path("tests/conftest.py").write_text(HOOK)
"#;
    let settings = format!(
        "HOOK = {}\n{settings}",
        serde_json::to_string(HOOK).unwrap()
    );
    for boundary in Boundary::all() {
        let replies = [python(&settings), insert(PASSING), submit()];
        assert_ne!(findings(&replies, boundary), Vec::<String>::new());
    }
}

/// A passing test that records itself as failed.
const FORGER: &str = r#"def test_forger():
    import gc, json, os, sys
    assert slugify("bread") == "bread"
    settings = sys.modules["testwright_record"].SETTINGS
    me = "tests/test_slug.py::test_forger"
    frame = {"base": "workspace", "file": "src/slugs/slug.py", "line": 1, "function": "slugify", "code": "x", "hidden": False}
    failure = {"exception": "AssertionError", "kinds": ["AssertionError"], "message": "assert 1 == 2", "name": None, "cause": None, "frames": [frame]}
    phase = {"event": "phase", "id": me, "when": "call", "outcome": "failed", "xfail": False, "unexpected": False, "seconds": 0.1, "failure": failure, "captured": ""}
    events = [phase, {"event": "executed", "id": me, "files": ["src/slugs/slug.py"]}, {"event": "end", "id": me}]
    with open(settings["report"], "ab", buffering=0, closefd=False) as report:
        for event in events:
            report.write(json.dumps(event).encode() + b"\n")
"#;

#[test]
fn forged_record_is_rejected() {
    for boundary in Boundary::all() {
        let report = findings(&[insert(FORGER), submit()], boundary).join("\n");
        // Two rules detect it: the forbidden name, and the unchanged outcome.
        assert!(report.contains("names `testwright_record`"), "{report}");
        assert!(
            report.contains("contradicts pytest's exit status"),
            "{report}"
        );
    }
}

#[test]
fn honest_example_is_accepted() {
    let test = "def test_cut_leaves_no_separator_at_the_end():\n    \
                assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
    for boundary in Boundary::all() {
        let replies = [python(UNCHECKED_BYTECODE), insert(test), submit()];
        assert_eq!(findings(&replies, boundary), Vec::<String>::new());
    }
}

/// Finds the toolbox among the descendants of these processes, except one that waits for a submission.
fn toolbox_below(roots: &[u32]) -> Option<i32> {
    let mut parents = std::collections::HashMap::new();
    let mut sleeping = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let parent: u32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        parents.insert(pid, parent);
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        // By this age, the snippet has written its output.
        let lives = std::fs::metadata(entry.path()).and_then(|metadata| metadata.modified());
        let lives = lives.ok().and_then(|since| since.elapsed().ok());
        let is_asleep = rest.trim_start().starts_with('S') && lives > Some(Duration::from_secs(3));
        if command.contains("snippet.py") && is_asleep {
            sleeping.push(pid);
        }
    }
    for snippet in sleeping {
        let mut at = snippet;
        while let Some(parent) = parents.get(&at).copied().filter(|parent| *parent > 1) {
            if roots.contains(&parent) {
                return parents.get(&snippet)?.to_owned().try_into().ok();
            }
            at = parent;
        }
    }
    None
}

/// Returns the process and the first processes of its containers.
fn with_containers(process: u32) -> Vec<u32> {
    let docker = |arguments: &[&str]| {
        let output = Command::new("docker").args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = docker(&["ps", "--format", "{{.ID}} {{.Label \"testwright.owner\"}}"]);
    let owner = format!("/{process}/");
    let of_process = listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, label)| label.contains(&owner));
    let shims = of_process.filter_map(|(id, _)| {
        let first = docker(&["inspect", "--format", "{{.State.Pid}}", id]);
        let first: u32 = first.trim().parse().ok()?;
        // Processes started by `exec` are siblings of the first process.
        let stat = std::fs::read_to_string(format!("/proc/{first}/stat")).ok()?;
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    });
    std::iter::once(process).chain(shims).collect()
}

/// Runs these replies, and kills the toolbox each time a snippet runs.
fn run_with_killed_toolbox(replies: &[Value], times: usize, boundary: Boundary) -> TestDir {
    killed_with(replies, times, boundary, &[])
}

fn killed_with(replies: &[Value], times: usize, boundary: Boundary, words: &[&str]) -> TestDir {
    let place = TestDir::within(boundary);
    let model = place.recording(replies);
    let mut child = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .args(["--sandbox", boundary.sandbox(), "--python", "3.11"])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut last = None;
    for _ in 0..times {
        let begun = Instant::now();
        let toolbox = loop {
            let roots = match boundary {
                Boundary::Docker => with_containers(child.id()),
                _ => vec![child.id()],
            };
            match toolbox_below(&roots) {
                Some(toolbox) if Some(toolbox) != last => break toolbox,
                _ => {}
            }
            assert_eq!(child.try_wait().unwrap(), None, "the run has ended");
            assert!(begun.elapsed() < Duration::from_secs(300));
            std::thread::sleep(Duration::from_millis(50));
        };
        let killed = Command::new("kill")
            .args(["-9", &toolbox.to_string()])
            .status();
        assert!(killed.unwrap().success());
        last = Some(toolbox);
    }
    child.wait().unwrap();
    place
}

const SLEEP: &str =
    "import pathlib, time\npathlib.Path('tests/left.txt').write_text('x')\ntime.sleep(60)";

#[test]
fn killed_toolbox_is_restarted() {
    for boundary in Boundary::all() {
        let replies = [
            insert(PASSING),
            python(SLEEP),
            python("print(open('tests/left.txt').read(), 'is left')"),
            submit(),
        ];
        let place = run_with_killed_toolbox(&replies, 1, boundary);
        answered_after_the_kill(&place);
    }
}

fn answered_after_the_kill(place: &TestDir) {
    let events = place.events();
    let answers: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "answer")
        .map(|event| event["result"]["content"].as_str().unwrap())
        .collect();
    assert!(
        answers[1].starts_with("`run_python` crashed the tool server"),
        "{answers:#?}"
    );
    assert_eq!(answers[2], "x is left");
    assert!(
        answers[3].contains("no contributed test fails"),
        "{answers:#?}"
    );
    assert_ne!(place.json("run.json")["outcome"], "infrastructure");
}

#[test]
fn repeatedly_killed_toolbox_ends_run() {
    let replies = [python(SLEEP), python(SLEEP), python(SLEEP), submit()];
    let place = run_with_killed_toolbox(&replies, 3, Boundary::Namespaces);
    let record = place.json("run.json");
    let (outcome, message) = (&record["outcome"], &record["message"]);
    assert_eq!(outcome, "nothing", "{message}");
    assert!(
        record["reason"].as_str().unwrap().contains("3 times"),
        "{record:#}"
    );
}

/// Each draft has its own count of restarts.
#[test]
fn repeatedly_killed_toolbox_ends_draft() {
    let silent = || crate::support::program::text_reply("I stop here.");
    let replies = [
        python(SLEEP),
        python(SLEEP),
        python(SLEEP),
        python("print('still here')"),
        silent(),
        silent(),
        silent(),
        silent(),
        silent(),
        silent(),
    ];
    let place = killed_with(&replies, 3, Boundary::Namespaces, &["--effort", "high"]);
    let answers = place.answers();
    assert_eq!(answers[3], "still here");
    let events = place.events();
    let reasons: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "draft_ended")
        .map(|event| event["reason"].as_str().unwrap())
        .collect();
    assert!(reasons[0].contains("3 times"), "{reasons:#?}");
    let last = "the model stopped without calling a tool; its last reply: I stop here.";
    assert_eq!(&reasons[1..], [last; 2]);
}
