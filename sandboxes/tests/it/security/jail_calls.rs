//! Tests of system calls that every backend refuses, and of calls that would affect others.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use testwright_sandboxes::local::Isolation;
use testwright_sandboxes::{Backend, system_calls};

use super::jail_users::{docker, is_root, local, python, run_python, run_script, spec};

/// Returns a script that makes each call with harmless arguments in a separate process. It prints all calls that do not
/// fail with "not permitted" (1) or "does not exist" (38).
fn script() -> String {
    let numbers: Vec<String> = system_calls::refused()
        .filter_map(|call| Some(format!("('{}', {}, ())", call.name(), call.number?)))
        .collect();
    format!(
        "import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
calls = [{numbers}]
calls += [('clone3', 435, ()), ('one of the future', 600, ()), ('far away', 0x3fffffff, ())]
if x86: calls += [('ptrace as x32', 0x40000000 + 521, ()), ('mount as x32', 0x40000000 + 165, ()),
                  ('personality', 135, (0x40000,)), ('memory as code', 135, (0x400000,))]
socket = 41 if x86 else 198
calls += [('vsock', socket, (40, 1, 0)), ('ciphers', socket, (38, 5, 0)), ('packets', socket, (17, 3, 0)),
          ('bluetooth', socket, (31, 3, 0)), ('xdp', socket, (44, 3, 0)), ('can', socket, (29, 3, 1)),
          ('by its upper half', socket, ((1 << 32) | 40, 1, 0))]
clone = 56 if x86 else 220
calls += [('namespace of users', clone, (0x10000000 | 17, 0, 0, 0, 0)), ('of the network', clone, (0x40000000 | 17, 0, 0, 0, 0))]
for name, number, arguments in calls:
    pid = os.fork()
    if pid == 0:
        # The arguments name no memory, descriptor or process, so that a permitted call shows too.
        wide = [ctypes.c_long(a) for a in (arguments or (-1, 1, 1, 1, 1, 1))]
        got = libc.syscall(ctypes.c_long(number), *wide)
        error = ctypes.get_errno()
        if got == -1 and error in (1, 38): os._exit(0)
        os.write(1, ('%s: %d, error %d\\n' % (name, got, error)).encode())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    # A call that the filter ends with a signal counts as refused.
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != 31: print(name, 'ended by', os.WTERMSIG(status))
print('tried', len(calls))",
        numbers = numbers.join(", "),
    )
}

async fn refused(backend: &dyn Backend, root: bool) -> String {
    let mut spec = spec(python());
    spec.root = root;
    if backend.name() == "docker" {
        spec.start = testwright_sandboxes::SandboxSource::Python("3.11".to_owned());
    }
    let sandbox = backend.start(&spec).await.unwrap();
    let output = run_python(&*sandbox, &script()).await;
    sandbox.stop().await.unwrap();
    output
}

