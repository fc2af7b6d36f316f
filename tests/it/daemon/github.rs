//! GitHub, as a maintainer meets it: labels and comments go in as webhooks, comments and pull requests come out.

mod api;
mod pytest;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Value, json};

use super::client::{Client, Reply};
use super::databases::{self, Database};
use super::{Daemon, example};
use crate::program::Place;
use crate::server::Response;
use api::GitHubApi;

const SECRET: &str = "a-secret-of-the-webhook";
const PATH: &str = "/v1/github/webhook";
const RECIPE: &str = "[environment]\npython = \"3.11\"\nexclude-newer = \"2024-10-01\"\nrequirements = [\"pytest==8.3.3\"]\ninstall = []\n";

/// A daemon with webhooks, what it asks, and the repository that it clones.
struct Hub {
    place: Place,
    api: GitHubApi,
    daemon: Daemon,
    log: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn new() -> Self {
        Hub::with(&databases::embedded(), &[])
    }

    fn with(database: &Database, variables: &[(&str, &str)]) -> Self {
        let (place, api) = (Place::new(), GitHubApi::start());
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

    /// Ends the daemon as a crash does, and starts another.
    fn restart(&mut self) {
        self.daemon.child.kill().unwrap();
        self.daemon.child.wait().unwrap();
        let database = databases::embedded();
        self.daemon = start(&self.place, &self.api, &database, &[], self.log.clone());
    }

    fn deliver(&self, event: &str, delivery: &str, payload: &Value) -> Reply {
        let body = payload.to_string();
        self.send(event, delivery, &body, &sign(&body))
    }

    fn send(&self, event: &str, delivery: &str, body: &str, signature: &str) -> Reply {
        let headers = [
            // As a proxy passes it on.
            ("host", "hooks.example.org"),
            ("content-type", "application/json"),
            ("x-github-event", event),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", signature),
        ];
        self.daemon.client.send("POST", PATH, &headers, body)
    }

    fn runs(&self) -> Vec<Value> {
        let listed = self.daemon.client.get("/v1/runs").json();
        listed["runs"].as_array().unwrap().clone()
    }

    fn wait_for_log(&self, text: &str) -> String {
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

    fn git(&self, words: &[&str]) -> String {
        git(&repository(&self.place), words)
    }

    /// A commit on a branch of its own with one text put in the place of another: its hash.
    fn commit(&self, branch: &str, file: &str, old: &str, new: &str) -> String {
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

    /// Delivers that a pull request was opened.
    fn open(&self, number: u64, base: &str, head: &str) -> Reply {
        let mut payload = payload(include_str!("github/pull_request_opened.json"));
        payload["number"] = json!(number);
        payload["pull_request"]["number"] = json!(number);
        payload["pull_request"]["base"]["sha"] = json!(base);
        payload["pull_request"]["head"]["sha"] = json!(head);
        self.deliver("pull_request", &format!("opened-{number}"), &payload)
    }

    /// The files of a draft pull request.
    fn files(&self, pull_request: &Value) -> Vec<(String, String)> {
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

fn command(place: &Place, api: &GitHubApi, variables: &[(&str, &str)]) -> Command {
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

fn start(
    place: &Place,
    api: &GitHubApi,
    database: &Database,
    variables: &[(&str, &str)],
    log: Arc<Mutex<Vec<String>>>,
) -> Daemon {
    let mut command = command(place, api, variables);
    if let Some(url) = &database.url {
        command.args(["--database", url]);
    }
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("it ended").unwrap();
        if let Some((_, address)) = line.split_once("listening on http://") {
            break address.to_owned();
        }
    };
    std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .for_each(|line| log.lock().unwrap().push(line));
    });
    Daemon {
        child,
        client: Client { address },
    }
}

fn sign(body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let digits = hmac::sign(&key, body.as_bytes());
    let digits = digits.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256={}", digits.collect::<String>())
}

/// With the example's issue in it.
fn payload(fixture: &str) -> Value {
    let mut payload: Value = serde_json::from_str(fixture).unwrap();
    if payload["issue"].is_object() {
        let text = std::fs::read_to_string(example("issue.md")).unwrap();
        let (title, body) = text.split_once("\n\n").unwrap();
        payload["issue"]["title"] = json!(title.trim_start_matches("# "));
        payload["issue"]["body"] = json!(body);
    }
    payload
}

fn labelled() -> Value {
    payload(include_str!("github/issues_labeled.json"))
}

fn comment(text: &str) -> Value {
    let mut payload = payload(include_str!("github/issue_comment_created.json"));
    payload["comment"]["body"] = json!(text);
    payload
}

fn repository(place: &Place) -> PathBuf {
    place.path("repositories/acme/slugs")
}

fn make_repository(place: &Place) {
    let folder = repository(place);
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(example("slugs")).arg(&folder);
    assert!(copy.status().unwrap().success());
    // It need not be installed.
    std::fs::rename(folder.join("src/slugs"), folder.join("slugs")).unwrap();
    std::fs::write(folder.join("testwright.toml"), RECIPE).unwrap();
    let project = "[tool.pytest.ini_options]\npythonpath = [\".\"]\n";
    std::fs::write(folder.join("pyproject.toml"), project).unwrap();
    std::fs::write(folder.join(".gitignore"), "__pycache__\n").unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "Begin"]);
}

fn git(folder: &PathBuf, words: &[&str]) -> String {
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

#[test]
fn a_labelled_issue_is_answered_once_on_every_database() {
    for database in databases::all() {
        let hub = Hub::with(&database, &[]);
        let ping = payload(include_str!("github/ping.json"));
        assert_eq!(hub.deliver("ping", "d-0", &ping).status, 200);
        let first = hub.deliver("issues", "d-1", &labelled());
        assert_eq!(first.status, 202, "{first:?}");
        let comments = hub.api.wait_for_comments(7, 1);
        assert!(
            comments[0].starts_with("testwright wrote a test that fails on the current code"),
            "{comments:?}"
        );
        assert!(comments[0].contains("```diff\ndiff --git a/tests/test_slug.py"));
        assert!(comments[0].contains("confidence"), "{comments:?}");
        assert!(comments[0].contains("<!-- testwright "));
        let runs = hub.runs();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0]["status"], "accepted");
        assert_eq!(runs[0]["title"], labelled()["issue"]["title"]);

        // Neither the same delivery nor its content under another id does anything.
        for delivery in ["d-1", "d-2"] {
            assert_eq!(hub.deliver("issues", delivery, &labelled()).status, 200);
        }
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!((hub.runs().len(), hub.api.comments(7).len()), (1, 1));
        let logins = hub.api.state().logins.clone();
        assert!(
            logins
                .iter()
                .all(|(_, login)| login == "Bearer ghp_of_the_daemon")
        );
        assert_eq!(hub.daemon.terminate(), Some(0));
    }
}

