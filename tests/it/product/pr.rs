//! `testwright pr`, with a bare repository as the remote and a mock of GitHub's API.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, example, interrupt, wait_until};
use crate::support::server::{MockServer, Request, Response};

const TEST: &str = "tests/test_slug.py";
const BRANCH: &str = "testwright/issue-12";
const TOKEN: &str = "ghp_of_the_user";

/// A clone with an accepted test for an issue, its remote, and the API.
struct Scene {
    place: TestDir,
    work: PathBuf,
    origin: PathBuf,
    server: MockServer,
    /// Whether the API refuses pull requests.
    refuses: Arc<AtomicBool>,
    /// Seconds until the API answers a pull request.
    delay: Arc<AtomicU64>,
}

fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(words)
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn answer(request: &Request, refuses: bool) -> Response {
    let text = std::fs::read_to_string(example("issue.md")).unwrap();
    let (title, body) = text.split_once("\n\n").unwrap();
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/api/v3/repos/acme/slugs/issues/12") => Response::json(json!({
            "number": 12, "title": title.trim_start_matches("# "), "body": body, "comments": 0,
            "created_at": "2024-03-01T10:00:00Z", "closed_at": null, "state": "open",
            "user": {"login": "ann"},
        })),
        ("GET", "/api/v3/repos/acme/slugs") => Response::json(json!({"default_branch": "main"})),
        ("POST", "/api/v3/repos/acme/slugs/pulls") if refuses => Response {
            status: 422,
            ..Response::json(json!({
                "message": "Validation Failed",
                "errors": [{"message": format!("A pull request already exists for acme:{BRANCH}.")}],
            }))
        },
        ("POST", "/api/v3/repos/acme/slugs/pulls") => Response {
            status: 201,
            ..Response::json(json!({"number": 20, "html_url": "https://x/acme/slugs/pull/20"}))
        },
        _ => Response::status(404),
    }
}

