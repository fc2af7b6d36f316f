//! A server with webhooks, deliveries from GitHub, and the repository that it clones.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use super::api::GitHubApi;
use crate::product::server::ServerProcess;
use crate::product::server::client::{Client, Reply};
use crate::product::server::databases::{self, Database};
use crate::support::program::{TestDir, example};

pub(super) const SECRET: &str = "a-secret-of-the-webhook";
pub(super) const PATH: &str = "/v1/github/webhook";
const RECIPE: &str = "[environment]\npython = \"3.11\"\nexclude-newer = \"2024-10-01\"\nrequirements = [\"pytest==8.3.3\"]\ninstall = []\n";

/// A server with webhooks, the API that it calls, and the repository that it clones.
pub(super) struct Hub {
    pub place: TestDir,
    pub api: GitHubApi,
    pub daemon: ServerProcess,
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    pub(super) fn new() -> Self {
        Hub::with(&databases::embedded(), &[])
    }

    pub(super) fn with(database: &Database, variables: &[(&str, &str)]) -> Self {
        let (place, api) = (TestDir::new(), GitHubApi::start());
        make_repository(&place);
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let daemon = start(&place, &api, database, variables, log.clone());
        Hub {
            place,
            api,
            daemon,
            log,
        }
    }

    /// Kills the server and starts another.
    pub(super) fn restart(&mut self) {
        self.daemon.child.kill().unwrap();
        self.daemon.child.wait().unwrap();
        let database = databases::embedded();
        self.daemon = start(&self.place, &self.api, &database, &[], self.log.clone());
    }

    pub(super) fn deliver(&self, event: &str, delivery: &str, payload: &Value) -> Reply {
        let body = payload.to_string();
        self.send(event, delivery, &body, &sign(&body))
    }

    pub(super) fn send(&self, event: &str, delivery: &str, body: &str, signature: &str) -> Reply {
        let headers = [
            // A proxy passes on its host name.
            ("host", "hooks.example.org"),
            ("content-type", "application/json"),
            ("x-github-event", event),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", signature),
        ];
        self.daemon.client.send("POST", PATH, &headers, body)
    }

    pub(super) fn runs(&self) -> Vec<Value> {
        let listed = self.daemon.client.get("/v1/runs").json();
        listed["runs"].as_array().unwrap().clone()
    }

    pub(super) fn wait_for_log(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log.lock().unwrap().join("\n");
            if log.contains(text) {
                return log;
            }
            assert!(begun.elapsed() < Duration::from_secs(240), "{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(super) fn git(&self, words: &[&str]) -> String {
        git(&repository(&self.place), words)
    }

    /// Commits a text replacement on a new branch. Returns the hash.
    pub(super) fn commit(&self, branch: &str, file: &str, old: &str, new: &str) -> String {
        self.git(&["checkout", "-q", "-b", branch, "main"]);
        let path = repository(&self.place).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(old));
        std::fs::write(&path, text.replace(old, new)).unwrap();
        self.git(&["commit", "-qam", branch]);
        let sha = self.git(&["rev-parse", "HEAD"]);
        self.git(&["checkout", "-q", "main"]);
        sha
    }

    /// Delivers the event of an opened pull request.
    pub(super) fn open(&self, number: u64, base: &str, head: &str) -> Reply {
        let mut payload = payload(include_str!("pull_request_opened.json"));
        payload["number"] = json!(number);
        payload["pull_request"]["number"] = json!(number);
        payload["pull_request"]["base"]["sha"] = json!(base);
        payload["pull_request"]["head"]["sha"] = json!(head);
        self.deliver("pull_request", &format!("opened-{number}"), &payload)
    }

