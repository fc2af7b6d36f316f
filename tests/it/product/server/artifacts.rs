//! Files of runs and shared environments, in a folder and in an S3 store.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::client::Client;
use super::{ServerProcess, databases, issue};
use crate::support::program::{TestDir, assert_exit_code, example};

const SECRET: &str = "planted-Bucket5e6f7a8b";
const BUCKET: &str = "artifacts";

/// An S3 server with an empty bucket.
struct S3Server {
    child: Child,
    client: Client,
}

impl S3Server {
    /// Starts the server. Returns `None`, with a message, if uv or the package index is not available.
    fn start() -> Option<S3Server> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let started = Command::new("uv")
            .args(["run", "--quiet", "--no-project", "--with"])
            .args(["moto[server]==5.2.1", "moto_server", "-H", "127.0.0.1"])
            .args(["-p", &port])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // uv starts the server as a child, so both must be killed.
            .process_group(0)
            .spawn();
        let Ok(mut child) = started else {
            eprintln!("skipped: uv is not installed, so no S3 server can run");
            return None;
        };
        let address = format!("127.0.0.1:{port}");
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            if child.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(120) {
                eprintln!(
                    "skipped: the S3 server (moto) cannot be installed from the package index"
                );
                let _ = child.kill();
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let server = S3Server {
            child,
            client: Client { address },
        };
        let reply = server.client.send("PUT", &format!("/{BUCKET}"), &[], "");
        assert_eq!(reply.status, 200, "{reply:?}");
        Some(server)
    }

    fn set(&self, command: &mut Command) {
        let endpoint = format!("http://{}", self.client.address);
        set_account(command, &endpoint);
    }

