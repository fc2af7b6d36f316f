//! Each check fails on a sandbox that is broken in just the way that the check is about.

use std::sync::Arc;

use testwright_sandboxes::{Backend, SandboxSource};

use super::{Check, Fault, FaultyBackend, Fixture, run};

/// Backends that lack something by their settings.
pub struct Lacking {
    pub isolation: Option<Arc<dyn Backend>>,
    pub loopback: Option<Arc<dyn Backend>>,
}

/// Runs each check of `checks` on a sandbox with its fault; panics with those that do not fail.
pub async fn prove(
    checks: &[Check],
    sound: Arc<dyn Backend>,
    lacking: &Lacking,
    bare: &SandboxSource,
    killed_host: &(dyn Fn() -> std::process::Command + Sync),
) {
    let mut blind = Vec::new();
    for check in checks {
        let inner = match check.fault {
            Fault::NoIsolation => lacking.isolation.clone(),
            Fault::NoLoopback => lacking.loopback.clone(),
            _ => Some(sound.clone()),
        };
        let Some(inner) = inner else {
            eprintln!("skipped: `{}` cannot be proven on this machine", check.name);
            continue;
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
            Ok(()) => blind.push(format!(
                "`{}` does not notice {:?}",
                check.name, check.fault
            )),
            Err(why) => eprintln!("`{}` notices {:?}: {why}", check.name, check.fault),
        }
    }
    assert!(blind.is_empty(), "{}", blind.join("\n"));
}