    /// Returns the files of a draft pull request.
    pub(super) fn files(&self, pull_request: &Value) -> Vec<(String, String)> {
        let state = self.api.state();
        let object = |sha: &Value| state.objects[sha.as_str().unwrap()].clone();
        let branch = pull_request["head"].as_str().unwrap();
        let commit = object(&json!(state.references[&format!("refs/heads/{branch}")]));
        let main = self.git(&["rev-parse", "main"]);
        assert_eq!(commit["parents"], json!([main]));
        let tree = object(&commit["tree"]);
        assert_eq!(tree["base_tree"], format!("tree of {main}"));
        let text = |entry: &Value| {
            let content = object(&entry["sha"])["content"]
                .as_str()
                .unwrap()
                .to_owned();
            String::from_utf8(BASE64_STANDARD.decode(content).unwrap()).unwrap()
        };
        let entries = tree["tree"].as_array().unwrap().iter();
        entries
            .map(|entry| (entry["path"].as_str().unwrap().to_owned(), text(entry)))
            .collect()
    }
}

pub(super) fn command(place: &TestDir, api: &GitHubApi, variables: &[(&str, &str)]) -> Command {
    let repositories = place.path("repositories");
    let mut command = place.testwright();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.path("data"))
        .arg("--allow-repository")
        .arg(repositories.join("acme/*"))
        .env("TESTWRIGHT_GITHUB_BASE_URL", api.url())
        .env(
            "TESTWRIGHT_GITHUB_CLONE_URL",
            repositories.join("{owner}/{name}"),
        )
        .env(
            "GITHUB_WEBHOOK_SECRET",
            format!("the-secret-before-this {SECRET}"),
        )
        .env("GITHUB_TOKEN", "ghp_of_the_daemon")
        .envs(variables.iter().copied());
    command
}

pub(super) fn start(
    place: &TestDir,
    api: &GitHubApi,
    database: &Database,
    variables: &[(&str, &str)],
    log: Arc<Mutex<Vec<String>>>,
) -> ServerProcess {
    let mut command = command(place, api, variables);
    if let Some(url) = &database.url {
        command.args(["--database", url]);
    }
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("the server exited").unwrap();
        if let Some((_, address)) = line.split_once("listening on http://") {
            break address.to_owned();
        }
    };
    std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .for_each(|line| log.lock().unwrap().push(line));
    });
    ServerProcess {
        child,
        client: Client { address },
    }
}

pub(super) fn sign(body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let digits = hmac::sign(&key, body.as_bytes());
    let digits = digits.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256={}", digits.collect::<String>())
}

/// Returns a payload that contains the example's issue.
pub(super) fn payload(fixture: &str) -> Value {
    let mut payload: Value = serde_json::from_str(fixture).unwrap();
    if payload["issue"].is_object() {
        let text = std::fs::read_to_string(example("issue.md")).unwrap();
        let (title, body) = text.split_once("\n\n").unwrap();
        payload["issue"]["title"] = json!(title.trim_start_matches("# "));
        payload["issue"]["body"] = json!(body);
    }
    payload
}

pub(super) fn labelled() -> Value {
    payload(include_str!("issues_labeled.json"))
}

pub(super) fn comment(text: &str) -> Value {
    let mut payload = payload(include_str!("issue_comment_created.json"));
    payload["comment"]["body"] = json!(text);
    payload
}

pub(super) fn repository(place: &TestDir) -> PathBuf {
    place.path("repositories/acme/slugs")
}

pub(super) fn make_repository(place: &TestDir) {
    let folder = repository(place);
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(example("slugs")).arg(&folder);
    assert!(copy.status().unwrap().success());
    // With a flat layout, the package works without being installed.
    std::fs::rename(folder.join("src/slugs"), folder.join("slugs")).unwrap();
    std::fs::write(folder.join("testwright.toml"), RECIPE).unwrap();
    let project = "[tool.pytest.ini_options]\npythonpath = [\".\"]\n";
    std::fs::write(folder.join("pyproject.toml"), project).unwrap();
    std::fs::write(folder.join(".gitignore"), "__pycache__\n").unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "Begin"]);
}

pub(super) fn git(folder: &PathBuf, words: &[&str]) -> String {
    let output: Output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(["-c", "core.autocrlf=false", "-c", "commit.gpgsign=false"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2024-11-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2024-11-01T00:00:00Z")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