    /// Returns the names of all objects.
    fn objects(&self) -> Vec<String> {
        let listed = self.client.get(&format!("/{BUCKET}?list-type=2")).body;
        let keys = listed.split("<Key>").skip(1);
        keys.map(|rest| rest.split('<').next().unwrap().to_owned())
            .collect()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

fn set_account(command: &mut Command, endpoint: &str) {
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ACCESS_KEY_ID", "account")
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("TESTWRIGHT_ARTIFACTS", format!("s3://{BUCKET}/some/prefix"));
}

fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the files of a run by name, and checks their digests.
pub(super) fn files(client: &Client, run: &str) -> BTreeMap<String, String> {
    let address = format!("/v1/runs/{run}/artifacts");
    let listed = client.get(&address);
    assert_eq!(listed.status, 200, "{listed:?}");
    let described = client.get("/v1/openapi.json").json();
    let described = &described["paths"]["/v1/runs/{id}/artifacts/{name}"]["get"]["responses"];
    let described = described["200"]["content"].as_object().unwrap();
    let mut files = BTreeMap::new();
    for artifact in listed.json()["artifacts"].as_array().unwrap() {
        let name = artifact["name"].as_str().unwrap();
        let file = client.get(&format!("{address}/{name}"));
        assert_eq!(file.status, 200, "{name}: {file:?}");
        let media_type = file.header("content-type").unwrap();
        let media_type = media_type.split(';').next().unwrap();
        assert!(described.contains_key(media_type), "{media_type}");
        let digest = artifact["sha256"].as_str().unwrap();
        assert_eq!(sha256(&file.body), digest, "{name}");
        assert_eq!(file.header("etag"), Some(format!("\"{digest}\"").as_str()));
        assert_eq!(artifact["bytes"], file.body.len());
        files.insert(name.to_owned(), file.body);
    }
    files
}

pub(super) fn assert_whole(client: &Client, run: &str) {
    let files = files(client, run);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected_names = [
        "environment.log",
        "evidence.json",
        "run.json",
        "test.patch",
        "trajectory.jsonl",
    ];
    assert_eq!(names, expected_names);
    let same = |path: &str| client.get(&format!("/v1/runs/{run}/{path}")).body;
    assert_eq!(files["test.patch"], same("patch"));
    assert_eq!(files["trajectory.jsonl"], same("trajectory"));
}

#[test]
fn files_are_removed_with_run() {
    for database in databases::all() {
        let place = TestDir::new();
        let first = ServerProcess::start(&place, &database, None);
        let (old, new) = (first.run(&issue()), first.run(&issue()));
        for run in [&old, &new] {
            first.wait_for(run, "accepted");
            assert_whole(&first.client, run);
        }
        let address = format!("/v1/runs/{old}/artifacts");
        for name in ["missing", "..%2Frun.json", ".."] {
            let missing = first.client.get(&format!("{address}/{name}"));
            assert_eq!(missing.status, 404, "{name}");
        }
        let of_old = files(&first.client, &old);
        let of_new = files(&first.client, &new);
        assert_eq!(first.terminate(), Some(0));

        let ago = 31 * 24 * 3_600_000_i64;
        let sql = format!("UPDATE runs SET ended_at = ended_at - {ago} WHERE id = '{old}'");
        database.execute(&place.path("data"), &sql);
        let words = ["--workers", "0", "--keep-runs", "30"];
        let second = ServerProcess::start_with(&place, &database, None, "data", &words);
        let blob = |content: &str| {
            let digest = sha256(content);
            let folder = place.path("data/artifacts/sha256").join(&digest[..2]);
            folder.join(digest)
        };
        let begun = Instant::now();
        while blob(&of_old["run.json"]).exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it stays");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(second.client.get(&address).status, 404);
        // Content that both runs share, such as the log of the environment, stays.
        assert!(of_new.values().all(|content| blob(content).exists()));
        assert_whole(&second.client, &new);
        assert_eq!(second.terminate(), Some(0));
    }
}

#[test]
fn run_without_files_can_be_retried() {
    let place = TestDir::new();
    let daemon = ServerProcess::start(&place, &databases::embedded(), None);
    // A file at this path prevents the folder from being created.
    let obstacle = place.path("data/artifacts/sha256");
    std::fs::write(&obstacle, "").unwrap();
    let run = daemon.run(&issue());
    daemon.wait_for(&run, "infrastructure");
    let address = format!("/v1/runs/{run}");
    let reply = daemon.client.get(&address);
    assert!(reply.body.contains("artifact store"), "{reply:?}");
    std::fs::remove_file(&obstacle).unwrap();
    let retry = format!("{address}/retry");
    let retried = daemon.client.send("POST", &retry, &[], "");
    assert_eq!(retried.status, 202, "{retried:?}");
    daemon.wait_for(&run, "accepted");
    assert_whole(&daemon.client, &run);
}

#[test]
fn bucket_stores_run_files() {
    let Some(s3) = S3Server::start() else { return };
    let place = TestDir::new();
    let mut command = place.testwright();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.path("data"))
        .args(["--allow-repository", &example("*")]);
    s3.set(&mut command);
    let daemon = ServerProcess::logged(command, &place.path("log"));
    let run = daemon.run(&issue());
    daemon.wait_for(&run, "accepted");
    assert_whole(&daemon.client, &run);
    let objects = s3.objects();
    for content in files(&daemon.client, &run).values() {
        let digest = sha256(content);
        let name = format!("some/prefix/sha256/{}/{digest}", &digest[..2]);
        assert!(objects.contains(&name), "{name} {objects:?}");
    }
    assert!(!place.path("data/artifacts").exists());
}

#[test]
fn workers_share_built_environments() {
    let Some(s3) = S3Server::start() else { return };
    let place = TestDir::new();
    let run_progress = |machine: &str| {
        let out = place.path(&format!("out-{machine}"));
        let mut command = place.testwright();
        command
            .args(["run", &example("issue.md"), "--repo", &example("slugs")])
            .arg("--verbose")
            .arg("--out")
            .arg(&out)
            .env("TESTWRIGHT_CACHE", place.path(machine));
        s3.set(&mut command);
        let output = command.output().unwrap();
        assert_exit_code(&output, 0);
        let run = std::fs::read_to_string(out.join("run.json"));
        assert!(!run.unwrap().contains(SECRET));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let first = run_progress("one");
    assert!(first.contains("install the package"), "{first}");
    let objects = s3.objects();
    let shared = |ending: &str| objects.iter().filter(|o| o.ends_with(ending)).count();
    // Two layers are stored: the requirements and the environment. No build is claimed any more.
    assert_eq!((shared(".json"), shared(".claim")), (2, 0), "{objects:?}");
    let second = run_progress("two");
    assert!(!second.contains("install"), "{second}");
    let how = "built by another machine, from the artifact store";
    assert!(second.contains(how), "{second}");
}

#[test]
fn unreachable_store_is_reported_with_hint() {
    let place = TestDir::new();
    let mut command = place.testwright();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.path("data"));
    set_account(&mut command, "http://127.0.0.1:1");
    let output = command.output().unwrap();
    assert_exit_code(&output, 3);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("failed to write to the artifact store s3://artifacts/some/prefix"),
        "{stderr}"
    );
    assert!(stderr.contains("AWS_ENDPOINT_URL"), "{stderr}");
    assert!(!stderr.contains(SECRET), "{stderr}");
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
}
