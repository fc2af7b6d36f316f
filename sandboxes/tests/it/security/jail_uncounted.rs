//! Tests of memory and disk space that no process shows: kernel buffers, hidden folders, and descriptors in flight.

use std::time::Duration;

use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::local::Isolation;
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend as _, Command, SandboxSource};

use super::jail_limits::{bounded, ended_by, small_disk};
use super::jail_users::{docker, local, python, run_python};

/// Runs `fill` in eight processes, which report how many MiB they hold. Prints `had` if twice the limit was held for a
/// second.
const IN_PROCESSES: &str = "import array, ctypes, mmap, os, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
r, w = os.pipe()
keep = []
def send(s):
    sent = 0
    s.setblocking(False)
    try:
        while True: sent += s.send(b'x' * 32768)
    except OSError: pass
    return sent
def report(mib):
    os.write(w, b'%d\\n' % mib); time.sleep(20); os._exit(0)
FILL
for _ in range(8):
    if os.fork() == 0:
        os.close(1); os.close(2)
        try: fill()
        finally: os._exit(1)
os.close(w)
f = open(r); total = sum(int(f.readline() or 0) for _ in range(8))
time.sleep(1)
alive = 0
for _ in range(8):
    try:
        if os.waitpid(-1, os.WNOHANG) == (0, 0): alive += 1
    except ChildProcessError: pass
print('had' if alive == 8 and total >= 600 else 'ended', total)";

const MEMORY: [(&str, &str); 6] = [
    (
        "socket buffers",
        "def fill():
    sent = 0
    while sent < 90 << 20:
        try: pair = socket.socketpair()
        except OSError: break
        keep.append(pair); sent += send(pair[0]) + send(pair[1])
    report(sent >> 20)",
    ),
    (
        "socket buffers whose sender is gone",
        "def fill():
    sent = 0
    while sent < 90 << 20:
        try: a, b = socket.socketpair()
        except OSError: break
        sent += send(a); a.close(); keep.append(b)
    report(sent >> 20)",
    ),
    (
        "TCP buffers",
        "def fill():
    sent = 0
    server = socket.create_server(('127.0.0.1', 0))
    while sent < 90 << 20:
        try:
            a = socket.create_connection(server.getsockname()); b = server.accept()[0]
        except OSError: break
        more = send(a) + send(b); keep.append((a, b)); sent += more
        if more == 0: break
    report(sent >> 20)",
    ),
    (
        "System V semaphores",
        "def fill():
    got = 0
    while got < 45 and libc.semget(0, 32000, 0o1600) >= 0: got += 1
    report(got * 32000 * 64 >> 20)",
    ),
    (
        "threads whose process looks ended",
        "def hold():
    for _ in range(100): keep.append(b'x' * (1 << 20))
    report(100)
def fill():
    threading.Thread(target=hold).start()
    libc.syscall(60, 0)",
    ),
    (
        "huge pages that only a pipe holds",
        "class Piece(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
def fill():
    got = 0
    while got < 90:
        pipe = os.pipe(); keep.append(pipe)
        for _ in range(15):
            m = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.madvise(14)
            view = ctypes.c_char.from_buffer(m); at = (ctypes.addressof(view) + (2 << 20) - 1) & -(2 << 20)
            ctypes.memset(at, 1, 2 << 20)
            if 'AnonHugePages:         0 kB' in open('/proc/self/smaps_rollup').read(): report(0)
            piece = Piece(at, 4096)
            if libc.vmsplice(pipe[1], ctypes.byref(piece), ctypes.c_size_t(1), 2) != 4096: report(0)
            del view; m.close(); got += 2
    report(got)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn kernel_memory_is_limited() {
    let mut failures = Vec::new();
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        // Without namespaces, socket pairs are the only sockets. All else is the same.
        let cases = match force {
            Isolation::Namespaces => &MEMORY[..],
            _ => &MEMORY[..2],
        };
        for (name, fill) in cases {
            let script = IN_PROCESSES.replace("FILL", fill);
            let sandbox = backend.start(&bounded()).await.unwrap();
            let command = Command::new(["python3", "-c", &script]);
            match output(&*sandbox, &command, Duration::from_secs(60)).await {
                Ok(out) if String::from_utf8_lossy(&out.stdout).contains("had") => {
                    failures.push(format!("{force:?}: {name}"));
                }
                Ok(_) => {}
                Err(e) => {
                    assert_eq!(e.kind, ErrorKind::Dead, "{name}: {e}");
                    let why = sandbox.health().await.unwrap_err().to_string();
                    assert!(why.contains("300 MiB"), "{name}: {why}");
                }
            }
            sandbox.stop().await.unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

const HIDDEN_FOLDER: &str = "import os, time
os.mkdir('hidden'); os.chmod('hidden', 0o300)
for n in range(400):
    with open('hidden/f%d' % n, 'wb') as f: f.write(b'x' * (4 << 20))
    time.sleep(0.01)
time.sleep(20); print('had')";

const CLOSED_FOLDERS: &str = "import os, time
for n in range(100):
    os.mkdir('d%d' % n)
    for m in range(4):
        with open('d%d/f%d' % (n, m), 'wb') as f: f.write(b'x' * (4 << 20))
    os.chmod('d%d' % n, [0, 0o400][n % 2])
    time.sleep(0.04)
time.sleep(20); print('had')";

const IN_FLIGHT: &str = "import os, socket, time
keep = []
for n in range(400):
    f = open('f', 'wb'); os.unlink('f'); f.write(b'x' * (4 << 20)); f.flush()
    a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [f.fileno()]); f.close(); keep.append((a, b))
    time.sleep(0.01)
time.sleep(20); print('had')";

const OF_A_THREAD: &str = "import ctypes, os, threading, time
def hold():
    keep = []
    for n in range(400):
        f = open('f', 'wb'); os.unlink('f'); f.write(b'x' * (4 << 20)); f.flush(); keep.append(f)
        time.sleep(0.01)
    time.sleep(20); print('had')
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(60, 0)";

/// Maps one page of each file, and removes everything else of it.
const ONLY_MAPPED: &str = "import mmap, os, time
keep = []
for n in range(400):
    f = open('f', 'w+b'); os.unlink('f'); f.write(b'x' * (4 << 20)); f.flush()
    keep.append(mmap.mmap(f.fileno(), 4096)); f.close()
    for fd in range(3, 100):
        try: os.close(fd)
        except OSError: pass
    time.sleep(0.01)
time.sleep(20); print('had')";

const OF_A_THREAD_THAT_CLOSED_A_RANGE: &str = "import ctypes, os, threading, time
libc = ctypes.CDLL(None)
def hold():
    libc.syscall(436, 1000, 1001, 2)
    keep = []
    for n in range(400):
        f = open('f', 'wb'); os.unlink('f'); f.write(b'x' * (4 << 20)); f.flush(); keep.append(f)
        time.sleep(0.01)
    time.sleep(20); print('had')
thread = threading.Thread(target=hold); thread.start(); thread.join()";

const UNDUMPABLE: &str = "import ctypes, os, time
if os.fork(): os.wait(); print('had'); os._exit(0)
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
keep = []
for n in range(400):
    f = open('f', 'wb'); os.unlink('f'); f.write(b'x' * (4 << 20)); f.flush(); keep.append(f)
    time.sleep(0.01)
time.sleep(20)";

#[tokio::test(flavor = "multi_thread")]
async fn hidden_disk_space_is_counted() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let in_flight = match force {
            Isolation::Namespaces => Some(IN_FLIGHT),
            _ => None,
        };
        let scripts = [
            HIDDEN_FOLDER,
            CLOSED_FOLDERS,
            OF_A_THREAD,
            OF_A_THREAD_THAT_CLOSED_A_RANGE,
            ONLY_MAPPED,
            UNDUMPABLE,
        ];
        for script in scripts.into_iter().chain(in_flight) {
            ended_by(&*backend, python(), script, "200 MiB").await;
        }
    }
}

/// Tests often close folders to others, which is no reason to end a sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn closed_folders_alone_are_harmless() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Namespaces) else {
        return;
    };
    let script = "import os, time
