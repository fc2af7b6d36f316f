//! `testwright mine` with a real git history and real pytest in the local sandbox.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code};
use crate::support::server::{MockServer, Request, Response};

const RECIPE: &str = "[environment]\npython = \"3.11\"\nexclude-newer = \"2024-10-01\"\nrequirements = [\"pytest==8.3.3\"]\ninstall = []\n";
const MIT: &str = "MIT License\n\nPermission is hereby granted, free of charge, to any person …\n";
const OLD: &str = "def add(a, b):\n    return a + abs(b)\n\n\ndef half(a):\n    return a // 2\n\n\ndef first(items):\n    return items[1]\n\n\ndef last(items):\n    return items[0]\n";
const TESTS: &str =
    "from pkg.calc import add, first, half, last\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";

struct MiningBench {
    place: TestDir,
    folder: PathBuf,
}

impl MiningBench {
    /// Creates a history with one change a day, starting on 2024-02-01.
    fn new() -> MiningBench {
        let place = TestDir::new();
        let folder = place.path("repositories/acme+sums");
        let bench = MiningBench { place, folder };
        bench.write("testwright.toml", RECIPE);
        bench.write("LICENSE", MIT);
        bench.write("pytest.ini", "[pytest]\npythonpath = .\n");
        bench.write("pkg/__init__.py", "");
        bench.write("pkg/calc.py", OLD);
        bench.write("tests/test_calc.py", TESTS);
        bench.git(1, &["init", "-q", "-b", "main"]);
        bench.commit(1, "Begin");

        // A squashed commit of pull request 12.
        bench.fix("a + abs(b)", "a + b", "add(1, -2) == -1");
        bench.commit(2, "Add negative numbers (#12)\n\nFixes #11.");

        // The merge of pull request 14; its commit names the issue.
        bench.git(3, &["switch", "-q", "-c", "topic"]);
        bench.fix("a // 2", "a / 2", "half(3) == 1.5");
        bench.commit(3, "Halves of odd numbers, closes #13");
        bench.git(3, &["switch", "-q", "main"]);
        let title = "Merge pull request #14 from ann/topic";
        bench.git(3, &["merge", "-q", "--no-ff", "-m", title, "topic"]);

        // The test of this fix already passes on the old code.
        bench.fix("def half", "# Rounded down once.\ndef half", "half(4) == 2");
        bench.write("changes/15.bugfix.rst", "Halves are halves.\n");
        bench.commit(4, "Say what half does");

        // Commits that are not fixes with tests, or that name no issue.
        bench.write("README.md", "Sums.\n");
        bench.commit(5, "A readme, fixes #16");
        bench.fix("def add", "# Sums.\ndef add", "add(0, 0) == 0");
        bench.commit(6, "Say what add does, as asked in #16");

        // The issue's text is unknown, or only a later version is known.
        bench.fix("items[1]", "items[0]", "first([1, 2]) == 1");
        bench.commit(7, "First is first (#18)\n\nResolves #17");
        bench.git(8, &["revert", "--no-edit", "HEAD"]);
        bench.fix("items[1]", "items[0]", "first('ab') == 'a'");
        bench.commit(9, "First is first again, fixes #19");

        // A fix on a branch that was merged without a pull request, with a submodule.
        bench.git(10, &["switch", "-q", "-c", "stable"]);
        bench.fix(
            "return items[0]\n$",
            "return items[-1]\n$",
            "last([1, 2]) == 2",
        );
        let pointer = format!("160000,{},libs/other", "1".repeat(40));
        bench.git(10, &["update-index", "--add", "--cacheinfo", &pointer]);
        bench.git(10, &["add", "pkg", "tests"]);
        bench.git(10, &["commit", "-q", "-m", "Last is last: fix #20 and #21"]);
        bench.git(11, &["switch", "-q", "main"]);
        bench.git(
            11,
            &[
                "merge",
                "-q",
                "--no-ff",
                "-m",
                "Merge branch 'stable'",
                "stable",
            ],
        );
        bench
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Commits a change of the code and a new test. `$` is the end of the file.
    fn fix(&self, old: &str, new: &str, assertion: &str) {
        let path = self.folder.join("pkg/calc.py");
        let code = std::fs::read_to_string(&path).unwrap() + "$";
        assert!(code.contains(old), "{code}");
        let code = code.replacen(old, new, 1);
        std::fs::write(&path, code.strip_suffix('$').unwrap()).unwrap();
        let path = self.folder.join("tests/test_calc.py");
        let tests = std::fs::read_to_string(&path).unwrap();
        let number = tests.matches("def test_").count();
        let test = format!("\n\ndef test_{number}():\n    assert {assertion}\n");
        std::fs::write(&path, tests + &test).unwrap();
    }

    fn commit(&self, day: u32, message: &str) {
        self.git(day, &["add", "-A"]);
        self.git(day, &["commit", "-q", "-m", message]);
    }

    fn git(&self, day: u32, words: &[&str]) {
        let date = format!("2024-02-{day:02}T12:00:00Z");
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(["-c", "core.autocrlf=false", "-c", "commit.gpgsign=false"])
            .args(words)
            .current_dir(&self.folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {words:?}: {output:?}");
    }

    fn issues(&self) -> PathBuf {
        let folder = self.place.path("issues");
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        for (number, title) in [
            (11, "add(1, -2) gives 3"),
            (13, "half(3) gives 1"),
            (15, "What does half do?"),
            (20, "last gives the first item"),
        ] {
            let text = format!("# {title}\n\nI expected something else.\n");
            write(&format!("{number}.md"), text);
        }
        let late =
            json!({"title": "first is second", "body": "", "created_at": "2024-05-01T00:00:00Z"});
        write("19.json", late.to_string());
        write(
            "21.json",
            json!({"title": "Last", "pull_request": {}}).to_string(),
        );
        folder
    }

    fn mine(&self, out: &str, more: &[&str]) -> Command {
        let mut command = self.place.testwright();
        command
            .args([
                "mine",
                "--sandbox",
                "local",
                "--since",
                "2024-02-02",
                "--repo",
            ])
            .arg(&self.folder)
            .arg("--out")
            .arg(self.place.path(out))
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn mined(&self, out: &str) -> Output {
        let mut command = self.mine(out, &["--workers", "2", "--issues"]);
        command.arg(self.issues()).output().unwrap()
    }

    fn rows(&self, out: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.place.path(out)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn verified_fixes_become_instances() {
    let bench = MiningBench::new();
    let output = bench.mined("fresh.jsonl");
    assert_exit_code(&output, 0);
    let rows = bench.rows("fresh.jsonl");
    let ids: Vec<&str> = rows
        .iter()
        .map(|row| row["instance_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[..2], ["acme__sums-12", "acme__sums-14"]);
    assert_eq!(ids.len(), 3, "{ids:?}");

    let [first, second, third] = &rows[..] else {
        unreachable!()
    };
    assert_eq!(
        first["problem_statement"],
        "add(1, -2) gives 3\n\nI expected something else."
    );
    assert_eq!(first["FAIL_TO_PASS"], json!(["tests/test_calc.py::test_1"]));
    assert_eq!(
        first["PASS_TO_PASS"],
        json!(["tests/test_calc.py::test_add"])
    );
    assert_eq!(first["created_at"], "2024-02-02T12:00:00Z");
    assert_eq!(first["license"]["spdx"], "MIT");
    assert_eq!(first["difficulty"]["code_lines"], 2);
    assert_eq!(first["difficulty"]["test_files"], 1);
    assert_eq!(first["issues"][0]["origin"], "11.md");
    assert_eq!(first["sha256"]["patch"].as_str().unwrap().len(), 64);
    assert_eq!(second["issue_numbers"], json!([13]));
    assert_eq!(third["submodules_left_out"], json!(["libs/other"]));
    let missing = json!([{"number": 21, "cause": "it is a pull request, not an issue"}]);
    assert_eq!(third["issues_without_text"], missing);
    for row in &rows {
        let (code, tests) = (
            row["patch"].as_str().unwrap(),
            row["test_patch"].as_str().unwrap(),
        );
        assert!(
            !code.contains("b/tests/") && !code.contains("Subproject"),
            "{code}"
        );
        assert!(!tests.contains("b/pkg/"), "{tests}");
    }

    let stdout = String::from_utf8(output.stdout).unwrap();
    for line in [
        "      9  changes in the time range",
        "      7  change code and tests",
        "      6  name an issue that they fix",
        "      4  have the issue's text",
        "      4  could be graded",
        "      3  verified: golden tests go from fail to pass",
        "      1  reverts an earlier change",
        "      1  changes no code (",
        "      1  names no issue that it fixes (",
        "      1  the issue text is not available: the folder has no file for it (acme__sums-18)",
        "      1  the issue text is not available: it was filed after the fix (",
        "      1  the golden tests already pass on the old code (",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    let page = std::fs::read_to_string(bench.place.path("fresh.md")).unwrap();
    assert!(
        page.contains("acme\\_\\_sums-18") || page.contains("acme__sums-18"),
        "{page}"
    );

    // `testwright eval` accepts the file unchanged.
    let verified = bench
        .place
        .testwright()
        .args(["eval", "verify", "--sandbox", "local", "--dataset"])
        .arg(bench.place.path("fresh.jsonl"))
        .arg("--repositories")
        .arg(bench.place.path("repositories").join("{owner}+{name}"))
        .arg("--out")
        .arg(bench.place.path("verified"))
        .output()
        .unwrap();
    assert_exit_code(&verified, 0);
    let verify_stdout = String::from_utf8(verified.stdout).unwrap();
    assert!(
        verify_stdout.contains("golden tests fail-to-pass: 3 of 3"),
        "{verify_stdout}"
    );
    assert!(
        verify_stdout.contains("FAIL_TO_PASS of the dataset: 3 of 3 tests agree"),
        "{verify_stdout}"
    );
}

#[test]
fn killed_command_resumes_with_same_file() {
    let bench = MiningBench::new();
    let issues = bench.issues();
    for wait in [150, 900, 2500] {
        let mut command = bench.mine("fresh.jsonl", &["--issues"]);
        let mut child = command.arg(&issues).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // Later commits do not belong to the interrupted command.
    bench.fix("def last", "# Last.\ndef last", "last([3]) == 3");
    bench.commit(20, "Say what last does, fixes #11");
    assert_exit_code(&bench.mined("fresh.jsonl"), 0);
    bench.git(20, &["reset", "-q", "--hard", "HEAD~1"]);
    assert_exit_code(&bench.mined("whole.jsonl"), 0);
    let read = |name: &str| std::fs::read(bench.place.path(name)).unwrap();
    assert!(read("fresh.jsonl") == read("whole.jsonl"));
    let page = |name: &str| String::from_utf8(read(name)).unwrap();
    let renamed = page("whole.md").replace("whole.work", "fresh.work");
    assert_eq!(page("fresh.md"), renamed);

    // Other dates make it a different dataset.
    let mut other = bench.mine("fresh.jsonl", &["--until", "2024-02-03", "--issues"]);
    let refused = other.arg(&issues).output().unwrap();
    assert_exit_code(&refused, 2);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(
        stderr.contains("it was started with another repository"),
        "{stderr}"
    );
}

/// Answers GitHub requests. Issue 11 was renamed and edited after its fix.
fn forge(request: &Request) -> Response {
    let day = |day: u32| format!("2024-02-{day:02}T12:00:00Z");
    let issue = |title: &str, updated: String| json!({"title": title, "body": "Today: abs is to blame.", "created_at": "2024-01-20T00:00:00Z", "updated_at": updated});
    match (
        request.method.as_str(),
        request.path.split('?').next().unwrap(),
    ) {
        ("GET", "/repos/acme/sums/issues/11") => Response::json(issue("Remove abs in add", day(9))),
        ("GET", "/repos/acme/sums/issues/11/events") => Response::json(json!([
            {"event": "renamed", "created_at": day(1), "rename": {"from": "Help", "to": "add(1, -2) gives 3"}},
            {"event": "renamed", "created_at": day(8), "rename": {"from": "add(1, -2) gives 3", "to": "Remove abs in add"}},
        ])),
        ("POST", "/graphql") => Response::json(json!({"data": {"repository": {"issue": {
            "lastEditedAt": day(9),
            "userContentEdits": {"nodes": [
                {"editedAt": day(9), "diff": "Today: abs is to blame."},
                {"editedAt": "2024-01-20T00:00:00Z", "diff": "It should be -1.\r\n"},
            ]},
        }}}})),
        ("GET", "/repos/acme/sums/issues/13") => Response::json(issue("half(3) gives 1", day(2))),
        _ => Response::status(404),
    }
}

#[test]
fn issues_are_read_before_their_fix() {
    let bench = MiningBench::new();
    let server = MockServer::start(forge);
    let run = |out: &str, token: bool| {
        let mut command = bench.mine(out, &["--until", "2024-02-03"]);
        command.env("TESTWRIGHT_GITHUB_BASE_URL", format!("{}/", server.url));
        command.env_remove("GITHUB_TOKEN").env_remove("GH_TOKEN");
        if token {
            command.env("GITHUB_TOKEN", "ghp_secret");
        }
        let output = command.output().unwrap();
        assert_exit_code(&output, 0);
        String::from_utf8(output.stderr).unwrap()
    };
    let stderr = run("fresh.jsonl", true);
    assert!(!stderr.contains("may have been edited"), "{stderr}");
    let command = stderr.lines().last().unwrap();
    for part in [
        "grade predictions: testwright eval --dataset ",
        " --repositories ",
    ] {
        assert!(command.contains(part), "{part}: {stderr}");
    }
    let rows = bench.rows("fresh.jsonl");
    assert_eq!(rows.len(), 2);
    assert_eq!(
        rows[0]["problem_statement"],
        "add(1, -2) gives 3\n\nIt should be -1."
    );
    assert_eq!(rows[0]["issues"][0]["later_edits"], "1, taken back");
    assert_eq!(
        rows[0]["issues"][0]["origin"],
        "https://github.com/acme/sums/issues/11"
    );
    assert_eq!(rows[1]["issues"][0]["later_edits"], "none");

    // GitHub does not report edits without a token, and the row says so.
    let stderr = run("unknown.jsonl", false);
    assert!(
        stderr.contains("note: 1 text may have been edited"),
        "{stderr}"
    );
    assert_eq!(
        bench.rows("unknown.jsonl")[0]["issues"][0]["later_edits"],
        "not known"
    );

    // Stored texts are not requested again.
    let before = server.requests(|_| ()).len();
    run("fresh.jsonl", true);
    assert_eq!(server.requests(|_| ()).len(), before);
}

#[test]
fn invalid_input_is_rejected_with_hint() {
    let bench = MiningBench::new();
    let refused = |more: &[&str]| {
        let output = bench.mine("fresh.jsonl", more).output().unwrap();
        assert_exit_code(&output, 2);
        String::from_utf8(output.stderr).unwrap()
    };
    let folder = refused(&["--issues", "/no/such/folder"]);
    assert!(
        folder.contains("/no/such/folder is not a folder"),
        "{folder}"
    );
    let name = refused(&["--name", "sums", "--issues", "/"]);
    assert!(name.contains("`sums` is not OWNER/NAME"), "{name}");
    let day = refused(&["--until", "soon"]);
    assert!(day.contains("YYYY-MM-DD"), "{day}");
    let mut nowhere = bench.place.testwright();
    nowhere.args([
        "mine",
        "--repo",
        "/no/such/repository",
        "--since",
        "2024-02-02",
        "--out",
    ]);
    let output = nowhere
        .arg(bench.place.path("none.jsonl"))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("failed to open the repository /no/such/repository"),
        "{stderr}"
    );
    let reversed = refused(&["--until", "2024-02-01"]);
    assert!(reversed.contains("--until is before --since"), "{reversed}");
    // There are no commits after that day.
    let output = bench
        .mine("none.jsonl", &["--max-changed-lines", "0", "--issues", "/"])
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    assert!(!bench.place.path("none.jsonl").exists());
    assert!(bench.place.path("none.md").exists());
    // No server listens on this port, so no text is available.
    let mut silent = bench.mine("silent.jsonl", &["--until", "2024-02-02"]);
    silent.env("TESTWRIGHT_GITHUB_BASE_URL", "http://127.0.0.1:9/");
    let output = silent.output().unwrap();
    assert_exit_code(&output, 3);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("read files with --issues FOLDER"),
        "{stderr}"
    );
    assert!(!bench.place.path("silent.jsonl").exists());
    // A rejected token affects every issue, so the command stops at the first response.
    let server = MockServer::start(|_| Response::status(401));
    let mut refused = bench.mine("refused.jsonl", &["--until", "2024-02-04"]);
    refused.env("TESTWRIGHT_GITHUB_BASE_URL", format!("{}/", server.url));
    refused.env("GITHUB_TOKEN", "ghp_secret");
    let output = refused.output().unwrap();
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("renew the token in GITHUB_TOKEN"),
        "{stderr}"
    );
    assert_eq!(server.requests(|_| ()).len(), 1);
    assert!(!bench.place.path("refused.md").exists());
}
