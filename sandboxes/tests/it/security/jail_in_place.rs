//! Tests of isolation without namespaces: its availability, names that the whole machine shares, and addresses. Each
//! test runs as root and as an ordinary user.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;

use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::local::{Isolation, Local, LocalSettings};
use testwright_sandboxes::{Backend, system_calls};

use super::jail_users::{is_root, launcher, local, python, run_python, spec};

pub(super) fn in_place(cache: &tempfile::TempDir) -> Option<Arc<dyn Backend>> {
    local(cache.path(), Isolation::Landlock)
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_names_are_refused() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = in_place(&cache) else {
        return;
    };
    let calls: Vec<String> = system_calls::shared_names()
        .filter_map(|call| Some(format!("('{}', {})", call.name(), call.number?)))
        .collect();
    let script = format!(
        "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
calls = [{}]
for name, number in calls:
    got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in (-1, 1, 1, 1, 1, 1)])
    error = ctypes.get_errno()
    if got != -1 or error not in (1, 95): print('%s: %d, error %d' % (name, got, error))
print('tried', len(calls))",
        calls.join(", ")
    );
    for root in [false, true] {
        let mut spec = spec(python());
        spec.root = root;
        let sandbox = backend.start(&spec).await.unwrap();
        let output = run_python(&*sandbox, &script).await;
        sandbox.stop().await.unwrap();
        assert_eq!(output, format!("tried {}", calls.len()));
    }
    assert!(calls.len() > 30);
}

/// Creates objects that everyone may use, prints their numbers, waits for a line, and prints their state afterwards.
const HOST_OBJECTS: &str = r##"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def checked(result):
    assert result != -1, os.strerror(ctypes.get_errno())
    return result
shm = checked(libc.shmget(0, 4096, 0o1666))
memory = libc.shmat(shm, None, 0)
ctypes.memmove(memory, b"secret of the host", 18)
sem = checked(libc.semget(0, 1, 0o1666))
checked(libc.semctl(sem, 0, 16, 7))
queue = checked(libc.msgget(0, 0o1666))
checked(libc.msgsnd(queue, struct.pack("l6s", 1, b"letter"), 6, 0))
name = b"/testwright-%d" % os.getpid()
mq = checked(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None))
checked(libc.mq_send(mq, b"parcel", 6, 0))
print(shm, sem, queue, name.decode(), flush=True)
sys.stdin.readline()
found = [ctypes.string_at(memory, 18).decode(), str(libc.semctl(sem, 0, 12))]
buffer = ctypes.create_string_buffer(9000)
found.append(buffer.raw[8:14].decode() if libc.msgrcv(queue, buffer, 100, 0, 0o4000) == 6 else "no letter")
again = libc.mq_open(name, os.O_RDWR | os.O_NONBLOCK)
found.append(buffer.raw[:6].decode() if libc.mq_receive(again, buffer, 8192, None) == 6 else "no parcel")
print(" ".join(found))
libc.shmctl(shm, 0, None); libc.semctl(sem, 0, 0); libc.msgctl(queue, 0, None); libc.mq_unlink(name)
"##;

const USE_OBJECTS: &str = r##"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
shm, sem, queue, name = "OBJECTS".split()
shm, sem, queue, name = int(shm), int(sem), int(queue), name.encode()
memory = libc.shmat(shm, None, 0)
if memory not in (None, ctypes.c_void_p(-1).value):
    print("read", ctypes.string_at(memory, 18))
    ctypes.memmove(memory, b"OVERWRITTEN INSIDE", 18)
space = ctypes.create_string_buffer(9000)
for what, result in [
    ("list", libc.shmctl(0, 13, space)), ("list", libc.semctl(0, 0, 18, space)), ("list", libc.msgctl(0, 11, space)),
    ("set", libc.semctl(sem, 0, 16, 1)), ("change", libc.semop(sem, b"\0\0\1\0\0\0", 1)),
    ("take", libc.msgrcv(queue, space, 100, 0, 0o4000)), ("send", libc.msgsnd(queue, space, 1, 0o4000)),
    ("open", libc.mq_open(name, os.O_RDWR)), ("unlink", libc.mq_unlink(name)),
    ("remove", libc.shmctl(shm, 0, None)), ("remove", libc.semctl(sem, 0, 0)), ("remove", libc.msgctl(queue, 0, None)),
]:
    if result != -1: print(what, result)
print("tried")
"##;

#[tokio::test(flavor = "multi_thread")]
async fn host_ipc_objects_stay_unchanged() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = in_place(&cache) else {
        return;
    };
    let mut host = std::process::Command::new("python3")
        .args(["-c", HOST_OBJECTS])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = std::io::BufReader::new(host.stdout.take().unwrap());
    let mut objects = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut objects).unwrap();
    let sandbox = backend.start(&spec(python())).await.unwrap();
    let script = USE_OBJECTS.replace("OBJECTS", objects.trim());
    let output = run_python(&*sandbox, &script).await;
    sandbox.stop().await.unwrap();
    host.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut final_state = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut final_state).unwrap();
    host.wait().unwrap();
    assert_eq!(output, "tried");
    assert_eq!(final_state.trim(), "secret of the host 7 letter parcel");
}

const CONNECT: &str = r##"
import asyncio, errno, os, socket, urllib.request
port = PORT
def reached(family, address, *kind):
    try:
        stream = socket.socket(family, *(kind or (socket.SOCK_STREAM,)))
        stream.settimeout(5)
        stream.connect(address)
    except PermissionError: return
    except OSError as error:
        print("reached", address, error)
        return
    print("connected", address)
