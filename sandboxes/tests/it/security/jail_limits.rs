//! Tests of memory and disk space that limits for single processes do not cover.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::local::Isolation;
use testwright_sandboxes::sandbox::Sandbox;
use testwright_sandboxes::{Backend, Command, Limits, SandboxSource, Spec};

use super::jail_users::{docker, local, python, run_python, run_script, spec};

const MEMORY: u64 = 300 << 20;

pub(super) fn bounded() -> Spec {
    let mut spec = spec(python());
    spec.limits.memory = MEMORY;
    spec
}

/// Scripts that print `had` if they get at least twice the limit.
const HOARDS: [(&str, &str); 5] = [
    (
        "a file in memory, written and not mapped",
        "import os
f = os.memfd_create('x')
for _ in range(600): os.write(f, b'x' * (1 << 20))
print('had')",
    ),
    (
        "many processes",
        "import os, time
r, w = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        x = b'x' * (100 << 20); os.write(w, b'1'); time.sleep(15); os._exit(0)
os.close(w); n = 0
while n < 6:
    got = os.read(r, 1)
    if not got: break
    n += 1
time.sleep(2)
alive = 0
for _ in range(6):
    try:
        if os.waitpid(-1, os.WNOHANG) == (0, 0): alive += 1
    except ChildProcessError: pass
print('had' if alive == 6 else 'ended')",
    ),
    (
        "shared memory that its process lets go of again",
        "import mmap, time
m = mmap.mmap(-1, 600 << 20)
for at in range(0, 600 << 20, 1 << 20):
    m[at:at + (1 << 20)] = b'x' * (1 << 20)
    if at % (50 << 20) == 0: m.madvise(mmap.MADV_DONTNEED)
m.madvise(mmap.MADV_DONTNEED)
time.sleep(3)
print('had')",
    ),
    (
        "System V shared memory without an attached process",
        "import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
got = 0
for n in range(6):
    i = libc.shmget(0, 100 << 20, 0o1600)
    if i < 0: break
    p = libc.shmat(i, None, 0)
    if p == ctypes.c_void_p(-1).value: break
    ctypes.memset(p, 1, 100 << 20); libc.shmdt(ctypes.c_void_p(p)); got += 1
time.sleep(3)
print('had' if got == 6 else 'ended')",
    ),
    (
        "files in /dev/shm and open ones that were deleted",
        "import os, time
got = 0
try:
    for n in range(6):
        f = os.open('/dev/shm/x%d' % n, os.O_RDWR | os.O_CREAT); os.unlink('/dev/shm/x%d' % n)
        for _ in range(100): os.write(f, b'x' * (1 << 20)); got += 1
except OSError: pass
time.sleep(3)
print('had' if got == 600 else 'ended')",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn memory_limit_covers_all_processes() {
    let mut failures = Vec::new();
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        for (name, hoard) in HOARDS {
            let sandbox = backend.start(&bounded()).await.unwrap();
            let command = Command::new(["python3", "-c", hoard]);
            let output =
                testwright_sandboxes::sandbox::output(&*sandbox, &command, Duration::from_secs(60))
                    .await;
            match output {
                Ok(out) if String::from_utf8_lossy(&out.stdout).contains("had") => {
                    failures.push(format!("{force:?}: {name}"));
                }
                Ok(_) => {}
                Err(e) => {
                    // The whole sandbox ended, so the message names the limit.
                    assert_eq!(e.kind, ErrorKind::Dead, "{e}");
                    let why = sandbox.health().await.unwrap_err().to_string();
                    assert!(why.contains("300 MiB"), "{why}");
                }
            }
            sandbox.stop().await.unwrap();
        }
        // A sandbox below the limit is left alone.
        let sandbox = backend.start(&bounded()).await.unwrap();
        let fine = "import time; x = b'x' * (150 << 20); time.sleep(1.5); print('fine')";
        assert_eq!(run_python(&*sandbox, fine).await, "fine", "{force:?}");
        sandbox.health().await.unwrap();
        sandbox.stop().await.unwrap();
    }
    assert!(failures.is_empty(), "{failures:?}");
}

pub(super) fn small_disk(start: SandboxSource) -> Spec {
    let mut spec = spec(start);
    spec.limits = Limits {
        disk: 200 << 20,
        files: 20_000,
        ..Limits::default()
    };
    spec
}