fn all_refused(output: &str) {
    assert!(
        output.starts_with("tried ") && output.lines().count() == 1,
        "{output}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_calls_are_refused() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        for root in [false, true] {
            all_refused(&refused(&*backend, root).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_listed_calls_are_refused() {
    let Some(docker) = docker().await else { return };
    for root in [false, true] {
        all_refused(&refused(&docker, root).await);
    }
}

/// Checks the capabilities of builds, because engines grant more by default.
#[tokio::test(flavor = "multi_thread")]
async fn docker_builds_have_installer_capabilities() {
    let Some(docker) = docker().await else { return };
    let mut spec = spec(testwright_sandboxes::SandboxSource::Python(
        "3.11".to_owned(),
    ));
    spec.root = true;
    let sandbox = docker.start(&spec).await.unwrap();
    let script = "import ctypes, os, socket
for name, attempt in [('device', lambda: os.mknod('/tmp/node', 0o20666, os.makedev(1, 3))),
                      ('user', lambda: os.setuid(1000)), ('group', lambda: os.setgid(1000)),
                      ('root', lambda: os.chroot('/')),
                      ('capability of a file', lambda: os.setxattr('/tmp/program', 'security.capability',
                       bytes.fromhex('0100000202000000000000000000000000000000'))),
                      ('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))]:
    if os.fork() == 0:
        open('/tmp/program', 'w').close()
        try: attempt(); print(name, flush=True)
        except OSError: pass
        os._exit(0)
    os.wait()
open('/tmp/given', 'w').close()
os.chown('/tmp/given', 1000, 1000); os.chmod('/tmp/given', 0o600); open('/tmp/given').close()
print('tried')";
    let output = run_python(&*sandbox, script).await;
    let capabilities = run_script(&*sandbox, "grep CapBnd /proc/self/status").await;
    sandbox.stop().await.unwrap();
    assert_eq!(output, "tried");
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL.
    assert_eq!(capabilities, "CapBnd:\t000000000000003b");
}

/// Calls that Landlock does not cover could reach files and processes of the host's user.
#[tokio::test(flavor = "multi_thread")]
async fn in_place_outside_stays_unchanged() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Landlock) else {
        return;
    };
    let outside = tempfile::tempdir().unwrap();
    std::fs::set_permissions(outside.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let file = outside.path().join("file");
    std::fs::write(&file, "x").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let before = std::fs::metadata(&file).unwrap();
    let mut neighbour = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let sandbox = backend.start(&spec(python())).await.unwrap();
    let script = format!(
        "import ctypes, os, resource, signal
file, pid = {:?}, {}
def attempt(name, what):
    try: what()
    except OSError: return
    print(name)
def watch(folder):
    libc = ctypes.CDLL(None)
    if libc.inotify_add_watch(libc.inotify_init1(0), folder.encode(), 0x100) < 0: raise OSError
attempt('chmod', lambda: os.chmod(file, 0o777))
attempt('utime', lambda: os.utime(file, (1, 1)))
if {}: attempt('lists', lambda: os.listdir('/proc/%d/fd' % pid))
attempt('attributes', lambda: os.setxattr(file, 'user.x', b'1'))
attempt('watch', lambda: watch(os.path.dirname(file)))
attempt('setpriority', lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt('setpriority of all', lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt('affinity', lambda: os.sched_setaffinity(pid, {{0}}))
attempt('scheduler', lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))
attempt('limits', lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, 1)))
attempt('kill', lambda: os.kill(pid, signal.SIGUSR1))
os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0))
print('tried')",
        file.display().to_string(),
        neighbour.id(),
        if is_root() { "True" } else { "False" },
    );
    let output = run_python(&*sandbox, &script).await;
    let lives = neighbour.try_wait().unwrap().is_none();
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    sandbox.stop().await.unwrap();
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!(output, "tried");
    assert!(lives);
    assert_eq!(
        (before.mode(), before.mtime()),
        (after.mode(), after.mtime())
    );
}

/// Each sandbox of root runs as a different user, so that one cannot change another's files.
#[tokio::test(flavor = "multi_thread")]
async fn in_place_sandboxes_are_isolated() {
    if !is_root() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Landlock) else {
        return;
    };
    let one = backend.start(&spec(python())).await.unwrap();
    let other = backend.start(&spec(python())).await.unwrap();
    run_script(&*one, "echo x > file && chmod 644 file").await;
    let path = one.info().paths.workspace.join("file");
    let output = run_script(
        &*other,
        &format!("chmod 777 '{0}'; touch -d @1 '{0}'; id -u", path.display()),
    )
    .await;
    let mode = std::fs::metadata(&path).unwrap().mode() & 0o777;
    let fork = one.fork().await.unwrap();
    let user = run_script(&*fork, "echo y >> file && cat file && id -u").await;
    let own = run_script(&*one, "id -u").await;
    for sandbox in [one, other, fork] {
        sandbox.stop().await.unwrap();
    }
    assert_eq!(mode, 0o644, "{output}");
    assert!(user.starts_with("x\ny\n"), "{user}");
    assert!(
        own != "0" && !output.ends_with(&own) && !user.ends_with(&own),
        "{own}, {output}, {user}"
    );
}

/// A pair of sockets could be redirected to a socket of the host.
#[tokio::test(flavor = "multi_thread")]
async fn in_place_host_sockets_are_unreachable() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Landlock) else {
        return;
    };
    let host = tempfile::tempdir().unwrap();
    std::fs::set_permissions(host.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = host.path().join("socket");
    let receiver = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let sandbox = backend.start(&spec(python())).await.unwrap();
    let script = format!(
        "import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM):
    try:
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        a.sendto(b'out', {:?}); print('sent', kind)
    except OSError as e: pass
a, b = socket.socketpair(); a.sendall(b'x'); print(b.recv(1))",
        path.display().to_string()
    );
    let output = run_python(&*sandbox, &script).await;
    sandbox.stop().await.unwrap();
    receiver.set_nonblocking(true).unwrap();
    assert!(receiver.recv(&mut [0; 8]).is_err(), "{output}");
    assert_eq!(output, "b'x'");
}