#[test]
fn what_is_not_signed_or_not_allowed_does_nothing() {
    let hub = Hub::new();
    let body = labelled().to_string();
    let of_other = sign(&format!("{body} "));
    let older = sign(&body).replace("sha256", "sha1");
    for signature in ["", "sha256=", &of_other, &older] {
        let refused = hub.send("issues", "d-1", &body, signature);
        assert_eq!(refused.status, 401, "{signature}");
    }
    // What is not signed is not read.
    assert_eq!(hub.send("issues", "d-1", "{", "").status, 401);
    assert_eq!(hub.send("issues", "d-1", "{", &sign("{")).status, 400);
    assert_eq!(hub.send("issues", "", &body, &sign(&body)).status, 400);
    let long = " ".repeat((4 << 20) + 1);
    assert_eq!(hub.send("issues", "d-1", &long, &sign(&long)).status, 413);
    // Other addresses stay closed to other names of the host.
    let kind = ("content-type", "application/json");
    for path in [
        "/v1/runs",
        "/v1/github/webhook/",
        "/v1/github/webhook/../../runs",
    ] {
        let headers = [kind, ("host", "hooks.example.org")];
        assert_eq!(
            hub.daemon.client.send("POST", path, &headers, "{}").status,
            421,
            "{path}"
        );
    }

    let mut by_stranger = comment("/testwright");
    by_stranger["comment"]["author_association"] = json!("NONE");
    let mut by_program = comment("/testwright");
    by_program["sender"]["type"] = json!("Bot");
    let mut on_pull_request = comment("/testwright");
    on_pull_request["issue"]["pull_request"] = json!({"url": "https://x/pulls/7"});
    let mut other_label = labelled();
    other_label["label"]["name"] = json!("bug");
    let mut unlabelled = labelled();
    unlabelled["action"] = json!("unlabeled");
    let star = json!({"action": "created", "repository": {"full_name": "acme/slugs"}});
    let elsewhere = hub.git(&["rev-parse", "main"]);
    for (event, payload) in [
        ("issue_comment", by_stranger),
        ("issue_comment", by_program),
        ("issue_comment", on_pull_request),
        ("issue_comment", comment("I like /testwright")),
        ("issues", other_label),
        ("issues", unlabelled),
        ("star", star),
    ] {
        let delivery = format!("{event}-{}", payload.to_string().len());
        let ignored = hub.deliver(event, &delivery, &payload);
        assert_eq!(ignored.status, 202, "{event} {ignored:?}");
        assert!(!ignored.body.contains("will be worked on"), "{ignored:?}");
    }
    // There is no test for the issue that it mentions.
    assert!(
        hub.open(31, &elsewhere, &elsewhere)
            .body
            .contains("no test")
    );
    let mut of_stranger = payload(include_str!("github/pull_request_opened.json"));
    for branch in ["head", "base"] {
        of_stranger["pull_request"][branch]["sha"] = json!(elsewhere);
    }
    let mut of_ours = of_stranger.clone();
    of_stranger["pull_request"]["author_association"] = json!("FIRST_TIME_CONTRIBUTOR");
    of_ours["pull_request"]["head"]["ref"] = json!("testwright/issue-7-x");
    of_ours["pull_request"]["head"]["repo"]["full_name"] = json!("acme/slugs");
    for (delivery, pull, why) in [
        (
            "p-1",
            &of_stranger,
            "do not run on pull requests of its author",
        ),
        ("p-2", &of_ours, "testwright's own"),
    ] {
        let ignored = hub.deliver("pull_request", delivery, pull);
        assert!(ignored.body.contains(why), "{ignored:?}");
    }
    // What is no name of a repository, and one that the server's list does not have.
    let mut foreign = labelled();
    foreign["repository"]["full_name"] = json!("../acme");
    assert_eq!(hub.deliver("issues", "d-8", &foreign).status, 400);
    foreign["repository"]["full_name"] = json!("other/slugs");
    assert_eq!(hub.deliver("issues", "d-9", &foreign).status, 202);
    let log = hub.wait_for_log("is given up");
    assert!(log.contains("it is not allowed here"), "{log}");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(hub.runs(), Vec::<Value>::new());
    assert_eq!(hub.api.requests(), 0);
}

