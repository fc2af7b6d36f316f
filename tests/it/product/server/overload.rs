//! Clients that try to block the server: idle connections, incomplete requests, unsigned deliveries.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{ServerProcess, databases, issue, wait_until};
use crate::support::program::{TestDir, example};

/// Shorter than the time that a client has to send a body.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Starts a server whose limit of open files is 256.
fn limited(place: &TestDir) -> ServerProcess {
    let program = place.testwright();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]);
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--workers",
            "1",
            "--data",
        ])
        .arg(place.path("data"))
        .args(["--allow-repository", &example("*")])
        .env("GITHUB_TOKEN", "a-token-of-the-test")
        .env("GITHUB_WEBHOOK_SECRET", "0123456789abcdef0123456789abcdef")
        .stdin(Stdio::null());
    ServerProcess::logged(command, &place.path("log"))
}

fn half_request(daemon: &ServerProcess, head: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(&daemon.client.address).unwrap();
    let address = &daemon.client.address;
    let head = format!("POST {head}\r\nhost: {address}\r\norigin: http://{address}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // The server may already have rejected the request and closed the connection.
    let _ = stream.write_all(&vec![b'x'; bytes]);
    stream
}

fn resident(daemon: &ServerProcess) -> f64 {
    let metrics = daemon.client.get("/metrics").body;
    let line = metrics
        .lines()
        .find_map(|l| l.strip_prefix("process_resident_memory_bytes "));
    line.unwrap().parse().unwrap()
}

#[test]
fn idle_connections_do_not_block_runs() {
    let place = TestDir::new();
    let daemon = limited(&place);
    let idle: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect(&daemon.client.address).unwrap())
        .collect();
    let begun = Instant::now();
    assert_eq!(daemon.client.get("/v1/health").status, 200);
    assert_eq!(daemon.client.get("/v1/ready").status, 200);
    assert!(begun.elapsed() < RESPONSE_TIMEOUT);
    let runs: Vec<String> = (0..3).map(|_| daemon.run(&issue())).collect();
    for run in &runs {
        daemon.wait_for(run, "accepted");
        let run_record = daemon.client.get(&format!("/v1/runs/{run}")).json();
        assert_eq!(run_record["requeues"], 0, "{run_record}");
    }
    drop(idle);
}

#[test]
fn incomplete_requests_use_bounded_memory() {
    let place = TestDir::new();
    let daemon = limited(&place);
    let answer = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let too_large = "/login HTTP/1.1\r\ncontent-length: 4194304";
    assert_eq!(
        answer(&mut half_request(&daemon, too_large, 0)),
        "HTTP/1.1 413"
    );
    let webhook = "/v1/github/webhook HTTP/1.1\r\ncontent-length: 4194304";
    assert_eq!(
        answer(&mut half_request(&daemon, webhook, 0)),
        "HTTP/1.1 401"
    );
    let malformed = format!("{webhook}\r\nx-hub-signature-256: sha256=12");
    assert_eq!(
        answer(&mut half_request(&daemon, &malformed, 0)),
        "HTTP/1.1 401"
    );

    let before = resident(&daemon);
    let signed = format!(
        "{webhook}\r\nx-hub-signature-256: sha256={}",
        "0".repeat(64)
    );
    let login = "/login HTTP/1.1\r\ncontent-length: 16000";
    let held: Vec<TcpStream> = (0..40)
        .flat_map(|_| {
            [
                half_request(&daemon, login, 8_000),
                half_request(&daemon, &signed, 1 << 20),
            ]
        })
        .collect();
    assert_eq!(daemon.client.get("/v1/health").status, 200);
    // The limit is that of all large bodies together, plus the same for data in transit.
    let grown = resident(&daemon) - before;
    assert!(grown < 160e6, "{grown}");
    drop(held);
}

#[test]
fn missing_descriptors_fail_no_runs() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_with(
        &place,
        &databases::embedded(),
        None,
        "data",
        &["--workers", "2"],
    );
    let process = daemon.child.id();
    let limit = |files: &str| {
        let limited = Command::new("prlimit")
            .args(["--pid", &process.to_string(), &format!("--nofile={files}:")])
            .status();
        assert!(limited.unwrap().success());
    };
    // The connections of the database and of this client stay open.
    assert_eq!(daemon.client.get("/v1/ready").status, 200);
    let open = std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .count();
    let runs: Vec<String> = (0..4).map(|_| daemon.run(&issue())).collect();
    limit(&(open + 8).to_string());
    // Without free descriptors the server may be unable to read the database.
    let is_returned = |run: &String| {
        let run_record = daemon.client.get(&format!("/v1/runs/{run}")).json();
        run_record["requeues"]
            .as_i64()
            .is_some_and(|times| times > 0)
    };
    wait_until("a run is returned", || runs.iter().any(is_returned));
    wait_until("it is not ready", || {
        daemon.client.get("/v1/ready").status == 503
    });
    limit("1024");
    for run in &runs {
        daemon.wait_for(run, "accepted");
    }
}