impl Scene {
    fn new() -> Self {
        let place = TestDir::new();
        let (work, origin) = (place.path("slugs"), place.path("origin.git"));
        let mut copy = Command::new("cp");
        copy.args(["-r", &example("slugs")]).arg(&work);
        assert!(copy.status().unwrap().success());
        git(&work, &["init", "-q", "-b", "main"]);
        git(&work, &["config", "user.name", "Ann"]);
        git(&work, &["config", "user.email", "ann@example.org"]);
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "-m", "first"]);
        let path = origin.to_str().unwrap();
        git(&work, &["clone", "-q", "--bare", ".", path]);
        git(&work, &["remote", "add", "origin", path]);
        git(&work, &["fetch", "-q", "origin"]);

        let refuses: Arc<AtomicBool> = Arc::default();
        let refuses_now = refuses.clone();
        let delay: Arc<AtomicU64> = Arc::default();
        let delay_now = delay.clone();
        let server = MockServer::start_parallel(move |request| {
            if request.method == "POST" {
                std::thread::sleep(Duration::from_secs(delay_now.load(Ordering::Relaxed)));
            }
            answer(request, refuses_now.load(Ordering::Relaxed))
        });
        // The address of GitHub leads to the folder.
        let url = format!("{}/acme/slugs.git", server.url);
        git(&work, &["remote", "set-url", "origin", &url]);
        let config = format!("[url \"{path}\"]\n\tinsteadOf = {url}\n");
        std::fs::write(place.path("gitconfig"), config).unwrap();
        let scene = Scene {
            place,
            work,
            origin,
            server,
            refuses,
            delay,
        };
        let issue = format!("{}/acme/slugs/issues/12", scene.server.url);
        let run = ["run", &issue, "--repo", ".", "--approach", "snippet"];
        assert_exit_code(&scene.testwright(&run), 0);
        scene
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.testwright();
        command
            .args(words)
            .current_dir(&self.work)
            .env("GITHUB_TOKEN", TOKEN)
            .env("TESTWRIGHT_GITHUB_BASE_URL", &self.server.url)
            .env("GIT_CONFIG_GLOBAL", self.place.path("gitconfig"));
        command
    }

    fn testwright(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Asserts that a command fails with these words on stderr, and that it changed nothing.
    #[track_caller]
    fn assert_refused(&self, output: &Output, expected: &[&str]) {
        assert_exit_code(output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        for words in expected {
            assert!(stderr.contains(words), "no {words} in {stderr}");
        }
        assert!(!stderr.contains(TOKEN), "{stderr}");
        self.assert_unchanged();
    }

    #[track_caller]
    fn assert_unchanged(&self) {
        for folder in [&self.work, &self.origin] {
            let branches = git(folder, &["branch", "--format=%(refname:short)"]);
            assert_eq!(branches, "main", "{}", folder.display());
        }
        assert_eq!(git(&self.work, &["status", "--short"]), "");
    }

    /// Returns the body of each request that opens a pull request, with its `Authorization`.
    fn pull_requests(&self) -> Vec<(Value, String)> {
        let requests = self.server.requests(|request| {
            let login = request.header("authorization").unwrap_or_default();
            let body = serde_json::from_str(&request.body).unwrap_or_default();
            (request.method == "POST").then(|| (body, login.to_owned()))
        });
        requests.into_iter().flatten().collect()
    }
}

#[test]
fn without_create_nothing_is_changed() {
    let scene = Scene::new();
    let earlier = scene.server.requests(|_| ()).len();
    let output = scene.testwright(&["pr"]);
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    for line in [
        "repository: acme/slugs (origin)",
        "title: Add a failing test: slugify with max_length can end in a separator",
        "base: the default branch",
        &format!("files: {TEST}"),
        "Adds a failing test for #12.",
    ] {
        assert!(stdout.lines().any(|it| it == line), "{line}: {stdout}");
    }
    assert!(stdout.contains(&format!("branch: {BRANCH} on commit ")));
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint: add --create"));
    scene.assert_unchanged();

    let no_token = scene
        .command(&["pr", "--create"])
        .env("GITHUB_TOKEN", "")
        .output();
    scene.assert_refused(
        &no_token.unwrap(),
        &["no token for GitHub is set", "hint: set GITHUB_TOKEN"],
    );
    let output = scene.testwright(&["pr", "--create", "--remote", "fork"]);
    scene.assert_refused(&output, &["has no remote `fork`", "--remote"]);
    let gitlab = "https://gitlab.example.org/acme/slugs.git";
    git(&scene.work, &["remote", "add", "gitlab", gitlab]);
    let output = scene.testwright(&["pr", "--create", "--remote", "gitlab"]);
    scene.assert_refused(
        &output,
        &[
            "the remote gitlab is not a repository on 127.0.0.1",
            "hint: push the test yourself: testwright apply testwright-runs/",
            &format!("--branch {BRANCH} --commit && git push gitlab {BRANCH}"),
        ],
    );
    let output = scene.testwright(&["pr", "--create", "--branch", "main"]);
    scene.assert_refused(
        &output,
        &["the branch main already exists", "hint: choose another"],
    );
    assert_eq!(scene.server.requests(|_| ()).len(), earlier);
}

#[test]
fn failure_after_push_removes_branch() {
    let scene = Scene::new();
    scene.refuses.store(true, Ordering::Relaxed);
    let output = scene.testwright(&["pr", "--create"]);
    scene.assert_refused(
        &output,
        &[
            "failed to open the pull request",
            "(422): Validation Failed: A pull request already exists for acme:testwright/issue-12.",
            "hint: use that pull request",
        ],
    );
    assert_eq!(scene.pull_requests().len(), 1);

    // A branch of the remote that this clone has not fetched is not overwritten.
    git(&scene.origin, &["branch", BRANCH, "main"]);
    let output = scene.testwright(&["pr", "--create"]);
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let cause = format!("origin already has the branch {BRANCH}");
    assert!(stderr.contains(&cause), "{stderr}");
    assert_eq!(scene.pull_requests().len(), 1);
    let hashes = git(&scene.origin, &["rev-parse", "main", BRANCH]);
    let (main, branch) = hashes.split_once('\n').unwrap();
    assert_eq!(main, branch);
    git(&scene.origin, &["branch", "-D", BRANCH]);
    scene.assert_unchanged();
}

#[test]
fn interrupt_after_push_removes_branch() {
    let scene = Scene::new();
    scene.delay.store(600, Ordering::Relaxed);
    let mut command = scene.command(&["pr", "--create"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let is_pushed = || !git(&scene.origin, &["branch", "--list", BRANCH]).is_empty();
    wait_until("the branch is pushed", is_pushed);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_exit_code(&output, 130);
    scene.assert_unchanged();
}

#[test]
fn create_pushes_test_and_opens_draft() {
    let scene = Scene::new();
    // The user works on the same file.
    let file = scene.work.join(TEST);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("# Mine.\n{text}")).unwrap();

    let output = scene.testwright(&["pr", "--xfail", "--create"]);
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stdout.contains("pull request: https://x/acme/slugs/pull/20"));
    assert!(!format!("{stdout}{stderr}").contains(TOKEN));

    let log = ["log", "--format=%an: %s", &format!("main..{BRANCH}")];
    assert_eq!(
        git(&scene.origin, &log),
        "Ann: Add an expected failure: slugify with max_length can end in a separator"
    );
    let diff = ["diff", "--name-only", "main", BRANCH];
    assert_eq!(git(&scene.origin, &diff), TEST);
    let pushed = git(&scene.origin, &["show", &format!("{BRANCH}:{TEST}")]);
    assert!(pushed.contains("@pytest.mark.xfail(strict=True, reason="));
    assert!(!pushed.contains("# Mine."));
    assert_eq!(git(&scene.work, &["branch", "--show-current"]), "main");
    let status = git(&scene.work, &["status", "--short"]);
    assert_eq!(status, format!("M {TEST}"));

    let pull_requests = scene.pull_requests();
    let [(request, login)] = &pull_requests[..] else {
        panic!("{pull_requests:?}");
    };
    assert_eq!(login, &format!("Bearer {TOKEN}"));
    let title = "Add an expected failure: slugify with max_length can end in a separator";
    assert_eq!(request["title"], title);
    assert_eq!(request["head"], BRANCH);
    assert_eq!(request["base"], "main");
    assert_eq!(request["draft"], true);
    let body = request["body"].as_str().unwrap();
    assert!(body.starts_with("Adds a failing test for #12.\n"), "{body}");
    assert!(body.contains("It is marked as expected to fail until the issue is fixed."));
}