#[test]
fn a_command_opens_a_draft_pull_request_and_later_ones_are_tried_with_its_test() {
    let hub = Hub::new();
    hub.deliver(
        "issue_comment",
        "d-1",
        &comment("/testwright pr\nthank you"),
    );
    let comments = hub.api.wait_for_comments(7, 1);
    assert!(
        comments[0].contains("Draft pull request #20 adds it"),
        "{comments:?}"
    );
    let pull = hub.api.state().pull_requests[0].clone();
    assert_eq!(
        (&pull["draft"], &pull["base"]),
        (&json!(true), &json!("main"))
    );
    assert!(pull["body"].as_str().unwrap().contains("Refs #7"), "{pull}");
    let files = hub.files(&pull);
    let [(path, text)] = &files[..] else {
        panic!("{files:?}")
    };
    assert_eq!(path, "tests/test_slug.py");
    assert!(
        text.contains("@pytest.mark.xfail(strict=True, reason=\"#7\")\n"),
        "{text}"
    );
    // The same again opens none, and makes no run.
    hub.deliver("issue_comment", "d-2", &comment("/testwright pr"));
    hub.api.wait_for_comments(7, 2);
    assert_eq!(
        (hub.runs().len(), hub.api.state().pull_requests.len()),
        (1, 1)
    );

    let base = hub.git(&["rev-parse", "main"]);
    let slug = "slugs/slug.py";
    let cut = "return slug[:max_length]";
    let right = "return slug[:max_length].rstrip(\"-_\")";
    let fix = hub.commit("fix", slug, cut, right);
    let words = hub.commit("words", "README.md", "slug", "short name");
    let breaks = hub.commit(
        "breaks",
        slug,
        cut,
        "return slug[:max_length].rsplit(\"-\", 1)[0]",
    );
    for (number, head) in [(31, &fix), (32, &words), (33, &breaks)] {
        assert_eq!(hub.open(number, &base, head).status, 202);
    }
    for (number, begin) in [
        (31, "Fail-to-pass confirmed"),
        (32, "Still failing"),
        (33, "Something else broke"),
    ] {
        let comments = hub.api.wait_for_comments(number, 1);
        assert!(comments[0].starts_with(begin), "{comments:?}");
    }
    assert!(hub.api.comments(33)[0].contains("::test_long_text_is_cut"));
    assert!(!hub.api.comments(33)[0].contains("::test_must_be_positive"));

    // The draft is merged: pytest reports its test as xfailed, and a fix is confirmed by it all the same.
    std::fs::write(repository(&hub.place).join(path), text).unwrap();
    hub.git(&["commit", "-qam", "Merge"]);
    let reported = pytest::run(&hub.place, &repository(&hub.place), path);
    assert!(reported.contains("1 xfailed"), "{reported}");
    assert!(!reported.contains("failed in"), "{reported}");
    let base = hub.git(&["rev-parse", "main"]);
    let fix = hub.commit("fix-after-the-merge", slug, cut, right);
    hub.open(34, &base, &fix);
    let comments = hub.api.wait_for_comments(34, 1);
    assert!(
        comments[0].starts_with("Fail-to-pass confirmed"),
        "{comments:?}"
    );
}

