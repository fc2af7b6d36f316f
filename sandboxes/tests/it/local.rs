//! The local backend, held to what every sandbox promises, and to what only it promises.

use std::sync::Arc;

use testwright_sandboxes::local::{Isolation, Local, LocalSettings};
use testwright_sandboxes::{Backend, Start};

use crate::conformance::proofs::{Lacking, prove};
use crate::conformance::{Ground, checks, hold};

/// The interpreter that these tests use: the one that this machine has.
fn bare() -> Start {
    static VERSION: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let script = "import sys; print('%d.%d' % sys.version_info[:2])";
        let out = std::process::Command::new("python3")
            .args(["-c", script])
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    });
    Start::Python(version.clone())
}

fn settings(cache: &tempfile::TempDir, force: Isolation) -> LocalSettings {
    LocalSettings {
        cache: cache.path().to_owned(),
        launcher: vec![env!("CARGO_BIN_EXE_testwright-jail").into()],
        no_isolation: false,
        force: Some(force),
    }
}

/// The backend, unless this machine forbids it.
fn local(cache: &tempfile::TempDir, force: Isolation) -> Option<Arc<dyn Backend>> {
    match Local::new(settings(cache, force)) {
        Ok(local) => Some(Arc::new(local)),
        Err(e) => {
            assert!(e.hint.is_some());
            eprintln!("skipped: {e}");
            None
        }
    }
}

fn cache() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_keep_the_promises() {
    let cache = cache();
    let Some(backend) = local(&cache, Isolation::Namespaces) else {
        return;
    };
    let ground = Ground {
        backend: backend.as_ref(),
        start: &bare(),
        without: &[],
    };
    hold(ground).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn landlock_keeps_the_promises() {
    let cache = cache();
    let Some(backend) = local(&cache, Isolation::Landlock) else {
        return;
    };
    let without: &[&str] = if nix::unistd::geteuid().is_root() {
        &["loopback inside", "processes are limited"]
    } else {
        &["loopback inside"]
    };
    let ground = Ground {
        backend: backend.as_ref(),
        start: &bare(),
        without,
    };
    hold(ground).await;
}

/// One of these for each part of the battery: they take their time because broken sandboxes hang.
async fn prove_part(part: usize) {
    let cache = cache();
    let Some(sound) =
        local(&cache, Isolation::Namespaces).or_else(|| local(&cache, Isolation::Landlock))
    else {
        return;
    };
    let lacking = Lacking {
        isolation: local(&cache, Isolation::None),
        loopback: local(&cache, Isolation::Landlock),
    };
    let checks: Vec<_> = checks().into_iter().skip(part).step_by(4).collect();
    prove(&checks, sound, &lacking, &bare()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_can_fail_1() {
    prove_part(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_can_fail_2() {
    prove_part(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_can_fail_3() {
    prove_part(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_can_fail_4() {
    prove_part(3).await;
}
