//! Checks of what remains after a host was killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::FutureExt;
use testwright_sandboxes::Backend;

use super::states::{daemon, mark, marked};
use super::{Check, CheckFn, Fault, Fixture, Verdict, ensure, sh};

/// Variable with the mark for the host that will be killed.
const MARK: &str = "TESTWRIGHT_CHECK_MARK";

pub(super) fn checks() -> Vec<Check> {
    vec![Check {
        name: "cleaning removes what a killed host left",
        what: CheckFn::Making(|g| killed_host(g).boxed()),
        fault: Fault::CleanNothing,
    }]
}

/// Runs as a separate program: starts a sandbox and a fork of it, with processes in them, prints their IDs, and waits
/// to be killed. In any other program it does nothing.
pub(crate) async fn host_to_be_killed(ground: Fixture<'_>) {
    let Ok(mark) = std::env::var(MARK) else {
        return;
    };
    let sandbox = ground.sandbox(&ground.spec()).await.unwrap();
    let copy = sandbox.fork().await.unwrap();
    for one in [&sandbox, &copy] {
        sh(one.as_ref(), &daemon(&mark)).await.unwrap();
        println!("id {}", one.info().id);
    }
    println!("id end");
    std::future::pending::<()>().await;
}

/// A host process that is killed when this value is dropped.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program that has a sandbox and a fork of it. Returns their IDs too.
async fn start_host(mut command: Command, mark: &str) -> Result<(Host, Vec<String>), String> {
    command
        .env(MARK, mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut host = Host(command.spawn().map_err(|e| e.to_string())?);
    let out = BufReader::new(host.0.stdout.take().unwrap());
    let ids = tokio::task::spawn_blocking(move || {
        out.lines()
            .map_while(Result::ok)
            .filter_map(|line| Some(line.split_once("id ")?.1.to_owned()))
            .take_while(|id| id != "end")
            .collect::<Vec<_>>()
    });
    let ids = tokio::time::timeout(Duration::from_secs(60), ids).await;
    let ids = ids.map_err(|_| "the host did not start")?.unwrap();
    ensure(ids.len() == 2, format!("the host says {ids:?}"))?;
    Ok((host, ids))
}

/// Checks that processes end with a killed host although no process cleans up.
pub(crate) async fn processes_end_with_a_killed_host(command: Command) {
    let mark = mark();
    let (mut host, _) = start_host(command, &mark).await.unwrap();
    assert!(marked(&mark) > 0);
    host.0.kill().unwrap();
    host.0.wait().unwrap();
    let begun = std::time::Instant::now();
    while marked(&mark) > 0 {
        let remaining = marked(&mark);
        assert!(
            begun.elapsed().as_secs() < 30,
            "{remaining} processes are left"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn killed_host(ground: Fixture<'_>) -> Verdict {
    let mut verdict = Ok(());
    // A program that starts meanwhile also cleans up, and may do so first.
    for _ in 0..3 {
        verdict = killed_host_is_cleaned(ground).await;
        if verdict.is_ok() {
            break;
        }
    }
    verdict
}

async fn killed_host_is_cleaned(ground: Fixture<'_>) -> Verdict {
    let Some(command) = ground.killed_host else {
        return Err("no program was given".to_owned());
    };
    let mark = mark();
    let (mut host, ids) = start_host(command(), &mark).await?;
    let seen = marked(&mark);
    ensure(
        clean(ground).await?.is_empty() || seen == marked(&mark),
        "cleaning ends what has an owner",
    )?;
    // SIGKILL leaves no chance to clean up.
    host.0.kill().map_err(|e| e.to_string())?;
    host.0.wait().map_err(|e| e.to_string())?;
    let mut removed = Vec::new();
    for _ in 0..50 {
        removed.extend(clean(ground).await?);
        let all = ids
            .iter()
            .all(|id| removed.iter().any(|line| mentions(line, id)));
        if all && marked(&mark) == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!(
        "of {ids:?}, it removed only {removed:?}; {} processes are left",
        marked(&mark)
    ))
}

/// Returns whether a line mentions an ID. Engines shorten IDs.
fn mentions(line: &str, id: &str) -> bool {
    line.contains(id) || id.get(..12).is_some_and(|short| line.contains(short))
}

async fn clean(ground: Fixture<'_>) -> Result<Vec<String>, String> {
    let backend: &dyn Backend = ground.backend;
    backend.clean().await.map_err(|e| format!("clean: {e}"))
}