#[test]
fn limits_are_kept_and_an_answer_that_got_lost_is_not_posted_again() {
    let mut hub = Hub::new();
    let limited = Response::status(403).with("retry-after", 2);
    hub.api.state().mishaps = vec![(limited, false), (Response::status(502), true)];
    hub.deliver("issues", "d-1", &labelled());
    hub.wait_for_log("GitHub failed (502");
    hub.restart();
    hub.deliver("issue_comment", "d-2", &comment("/testwright"));
    // The second answer comes after the first one was settled.
    let comments = hub.api.wait_for_comments(7, 2);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(hub.api.comments(7), comments);
    assert_ne!(comments[0], comments[1]);
    assert!(hub.api.state().mishaps.is_empty());
}

#[test]
fn a_pull_request_is_answered_once_by_a_server_that_was_killed_and_is_back() {
    let mut hub = Hub::new();
    hub.deliver("issues", "d-1", &labelled());
    hub.api.wait_for_comments(7, 1);
    let base = hub.git(&["rev-parse", "main"]);
    let head = hub.commit("words", "README.md", "slug", "short name");
    assert_eq!(hub.open(31, &base, &head).status, 202);
    // Long enough to be begun, in most cases; what is asked for holds in all.
    std::thread::sleep(Duration::from_secs(2));
    hub.restart();
    let comments = hub.api.wait_for_comments(31, 1);
    assert!(comments[0].starts_with("Still failing"), "{comments:?}");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(
        (hub.api.comments(31).len(), hub.api.comments(7).len()),
        (1, 1)
    );
}