/// Runs a script until it or the sandbox ends.
async fn until_the_end(sandbox: &dyn Sandbox, script: &str) -> String {
    let command = Command::new(["python3", "-c", script]);
    let output =
        testwright_sandboxes::sandbox::output(sandbox, &command, Duration::from_secs(100)).await;
    let out = match output {
        Ok(out) => format!(
            "{}: {}",
            out.code,
            String::from_utf8_lossy(&[out.stdout, out.stderr].concat())
        ),
        Err(e) => format!("error: {e}"),
    };
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if let Err(e) = sandbox.health().await {
            return e.to_string();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    format!("it lives; {out}")
}

const BYTES: &str = "import time
for n in range(400):
    with open('f%d' % n, 'wb') as f: f.write(b'x' * (4 << 20))
    time.sleep(0.01)
time.sleep(20); print('had')";

const ELSEWHERE: &str = "import os, time
for n in range(400):
    with open([os.environ['HOME'], os.environ['TMPDIR']][n % 2] + '/f%d' % n, 'wb') as f: f.write(b'x' * (4 << 20))
    time.sleep(0.01)
time.sleep(20); print('had')";

const FILES: &str = "import os, time
for n in range(60000):
    if n % 1000 == 0: os.mkdir('d%d' % (n // 1000))
    open('d%d/new\\nline%d' % (n // 1000, n), 'w').close()
time.sleep(20); print('had')";

const DELETED: &str = "import os, time
keep = []
for n in range(400):
    f = open('f', 'wb'); os.unlink('f'); f.write(b'x' * (4 << 20)); f.flush(); keep.append(f)
    time.sleep(0.01)
time.sleep(20); print('had')";

pub(super) async fn ended_by(
    backend: &dyn Backend,
    start: SandboxSource,
    script: &str,
    words: &str,
) {
    let sandbox = backend.start(&small_disk(start)).await.unwrap();
    let end = until_the_end(&*sandbox, script).await;
    sandbox.stop().await.unwrap();
    assert!(end.contains(words) && end.contains("limit"), "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_ends_sandbox() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        for (script, words) in [
            (BYTES, "200 MiB"),
            (ELSEWHERE, "200 MiB"),
            (FILES, "limit of 20000 (limits.files)"),
            (DELETED, "200 MiB"),
        ] {
            ended_by(&*backend, python(), script, words).await;
        }
        assert_eq!(
            std::fs::read_dir(cache.path().join("sandboxes"))
                .unwrap()
                .count(),
            0
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_full_disk_ends_sandbox() {
    let Some(docker) = docker().await else { return };
    let start = SandboxSource::Python("3.11".to_owned());
    ended_by(&docker, start.clone(), BYTES, "200 MiB").await;
    ended_by(&docker, start, FILES, "limit of 20000 (limits.files)").await;
}

/// Holes, and additional names of one file, take no space.
#[tokio::test(flavor = "multi_thread")]
async fn holes_and_hard_links_are_free() {
    let script = "import os, time
with open('sparse', 'wb') as f: f.truncate(1 << 30)
with open('file', 'wb') as f: f.write(b'x' * (20 << 20))
for n in range(50): os.link('file', 'name%d' % n)
time.sleep(3); print('fine')";
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let sandbox = backend.start(&small_disk(python())).await.unwrap();
        assert_eq!(run_python(&*sandbox, script).await, "fine");
        sandbox.health().await.unwrap();
        let copy = sandbox.fork().await.unwrap();
        // A hole stays a hole in a copy.
        let blocks = run_script(&*copy, "stat -c %b sparse").await;
        copy.stop().await.unwrap();
        sandbox.stop().await.unwrap();
        assert!(
            blocks.parse::<u64>().unwrap() < 2048,
            "{force:?}: {blocks} blocks"
        );
    }
}

/// A sparse file stays sparse on the host when it is stored in a state.
#[tokio::test(flavor = "multi_thread")]
async fn holes_stay_holes_in_states() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let mut building = spec(python());
        building.root = true;
        let sandbox = backend.start(&building).await.unwrap();
        run_script(&*sandbox, "truncate -s 1G sparse; echo end >> sparse").await;
        sandbox.save("holes").await.unwrap();
        sandbox.stop().await.unwrap();
        let sparse_file = cache.path().join("states/holes/workspace/sparse");
        let metadata = std::fs::metadata(Path::new(&sparse_file)).unwrap();
        assert_eq!(metadata.len(), (1 << 30) + 4);
        assert!(
            metadata.blocks() < 2048,
            "{force:?}: {} blocks",
            metadata.blocks()
        );
    }
}

/// Checks that the host reads only as much output as necessary, and does not wait for its end.
async fn print_without_end(sandbox: &dyn Sandbox) {
    for script in ["yes", "yes >&2"] {
        let begun = Instant::now();
        let hour = Duration::from_secs(3600);
        let output =
            testwright_sandboxes::sandbox::output(sandbox, &Command::shell(script), hour).await;
        let error = output.unwrap_err().to_string();
        assert!(error.contains("it is larger than 64 MiB"), "{error}");
        assert!(begun.elapsed() < hour / 10, "{:?}", begun.elapsed());
    }
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_output_is_cut() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        if let Some(backend) = local(cache.path(), force) {
            let sandbox = backend.start(&spec(python())).await.unwrap();
            print_without_end(&*sandbox).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_endless_output_is_cut() {
    let Some(docker) = docker().await else { return };
    let start = SandboxSource::Python("3.11".to_owned());
    let sandbox = docker.start(&spec(start)).await.unwrap();
    print_without_end(&*sandbox).await;
}