hosts = ["127.0.0.2", "0.0.0.0", "10.0.0.1", "8.8.8.8", "169.254.169.254", "192.0.2.2", "255.255.255.255"]
for host in hosts: reached(socket.AF_INET, (host, port))
for other in (port + 1, 22, 80, 1, OTHER): reached(socket.AF_INET, ("127.0.0.1", other))
for host in ("::1", "::ffff:127.0.0.1"): reached(socket.AF_INET6, (host, port))
reached(socket.AF_INET, ("127.0.0.1", port), socket.SOCK_DGRAM)
reached(socket.AF_INET, ("127.0.0.1", port), socket.SOCK_STREAM, 262)
reached(socket.AF_UNIX, "\0abstract")
for flags in (0, 0x20000000):
    stream = socket.socket()
    try: stream.sendto(b"x", flags, ("127.0.0.1", OTHER)); print("sent")
    except OSError: pass
    try: stream.sendmsg([b"x"], [], flags, ("127.0.0.1", OTHER)); print("sent")
    except OSError: pass
for what in (lambda: socket.socket().bind(("127.0.0.1", 0)), lambda: socket.socket().listen(1)):
    try: what(); print("listens")
    except PermissionError: pass
address = "http://127.0.0.1:%d/" % port
print(urllib.request.urlopen(address, timeout=10).read().decode())
async def by_a_loop():
    read, write = await asyncio.open_connection("127.0.0.1", port)
    write.write(b"GET / HTTP/1.0\r\n\r\n")
    print((await read.read()).split(b"\r\n\r\n")[1].decode())
asyncio.run(by_a_loop())
# The socket's options are preserved.
stream = socket.socket(); before = stream.fileno(); os.set_inheritable(before, True); stream.connect(("127.0.0.1", port))
print(stream.fileno() == before, os.get_inheritable(before), stream.getpeername() == ("127.0.0.1", port))
try: os.open(".", os.O_RDONLY); socket.socket(fileno=os.dup(0)).connect(("127.0.0.1", port)); print("a socket")
except OSError: pass
print("tried")
"##;

#[tokio::test(flavor = "multi_thread")]
async fn connections_reach_only_relay() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = in_place(&cache) else {
        return;
    };
    // Listens on all addresses, so that connections to other addresses are noticed.
    let (relay, other) = (
        TcpListener::bind("0.0.0.0:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let port = relay.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let mut served = 0;
        for stream in relay.incoming() {
            let mut stream = stream.unwrap();
            assert_eq!(stream.local_addr().unwrap().ip().to_string(), "127.0.0.1");
            served += 1;
            if served < 3 {
                assert!(std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap() > 0);
            }
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nthe relay");
            if served == 3 {
                return;
            }
        }
    });
    let mut spec = spec(python());
    spec.root = true;
    spec.host_port = Some(port);
    let sandbox = backend.start(&spec).await.unwrap();
    let script = CONNECT
        .replace("PORT", &port.to_string())
        .replace("OTHER", &other.local_addr().unwrap().port().to_string());
    let output = run_python(&*sandbox, &script).await;
    sandbox.stop().await.unwrap();
    assert_eq!(output, "the relay\nthe relay\nTrue True True\ntried");
    serving.join().unwrap();
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err());
}

/// Command that starts a launcher whose processes cannot create namespaces.
const FORBIDDEN: [&str; 8] = [
    "unshare",
    "--user",
    "--map-user=1000",
    "--keep-caps",
    "sh",
    "-c",
    "for kind in user mnt pid; do echo 0 >/proc/sys/user/max_${kind}_namespaces || exit; done; \
     exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"",
    "sh",
];

#[test]
fn reduced_isolation_needs_choice_or_container() {
    // In a sandbox, root of the host becomes another user, which is impossible within this launcher.
    let can_forbid = std::process::Command::new(FORBIDDEN[0])
        .args(&FORBIDDEN[1..])
        .arg("true")
        .status()
        .is_ok_and(|status| status.success());
    let cache = tempfile::tempdir().unwrap();
    if is_root() || !can_forbid || in_place(&cache).is_none() {
        return;
    }
    let with = |force, in_container, no_isolation| {
        let words = FORBIDDEN.map(Into::into).into_iter();
        Local::new(LocalSettings {
            cache: cache.path().to_owned(),
            launcher: words.chain([launcher()]).collect(),
            no_isolation,
            force,
            in_container,
        })
    };
    let refused = with(None, false, false).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    let hint = refused.hint.unwrap();
    for choice in [
        "kernel.unprivileged_userns_clone",
        "--sandbox docker",
        "--sandbox landlock",
        "--no-isolation",
    ] {
        assert!(hint.contains(choice), "{hint}");
    }
    for (force, in_container) in [(Some(Isolation::Landlock), false), (None, true)] {
        let local = with(force, in_container, false).unwrap();
        assert_eq!(local.isolation(), Isolation::Landlock);
        let caution = local.isolation_warning().unwrap();
        assert!(caution.starts_with("reduced isolation: "), "{caution}");
    }
    let open = with(None, false, true).unwrap();
    assert_eq!(open.isolation(), Isolation::None);
    assert!(
        open.isolation_warning()
            .unwrap()
            .starts_with("no isolation: ")
    );
}