#[test]
fn a_dry_run_says_what_it_would_post_and_asks_github_nothing() {
    let variables = [("TESTWRIGHT_GITHUB_DRY_RUN", "true"), ("GITHUB_TOKEN", "")];
    let hub = Hub::with(&databases::embedded(), &variables);
    hub.deliver("issue_comment", "d-1", &comment("/testwright pr"));
    let log = hub.wait_for_log("dry run: not posted");
    assert!(log.contains("dry run: no pull request is opened"), "{log}");
    assert!(log.contains("tests/test_slug.py"), "{log}");
    assert!(log.contains("testwright wrote a test that fails"), "{log}");
    assert!(!log.contains(SECRET));
    assert_eq!(hub.api.requests(), 0);
}

#[test]
fn an_app_signs_in_once_and_acts_in_its_installation() {
    let key = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/daemon/github/app_key.pem"
    );
    let variables = [
        ("TESTWRIGHT_GITHUB_APP_ID", "4242"),
        ("TESTWRIGHT_GITHUB_APP_KEY_FILE", key),
        ("GITHUB_TOKEN", ""),
    ];
    let hub = Hub::with(&databases::embedded(), &variables);
    let mut first = labelled();
    first["installation"] = json!({"id": 99, "node_id": "x"});
    let mut second = comment("/testwright");
    second["installation"] = first["installation"].clone();
    hub.deliver("issues", "d-1", &first);
    hub.deliver("issue_comment", "d-2", &second);
    hub.api.wait_for_comments(7, 2);
    let logins = hub.api.state().logins.clone();
    let (own, others): (Vec<_>, Vec<_>) = logins
        .into_iter()
        .partition(|(path, _)| path.ends_with("/access_tokens"));
    assert!(
        others
            .iter()
            .all(|(_, login)| login == "Bearer ghs_of_the_installation")
    );
    let [(_, login)] = &own[..] else {
        panic!("{own:?}")
    };
    let claims = verified(login.strip_prefix("Bearer ").unwrap(), key);
    assert_eq!(claims["iss"], "4242");
    let (from, until) = (
        claims["iat"].as_i64().unwrap(),
        claims["exp"].as_i64().unwrap(),
    );
    assert!((1..=600).contains(&(until - from)), "{claims}");
}

/// What a token (RFC 7519) says, where the key signed it.
fn verified(token: &str, key: &str) -> Value {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
    let pem = std::fs::read_to_string(key).unwrap();
    let text: String = pem
        .lines()
        .filter(|line| !line.starts_with("---"))
        .collect();
    let pair = RsaKeyPair::from_der(&BASE64_STANDARD.decode(text).unwrap()).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public());
    public.verify(signed.as_bytes(), &signature).unwrap();
    let claims = signed.split_once('.').unwrap().1;
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

#[test]
fn without_a_secret_there_are_no_webhooks_and_without_a_login_no_server() {
    let place = Place::new();
    let daemon = Daemon::start_idle(&place);
    let refused = daemon.client.send("POST", PATH, &[], "{}");
    assert_eq!(refused.status, 404);
    assert!(
        refused.body.contains("GITHUB_WEBHOOK_SECRET"),
        "{refused:?}"
    );
    drop(daemon);
    let api = GitHubApi::start();
    for (variables, told) in [
        (vec![("GITHUB_TOKEN", "")], "nothing to post answers with"),
        (
            vec![("GITHUB_WEBHOOK_SECRET", "short")],
            "less than 16 characters",
        ),
        (
            vec![("TESTWRIGHT_GITHUB_APP_ID", "1")],
            "private key is not there",
        ),
        (
            vec![("TESTWRIGHT_GITHUB_BASE_URL", "http://192.0.2.1/api")],
            "anybody can read",
        ),
    ] {
        let output = command(&place, &api, &variables).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(told), "{error}");
    }
}
