//! Helpers for the tests of the jail, and a second run of these tests as an ordinary user.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use testwright_sandboxes::docker::Docker;
use testwright_sandboxes::local::{Isolation, Local, LocalSettings};
use testwright_sandboxes::sandbox::{Sandbox, output};
use testwright_sandboxes::{Backend, Command};

pub(super) use crate::local::{bare_start as python, spec};

/// Variable with the path of the launcher, for a copy of this program in another place.
const LAUNCHER: &str = "TESTWRIGHT_CHECK_LAUNCHER";

pub(super) fn launcher() -> std::ffi::OsString {
    std::env::var_os(LAUNCHER).unwrap_or_else(|| env!("CARGO_BIN_EXE_testwright-jail").into())
}

/// Returns the backend, or `None` if this machine forbids it.
pub(super) fn local(cache: &Path, force: Isolation) -> Option<Arc<dyn Backend>> {
    let settings = LocalSettings {
        cache: cache.to_owned(),
        launcher: vec![launcher()],
        force: Some(force),
        ..LocalSettings::default()
    };
    match Local::new(settings) {
        Ok(local) => Some(Arc::new(local)),
        Err(e) => {
            // Only the kernel may be the reason.
            assert!(
                force != Isolation::Landlock || e.to_string().contains("the kernel lacks it"),
                "{e}"
            );
            eprintln!("skipped: {e}");
            None
        }
    }
}

pub(super) async fn docker() -> Option<Docker> {
    crate::docker::engine().await
}

pub(super) async fn run_script(sandbox: &dyn Sandbox, script: &str) -> String {
    run(sandbox, Command::shell(script)).await
}

pub(super) async fn run_python(sandbox: &dyn Sandbox, script: &str) -> String {
    run(sandbox, Command::new(["python3", "-c", script])).await
}

async fn run(sandbox: &dyn Sandbox, command: Command) -> String {
    let out = output(sandbox, &command, Duration::from_secs(90))
        .await
        .unwrap();
    let text = [out.stdout, out.stderr].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}

pub(super) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Root's home is closed to others, so this program and the launcher are copied to a place that everyone may enter.
#[test]
fn ordinary_user_passes_jail_tests() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755));
    open(place.path()).unwrap();
    let (program, launcher) = (place.path().join("tests"), place.path().join("launcher"));
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_testwright-jail"), &launcher).unwrap();
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    for path in [&program, &launcher] {
        open(path).unwrap();
    }
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o777)).unwrap();
    let out = std::process::Command::new("setpriv")
        .args(["--reuid=54321", "--regid=54321", "--clear-groups"])
        .arg(&program)
        .args([
            "security::jail_",
            "--skip",
            "docker_",
            "--test-threads=2",
            "--nocapture",
        ])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .env(LAUNCHER, &launcher)
        .current_dir(&home)
        .output()
        .unwrap();
    let output =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{output}");
    assert!(!output.contains("skipped: isolate"), "{output}");
}
