//! Tests of the local backend: the checks for every backend, and its own guarantees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::local::{Isolation, Local, LocalSettings};
use testwright_sandboxes::sandbox::{Mount, output};
use testwright_sandboxes::{Backend, Command, Sandbox, SandboxSource, Spec};
use tokio::io::AsyncReadExt;

use crate::conformance::checks;
use crate::conformance::proofs::{LimitedBackends, prove};
use crate::conformance::subjects::{Subject, killed_host};
use crate::place::{python_version, shell};

/// Returns a bare start with this machine's interpreter.
pub(crate) fn bare_start() -> SandboxSource {
    SandboxSource::Python(python_version())
}

fn settings(cache: &tempfile::TempDir, force: Isolation) -> LocalSettings {
    settings_in(cache.path(), force)
}

fn settings_in(cache: &Path, force: Isolation) -> LocalSettings {
    LocalSettings {
        cache: cache.to_owned(),
        launcher: vec![env!("CARGO_BIN_EXE_testwright-jail").into()],
        force: Some(force),
        ..LocalSettings::default()
    }
}

/// Returns the backend, or `None` if this machine forbids it.
pub(crate) fn local(cache: &tempfile::TempDir, force: Isolation) -> Option<Arc<dyn Backend>> {
    match Local::new(settings(cache, force)) {
        Ok(local) => Some(Arc::new(local)),
        Err(e) => {
            assert!(e.hint.is_some());
            eprintln!("skipped: {e}");
            None
        }
    }
}

pub(crate) fn cache() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The local backend with a given isolation.
pub(crate) struct LocalSubject(pub Isolation);

#[async_trait]
impl Subject for LocalSubject {
    async fn backend(&self, cache: &Path) -> Option<Arc<dyn Backend>> {
        match Local::new(settings_in(cache, self.0)) {
            Ok(local) => Some(Arc::new(local)),
            Err(e) => {
                assert!(e.hint.is_some());
                eprintln!("skipped: {e}");
                None
            }
        }
    }

    fn start(&self) -> SandboxSource {
        bare_start()
    }

    fn without(&self) -> &'static [&'static str] {
        match self.0 {
            Isolation::Landlock => &["loopback inside"],
            _ => &[],
        }
    }
}