os.mkdir('closed'); open('closed/f', 'w').close(); os.chmod('closed', 0)
with open('large', 'wb') as f: f.write(b'x' * (60 << 20))
time.sleep(2); print(oct(os.stat('closed').st_mode & 0o777), 'fine')";
    let sandbox = backend.start(&small_disk(python())).await.unwrap();
    assert_eq!(run_python(&*sandbox, script).await, "0o0 fine");
    sandbox.health().await.unwrap();
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_memory_files_are_limited() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Namespaces) else {
        return;
    };
    let script = "n = 0
try:
    while n < 100_000: open('/dev/shm/%d' % n, 'w').close(); n += 1
except OSError as e: print(e.strerror)
print(n < 70_000)";
    let sandbox = backend.start(&small_disk(python())).await.unwrap();
    let output = run_python(&*sandbox, script).await;
    sandbox.stop().await.unwrap();
    assert_eq!(output, "No space left on device\nTrue");
}

/// Space must be taken only by writing, which takes long enough to be noticed.
#[tokio::test(flavor = "multi_thread")]
async fn docker_disk_preallocation_is_refused() {
    let script = "import ctypes, errno, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
f = os.open('f', os.O_RDWR | os.O_CREAT)
def fallocate(mode, size=1 << 20):
    failed = libc.syscall(285, f, mode, ctypes.c_long(0), ctypes.c_long(size))
    return 'refused' if failed and ctypes.get_errno() == errno.EOPNOTSUPP else failed
print(*[fallocate(mode) for mode in (0, 1, 0x10, 0x11)])
for call in (0x40305828, 0x4030582a, 0x40305839):
    try: fcntl.ioctl(f, call, struct.pack('hhqqIi4i', 0, 0, 0, 1 << 20, 0, 0, 0, 0, 0, 0)); print('done')
    except OSError as e: print('refused' if e.errno == errno.EPERM else e)
print(os.fstat(f).st_blocks)
os.posix_fallocate(f, 0, 100_000)
print(os.fstat(f).st_size, fallocate(3, 4096))";
    let expected = "refused refused refused refused\nrefused\nrefused\nrefused\n0\n100000 0";
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let sandbox = backend.start(&small_disk(python())).await.unwrap();
        let output = run_python(&*sandbox, script).await;
        sandbox.stop().await.unwrap();
        assert_eq!(output, expected, "{force:?}");
    }
    if let Some(backend) = docker().await {
        let start = SandboxSource::Python("3.11".to_owned());
        let sandbox = backend.start(&small_disk(start)).await.unwrap();
        let output = run_python(&*sandbox, script).await;
        sandbox.stop().await.unwrap();
        assert_eq!(output, expected, "docker");
    }
}