/// Returns calls and their expected results in a sandbox of any kind: 0, the error number, or "ended" by a signal.
fn answers() -> (String, String) {
    let x86 = cfg!(target_arch = "x86_64");
    let mut calls = vec![
        ("TIOCSTI", "ioctl, 0, 0x5412, b'x'", "1"),
        ("TIOCLINUX", "ioctl, 0, 0x541c, b'x'", "1"),
        (
            "TIOCLINUX by its upper half",
            "ioctl, 0, (1 << 32) | 0x541c, b'x'",
            "1",
        ),
        (
            "TIOCGWINSZ of a file",
            "ioctl, file, 0x5413, b' ' * 8",
            "25",
        ),
        ("FIONBIO", "ioctl, pipe, 0x5421, bytes(4)", "0"),
        ("evict a file", "fadvise, file, 0, 0, 4", "0"),
        ("load a file", "fadvise, file, 0, 0, 3", "0"),
        ("unknown advice for a file", "fadvise, file, 0, 0, 77", "22"),
        ("cool memory down", "madvise, page, 4096, 20", "0"),
        ("evict memory", "madvise, page, 4096, 21", "0"),
        (
            "unknown advice for memory",
            "madvise, page, 4096, 999",
            "22",
        ),
        (
            "read what is in memory",
            "preadv2, file, vector, 1, 0, 0, 8",
            "95",
        ),
        ("read at once", "preadv2, file, vector, 1, 0, 0, 1", "0"),
        ("read", "preadv2, file, vector, 1, 0, 0, 0", "0"),
        ("cachestat", "451, file, bytes(16), bytes(40), 0", "1"),
        (
            "namespace of users",
            "clone, 0x10000000 | 17, 0, 0, 0, 0",
            "1",
        ),
        ("vsock", "socket, 40, 1, 0", "1"),
        ("the kernel's ciphers", "socket, 38, 5, 0", "1"),
        ("no randomization", "personality, 0x40000", "1"),
        ("personality", "personality, 0xffffffff", "0"),
        ("ptrace", "ptrace, 0, 0, 0, 0", "1"),
        ("mount", "mount, 0, 0, 0, 0, 0", "1"),
        ("clone3", "435, 0, 0", "38"),
        ("a call of the future", "600", "38"),
    ];
    if x86 {
        calls.extend([
            ("getpid by x32", "0x40000000 + 39", "ended"),
            ("ptrace by x32", "0x40000000 + 521, 0, 0, 0, 0", "ended"),
            ("getpid by int 0x80", "'int 0x80'", "ended"),
        ]);
    }
    let numbers = match x86 {
        true => {
            "ioctl, fadvise, madvise, preadv2, clone, socket, personality, ptrace, mount = 16, 221, 28, 327, 56, 41, 135, 101, 165"
        }
        false => {
            "ioctl, fadvise, madvise, preadv2, clone, socket, personality, ptrace, mount = 29, 223, 233, 286, 220, 198, 92, 117, 40"
        }
    };
    let list: String = calls
        .iter()
        .map(|(name, arguments, _)| format!("    ({name:?}, lambda: ({arguments},)),\n"))
        .collect();
    let script = format!(
        "import ctypes, mmap, os, struct, sys
{numbers}
libc = ctypes.CDLL(None, use_errno=True)
with open('read', 'wb') as f: f.write(b'text')
file, pipe = os.open('read', os.O_RDONLY), os.pipe()[0]
memory = mmap.mmap(-1, 4096)
page = ctypes.addressof(ctypes.c_char.from_buffer(memory))
buffer = ctypes.create_string_buffer(4)
vector = struct.pack('PN', ctypes.addressof(buffer), 4)
calls = [
{list}]
def try_call(make):
    number, *arguments = make()
    if number == 'int 0x80':
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex('b814000000cd80c3'))
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        return ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    wide = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    return ctypes.get_errno() if result == -1 else 0
for name, make in calls:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print('%s: %d' % (name, try_call(make)), flush=True)
        os._exit(0)
    if os.WIFSIGNALED(os.waitpid(child, 0)[1]): print(name + ': ended')"
    );
    let expected: Vec<String> = calls
        .iter()
        .map(|(name, _, answer)| format!("{name}: {answer}"))
        .collect();
    (script, expected.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_behave_alike_on_all_backends() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let (script, expected) = answers();
        let sandbox = backend.start(&spec(python())).await.unwrap();
        let output = run_python(&*sandbox, &script).await;
        sandbox.stop().await.unwrap();
        assert_eq!(output, expected, "{force:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_calls_behave_alike() {
    let Some(docker) = docker().await else { return };
    let (script, expected) = answers();
    let start = testwright_sandboxes::SandboxSource::Python("3.11".to_owned());
    let sandbox = docker.start(&spec(start)).await.unwrap();
    let output = run_python(&*sandbox, &script).await;
    sandbox.stop().await.unwrap();
    assert_eq!(output, expected);
}

/// Sandboxes share the files of an environment, so evicting their pages would be a side channel.
#[tokio::test(flavor = "multi_thread")]
async fn shared_files_stay_in_memory() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Namespaces) else {
        return;
    };
    let script = "import ctypes, os, sysconfig
path = os.path.realpath(sysconfig.get_paths()['stdlib'] + '/pydoc_data/topics.py')
file = os.open(path, os.O_RDONLY)
size = len(os.read(file, 1 << 30))
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
memory = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(size), 1, 1, file, ctypes.c_long(0)))
libc.madvise(memory, ctypes.c_size_t(size), 21)
print(path)";
    let sandbox = backend.start(&spec(python())).await.unwrap();
    let path = run_python(&*sandbox, script).await;
    sandbox.stop().await.unwrap();
    let file = std::fs::File::open(&path).unwrap_or_else(|_| panic!("{path}"));
    let mut byte = [0_u8];
    let part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: the part lies in an array of its length, which outlives the call.
    let read = unsafe { libc::preadv2(descriptor, &raw const part, 1, 0, libc::RWF_NOWAIT) };
    let error = std::io::Error::last_os_error().raw_os_error();
    if read < 0 && error == Some(libc::EOPNOTSUPP) {
        eprintln!("skipped: this file system does not report cached pages");
        return;
    }
    assert_eq!(read, 1, "{path} was evicted: {error:?}");
}