/// Runs one part of the proofs. They are split because faulty sandboxes hang and take long.
async fn prove_part(part: usize) {
    let cache = cache();
    let Some(sound) =
        local(&cache, Isolation::Namespaces).or_else(|| local(&cache, Isolation::Landlock))
    else {
        return;
    };
    let lacking = LimitedBackends {
        isolation: local(&cache, Isolation::None),
        loopback: local(&cache, Isolation::Landlock),
    };
    let checks: Vec<_> = checks().into_iter().skip(part).step_by(4).collect();
    let name = match local(&cache, Isolation::Namespaces) {
        Some(_) => "namespaces",
        None => "landlock",
    };
    prove(&checks, sound, &lacking, &bare_start(), &|| {
        killed_host(name, cache.path())
    })
    .await;
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

pub(crate) fn spec(start: SandboxSource) -> Spec {
    Spec::new(start, "test")
}

/// Returns a backend for every isolation that this machine supports.
fn each(cache: &tempfile::TempDir) -> Vec<Arc<dyn Backend>> {
    [Isolation::Namespaces, Isolation::Landlock, Isolation::None]
        .into_iter()
        .filter_map(|force| local(cache, force))
        .collect()
}

/// Returns the process outside the jail that supervises it and writes to the sandbox's log.
pub(crate) fn supervisor_pid(cache: &Path, sandbox: &dyn Sandbox) -> nix::unistd::Pid {
    let log = cache
        .join("sandboxes")
        .join(&sandbox.info().id)
        .join("launcher.log");
    let log = std::fs::canonicalize(log).unwrap();
    let pid = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .find_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let to_log = std::fs::read_link(entry.path().join("fd/2")).ok()? == log;
            let parent = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = parent
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .to_owned();
            (to_log && parent == std::process::id().to_string()).then_some(pid)
        });
    nix::unistd::Pid::from_raw(pid.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_jail_is_noticed() {
    let cache = cache();
    for backend in each(&cache) {
        let sandbox = backend.start(&spec(bare_start())).await.unwrap();
        let running = sandbox
            .spawn(&Command::new(["sleep", "600"]))
            .await
            .unwrap();
        sandbox.health().await.unwrap();
        nix::sys::signal::kill(
            supervisor_pid(cache.path(), sandbox.as_ref()),
            nix::sys::signal::SIGKILL,
        )
        .unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), running.exit)
            .await
            .unwrap();
        assert_eq!(ended.unwrap_err().kind, ErrorKind::Dead);
        assert_eq!(sandbox.health().await.unwrap_err().kind, ErrorKind::Dead);
        let refused = sandbox.spawn(&Command::new(["true"])).await;
        assert_eq!(refused.err().map(|e| e.kind), Some(ErrorKind::Dead));
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_sandbox_leaves_nothing() {
    let cache = cache();
    for backend in each(&cache) {
        let sandbox = backend.start(&spec(bare_start())).await.unwrap();
        let folder = cache.path().join("sandboxes").join(&sandbox.info().id);
        sandbox
            .spawn(&Command::new(["sleep", "600"]))
            .await
            .unwrap();
        assert!(folder.exists());
        drop(sandbox);
        for _ in 0..100 {
            if !folder.exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(!folder.exists());
    }
}

/// The runtime ends at any stage of a sandbox's start, as when a program is interrupted.
#[test]
fn ending_runtime_leaves_no_sandbox() {
    let cache = cache();
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let Some(backend) = local(&cache, force) else {
            continue;
        };
        let folder = cache.path().join("sandboxes");
        let folder_count = || std::fs::read_dir(&folder).unwrap().count();
        let bare_spec = spec(bare_start());
        for milliseconds in [0, 1, 2, 4, 8, 16, 32, 64, 10_000] {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let pause = Duration::from_millis(milliseconds);
            let start = async { tokio::time::timeout(pause, backend.start(&bare_spec)).await };
            runtime.block_on(async { drop(start.await) });
            drop(runtime);
            assert_eq!(folder_count(), 0, "{force:?}: {milliseconds} ms");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_of_used_state_finishes() {
    let cache = cache();
    let states = cache.path().join("states");
    let state_count = || std::fs::read_dir(&states).unwrap().count();
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let Some(backend) = local(&cache, force) else {
            continue;
        };
        let mut building = spec(bare_start());
        building.root = true;
        let sandbox = backend.start(&building).await.unwrap();
        sandbox.save("state").await.unwrap();
        sandbox.stop().await.unwrap();
        drop(sandbox);
        let saved = spec(SandboxSource::Saved("state".to_owned()));
        let user = backend.start(&saved).await.unwrap();
        backend.remove_saved("state").await.unwrap();
        let none: [String; 0] = [];
        assert_eq!(backend.clean().await.unwrap(), none);
        assert_eq!(state_count(), 1, "the state is in use");
        user.stop().await.unwrap();
        drop((user, backend));
        assert_eq!(state_count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_are_visible_but_read_only() {
    let cache = cache();
    let host = tempfile::tempdir().unwrap();
    let folder = host.path().join("read");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), "from the host\n").unwrap();
    for backend in each(&cache).iter().take(2) {
        let mut spec = spec(bare_start());
        spec.mounts.push(Mount {
            host: folder.clone(),
            inside: "/caches/read".into(),
        });
        spec.env
            .insert("CACHE".to_owned(), "/caches/read".to_owned());
        let sandbox = backend.start(&spec).await.unwrap();
        let text = shell(sandbox.as_ref(), "cat \"$CACHE/file\"").await;
        assert_eq!(text, "from the host\n");
        let command = Command::new(["cp", "/dev/null", "/caches/read/file"]);
        let out = output(sandbox.as_ref(), &command, Duration::from_secs(60))
            .await
            .unwrap();
        assert_ne!(out.code, 0);
        sandbox.stop().await.unwrap();
    }
}

/// Tests that depend on the time zone must give the same result as in containers.
#[tokio::test(flavor = "multi_thread")]
async fn time_zone_is_utc() {
    let cache = cache();
    if !Path::new("/usr/share/zoneinfo/Etc/UTC").exists() {
        return;
    }
    for backend in each(&cache) {
        let sandbox = backend.start(&spec(bare_start())).await.unwrap();
        let script = "date +%Z; echo \"${TZ:-$(readlink /etc/localtime)}\"";
        let zones = shell(sandbox.as_ref(), script).await;
        assert!(zones.lines().all(|zone| zone.ends_with("UTC")), "{zones}");
        sandbox.stop().await.unwrap();
    }
}

/// An environment that was built elsewhere must find the modules of this copy even without a root of its own.
#[tokio::test(flavor = "multi_thread")]
async fn editable_installs_find_copied_modules() {
    let cache = cache();
    for backend in each(&cache) {
        let mut building = spec(bare_start());
        building.root = true;
        let sandbox = backend.start(&building).await.unwrap();
        let environment = sandbox.info().paths.environment.display().to_string();
        let script = format!(
            "mkdir -p src/module && echo 'here = __file__' > src/module/__init__.py &&
             python3 -m venv --without-pip '{environment}' && cd '{environment}'/lib/python3*/site-packages &&
             echo \"$OLDPWD/src\" > __editable__.module.pth"
        );
        assert_eq!(shell(sandbox.as_ref(), &script).await, "");
        sandbox.save("editable").await.unwrap();
        sandbox.stop().await.unwrap();
        let sandbox = backend
            .start(&spec(SandboxSource::Saved("editable".to_owned())))
            .await
            .unwrap();
        let copy = sandbox.fork().await.unwrap();
        for one in [&sandbox, &copy] {
            let output = shell(
                one.as_ref(),
                "python -c 'import module; print(module.here)'",
            )
            .await;
            let expected = one.info().paths.workspace.join("src/module/__init__.py");
            assert_eq!(output.trim(), expected.to_string_lossy());
        }
        copy.stop().await.unwrap();
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_isolation_needs_consent() {
    let cache = cache();
    // A launcher that sets up no jail simulates a machine that allows none.
    let mut settings = LocalSettings {
        cache: cache.path().to_owned(),
        launcher: vec!["false".into()],
        ..LocalSettings::default()
    };
    let refused = Local::new(settings.clone()).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(refused.hint.unwrap().contains("--no-isolation"));
    settings.no_isolation = true;
    assert_eq!(Local::new(settings).unwrap().isolation(), Isolation::None);
}

#[tokio::test]
async fn missing_python_gives_hint() {
    let cache = cache();
    let Some(backend) = each(&cache).pop() else {
        return;
    };
    let missing = backend.check_python("3.99").await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    assert!(missing.hint.unwrap().contains("uv python install 3.99"));
    assert_eq!(
        backend.check_python("three").await.unwrap_err().kind,
        ErrorKind::Input
    );
}

#[tokio::test]
async fn best_isolation_is_chosen() {
    let cache = cache();
    let forced = [Isolation::Namespaces, Isolation::Landlock]
        .into_iter()
        .find(|force| local(&cache, *force).is_some());
    let mut settings = settings(&cache, Isolation::None);
    settings.force = None;
    settings.in_container = true;
    assert_eq!(
        Local::new(settings).ok().map(|local| local.isolation()),
        forced
    );
}

/// The new code needs its install step again, and the old code must not see the result.
#[tokio::test(flavor = "multi_thread")]
async fn building_leaves_saved_state_unchanged() {
    let cache = cache();
    for backend in each(&cache) {
        let mut building = spec(bare_start());
        building.root = true;
        let sandbox = backend.start(&building).await.unwrap();
        let environment = sandbox.info().paths.environment.display().to_string();
        let output = shell(
            sandbox.as_ref(),
            &format!("mkdir '{environment}' && echo first > '{environment}/file'"),
        )
        .await;
        assert_eq!(output, "");
        sandbox.save("first").await.unwrap();
        sandbox.stop().await.unwrap();
        building.start = SandboxSource::Saved("first".to_owned());
        let sandbox = backend.start(&building).await.unwrap();
        let environment = sandbox.info().paths.environment.display().to_string();
        let changed =
            format!("echo second > '{environment}/file'; touch new; cat '{environment}/file'");
        assert_eq!(shell(sandbox.as_ref(), &changed).await, "second\n");
        sandbox.save("second").await.unwrap();
        sandbox.stop().await.unwrap();
        for name in ["first", "second"] {
            let sandbox = backend
                .start(&spec(SandboxSource::Saved(name.to_owned())))
                .await
                .unwrap();
            let file = sandbox.info().paths.environment.join("file");
            let content = sandbox.download(&file).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&content).trim(), name);
            sandbox.stop().await.unwrap();
        }
    }
}

/// Forks continuously until the flag is set. Each child keeps its inherited descriptors for a while before it executes
/// its program.
fn fork_until(stop: Arc<std::sync::atomic::AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
    use std::os::unix::process::CommandExt;
    let fork = move || {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let mut command = std::process::Command::new("/bin/true");
            // SAFETY: sleeping touches no memory of this process.
            unsafe {
                command.pre_exec(|| {
                    std::thread::sleep(Duration::from_millis(20));
                    Ok(())
                });
            }
            command.status().unwrap();
        }
    };
    (0..4).map(|_| std::thread::spawn(fork.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn uploaded_programs_start_despite_forks() {
    let cache = cache();
    let Some(backend) = local(&cache, Isolation::Namespaces) else {
        return;
    };
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let forking = fork_until(stop.clone());
    // A large program takes a while to write.
    let script = [&b"#!/bin/sh\nexit 0\n#"[..], &[b'x'; 8 << 20]].concat();
    let program = cache.path().join("program");
    std::fs::write(&program, &script).unwrap();
    let start = |_| async {
        let sandbox = backend.start(&spec(bare_start())).await.unwrap();
        let store = sandbox.info().paths.store.clone();
        let (linked, written) = (store.join("linked"), store.join("written"));
        let upload = sandbox.upload_file(&linked, &program, 0o755);
        upload.await.unwrap();
        sandbox.upload(&written, &script, 0o755).await.unwrap();
        let mut failures = Vec::new();
        for program in [linked, written] {
            let command = Command::new([program.to_string_lossy()]);
            let out = output(&*sandbox, &command, Duration::from_secs(60)).await;
            failures.extend(Some(out.unwrap()).filter(|out| out.code != 0));
        }
        sandbox.stop().await.unwrap();
        failures
    };
    let failures = futures::future::join_all((0..8).map(start)).await.concat();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for thread in forking {
        thread.join().unwrap();
    }
    assert!(failures.is_empty(), "{failures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_programs_start_once_written() {
    let cache = cache();
    let Some(backend) = local(&cache, Isolation::Namespaces) else {
        return;
    };
    let sandbox = backend.start(&spec(bare_start())).await.unwrap();
    shell(&*sandbox, "cp /bin/true /tmp/program").await;
    let writer = Command::shell("exec 3<>/tmp/program; echo open; sleep 0.3");
    let mut writer = sandbox.spawn(&writer).await.unwrap();
    let mut line = [0; 5];
    writer.stdout.read_exact(&mut line).await.unwrap();
    let program = Command::new(["/tmp/program"]);
    let out = output(&*sandbox, &program, Duration::from_secs(60)).await;
    assert_eq!(out.unwrap().code, 0);
    sandbox.stop().await.unwrap();
}
