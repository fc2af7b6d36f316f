//! Checks that every backend must pass.
//!
//! A [`Check`] names one guarantee. It gets a new sandbox (or the backend) and reports what is wrong. For each check,
//! [`proofs`] provides a sandbox with exactly that fault, on which the check must fail.
//!
//! [`subjects`] lists the tested backends.

mod faults;
mod files;
mod isolation;
mod limits;
mod orphans;
mod processes;
pub(crate) mod proofs;
mod states;
pub(crate) mod subjects;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream::{self, StreamExt as _};
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, Limits, Sandbox, SandboxSource, Spec};

pub(crate) use faults::{Fault, FaultyBackend};
pub(crate) use orphans::{host_to_be_killed, processes_end_with_a_killed_host};

/// The environment of a check.
#[derive(Clone, Copy)]
pub(crate) struct Fixture<'a> {
    pub backend: &'a dyn Backend,
    /// Source of a bare start, for example `SandboxSource::Python("3.11")`.
    pub start: &'a SandboxSource,
    /// Names of checks to skip, because this backend cannot pass them by design.
    pub without: &'a [&'a str],
    /// Starts this test program again as a host that calls [`host_to_be_killed`] for this backend and start.
    pub killed_host: Option<&'a (dyn Fn() -> std::process::Command + Sync)>,
}

pub(crate) struct Check {
    pub name: &'static str,
    pub what: CheckFn,
    /// A fault that this check detects.
    pub fault: Fault,
}

/// The function of a check. Checks that need one running sandbox share it; checks that need several create them.
#[derive(Clone, Copy)]
pub(crate) enum CheckFn {
    /// Runs in a sandbox as tools use it: without network and not as root.
    Running(for<'a> fn(&'a dyn Sandbox) -> BoxFuture<'a, Verdict>),
    Making(for<'a> fn(Fixture<'a>) -> BoxFuture<'a, Verdict>),
}

pub(crate) type Verdict = Result<(), String>;

/// Returns all checks.
pub(crate) fn checks() -> Vec<Check> {
    let mut all = Vec::new();
    all.extend(files::checks());
    all.extend(processes::checks());
    all.extend(isolation::checks());
    all.extend(limits::checks());
    all.extend(states::checks());
    all.extend(orphans::checks());
    all
}

impl Fixture<'_> {
    pub(crate) fn spec(&self) -> Spec {
        Spec {
            limits: Limits {
                memory: 512 << 20,
                processes: 64,
                file_size: 64 << 20,
                ..Limits::default()
            },
            env: BTreeMap::from([("FROM_SPEC".to_owned(), "spec".to_owned())]),
            ..Spec::new(self.start.clone(), "conformance")
        }
    }

    pub(crate) async fn sandbox(&self, spec: &Spec) -> Result<Box<dyn Sandbox>, String> {
        self.backend
            .start(spec)
            .await
            .map_err(|e| format!("start: {e}"))
    }
}

/// Runs one check in its own sandboxes.
pub(crate) async fn run(check: &Check, ground: Fixture<'_>) -> Verdict {
    let verdict = async {
        match check.what {
            CheckFn::Making(check) => check(ground).await,
            CheckFn::Running(check) => {
                let sandbox = ground.sandbox(&ground.spec()).await?;
                let verdict = check(sandbox.as_ref()).await;
                sandbox.stop().await.map_err(|e| format!("stop: {e}"))?;
                verdict
            }
        }
    };
    // An engine reads and writes a state as a whole, including the image below it, which takes long.
    match tokio::time::timeout(Duration::from_secs(300), verdict).await {
        Ok(verdict) => verdict,
        Err(_) => Err("it hangs".to_owned()),
    }
}

/// Maximum concurrent checks with their own sandboxes, which spend most of their time waiting.
pub(crate) const CONCURRENT_CHECKS: usize = 4;

/// Runs all checks and panics with a list of those that fail.
pub(crate) async fn run_all(ground: Fixture<'_>) {
    let checks = checks();
    let checks = checks
        .iter()
        .filter(|check| !ground.without.contains(&check.name));
    let (running, making): (Vec<_>, Vec<_>) =
        checks.partition(|check| matches!(check.what, CheckFn::Running(_)));
    let making = stream::iter(making)
        .map(|check| async move { (check, run(check, ground).await) })
        .buffer_unordered(CONCURRENT_CHECKS)
        .collect::<Vec<_>>();
    let (mut verdicts, more) = future::join(hold_in_one(running, ground), making).await;
    verdicts.extend(more);
    let failures: Vec<_> = verdicts
        .into_iter()
        .filter_map(|(check, verdict)| Some(format!("{}: {}", check.name, verdict.err()?)))
        .collect();
    assert!(
        failures.is_empty(),
        "{} fails:\n{}",
        ground.backend.name(),
        failures.join("\n")
    );
}

/// Runs the checks one after another in one sandbox.
async fn hold_in_one<'a>(checks: Vec<&'a Check>, ground: Fixture<'_>) -> Vec<(&'a Check, Verdict)> {
    let shared = ground.sandbox(&ground.spec()).await.unwrap();
    let mut verdicts = Vec::new();
    for check in checks {
        let CheckFn::Running(body) = check.what else {
            continue;
        };
        let limit = Duration::from_secs(120);
        let verdict = tokio::time::timeout(limit, body(shared.as_ref())).await;
        verdicts.push((
            check,
            verdict.unwrap_or_else(|_| Err("it hangs".to_owned())),
        ));
    }
    shared.stop().await.unwrap();
    verdicts
}

// Helpers for the checks.

const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a script to its end. Returns its exit code, and both outputs as text.
async fn sh(sandbox: &dyn Sandbox, script: &str) -> Result<(i32, String), String> {
    let out = output(sandbox, &Command::shell(script), CHECK_TIMEOUT)
        .await
        .map_err(|e| format!("run `{script}`: {e}"))?;
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&out.stderr));
    Ok((out.code, text))
}

async fn python(sandbox: &dyn Sandbox, script: &str) -> Result<(i32, String), String> {
    let out = output(
        sandbox,
        &Command::new(["python3", "-c", script]),
        CHECK_TIMEOUT,
    )
    .await
    .map_err(|e| format!("run Python: {e}"))?;
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&out.stderr));
    Ok((out.code, text.trim().to_owned()))
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Verdict {
    if got == expected {
        Ok(())
    } else {
        Err(format!(
            "{what}: {} instead of {}",
            short(&got),
            short(&expected)
        ))
    }
}

fn short(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let cut: String = text.chars().take(500).collect();
    if cut.len() < text.len() {
        cut + " …"
    } else {
        cut
    }
}

fn ensure(holds: bool, otherwise: impl Into<String>) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

async fn upload(sandbox: &dyn Sandbox, path: &Path, content: &[u8]) -> Verdict {
    let result = sandbox.upload(path, content, 0o644).await;
    result.map_err(|e| format!("upload {}: {e}", path.display()))
}

async fn download(sandbox: &dyn Sandbox, path: &Path) -> Result<Vec<u8>, String> {
    let content = sandbox.download(path).await;
    content.map_err(|e| format!("download {}: {e}", path.display()))
}

async fn stop(sandbox: Box<dyn Sandbox>) -> Verdict {
    sandbox.stop().await.map_err(|e| format!("stop: {e}"))
}

/// Returns bytes that are not valid in any text encoding.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
