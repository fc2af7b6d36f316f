//! Proofs that each check fails on a sandbox with exactly the fault that it tests for.

use std::sync::Arc;

use futures::future;
use futures::stream::{self, StreamExt as _};
use testwright_sandboxes::{Backend, SandboxSource};

use super::{CONCURRENT_CHECKS, Check, Fault, FaultyBackend, Fixture, run};

/// Backends that lack a feature because of their settings.
pub(crate) struct LimitedBackends {
    pub isolation: Option<Arc<dyn Backend>>,
    pub loopback: Option<Arc<dyn Backend>>,
}

/// Runs each check on a sandbox with its fault, and panics with a list of those that pass.
pub(crate) async fn prove(
    checks: &[Check],
    sound: Arc<dyn Backend>,
    lacking: &LimitedBackends,
    bare: &SandboxSource,
    killed_host: &(dyn Fn() -> std::process::Command + Sync),
) {
    let blind: Vec<_> = stream::iter(checks)
        .map(|check| prove_one(check, sound.clone(), lacking, bare, killed_host))
        .buffer_unordered(CONCURRENT_CHECKS)
        .filter_map(future::ready)
        .collect()
        .await;
    assert!(blind.is_empty(), "{}", blind.join("\n"));
}

/// Describes what is wrong with a check that passes despite its fault.
async fn prove_one(
    check: &Check,
    sound: Arc<dyn Backend>,
    lacking: &LimitedBackends,
    bare: &SandboxSource,
    killed_host: &(dyn Fn() -> std::process::Command + Sync),
) -> Option<String> {
    let inner = match check.fault {
        Fault::NoIsolation => lacking.isolation.clone(),
        Fault::NoLoopback => lacking.loopback.clone(),
        _ => Some(sound),
    };
    let Some(inner) = inner else {
        eprintln!("skipped: `{}` cannot be proved on this machine", check.name);
        return None;
    };
    let broken = FaultyBackend::new(inner, check.fault, bare.clone());
    let ground = Fixture {
        backend: &broken,
        start: bare,
        without: &[],
        killed_host: Some(killed_host),
    };
    let verdict = run(check, ground).await;
    broken.end().await;
    match verdict {
        Ok(()) => Some(format!(
            "`{}` does not notice {:?}",
            check.name, check.fault
        )),
        Err(why) => {
            eprintln!("`{}` notices {:?}: {why}", check.name, check.fault);
            None
        }
    }
}
