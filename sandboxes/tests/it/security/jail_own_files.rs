//! Tests of isolation without namespaces: modes, times and contents of files of the same user. Each test runs as root
//! and as an ordinary user.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use testwright_sandboxes::SandboxSource;
use testwright_sandboxes::sandbox::Mount;

use super::jail_in_place::in_place;
use super::jail_users::{is_root, python, run_python, spec};

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A script that tries to change `OUTSIDE`, which is visible, and `OTHERS_READ`, which is readable. Neither may change.
const CHANGE_OUTSIDE: &str = r##"
import ctypes, errno, fcntl, os, shutil, struct, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
outside, readable = OUTSIDE, READABLE
def attempt(name, what):
    try: what()
    except OSError: return
    print("not refused:", name)
def call(number, *arguments):
    words = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    if libc.syscall(ctypes.c_long(number), *words) < 0: raise OSError(ctypes.get_errno(), "refused")
os.mkdir("own"); open("own/file", "w").close(); os.chmod("own", 0o700)
os.symlink(outside, "link"); os.symlink(os.path.dirname(outside), "folder")
up = os.path.relpath(outside)
by_path = os.open(outside, os.O_PATH)
folder = os.open(os.path.dirname(outside), os.O_PATH)
reading = os.open(readable, os.O_RDONLY)
name = os.path.basename(outside)
for path in [outside, readable, "link", "folder/" + name, up, "/proc/self/root" + outside, "/proc/self/cwd/" + up,
             "/proc/self/fd/%d" % by_path, "/proc/thread-self/fd/%d" % by_path, "/proc/%d/fd/%d" % (os.getpid(), by_path),
             "/dev/fd/%d" % by_path, "/proc/self/fd/%d" % reading, "/proc/%d/root%s" % (os.getpid(), outside)]:
    attempt("chmod " + path, lambda: os.chmod(path, 0o777))
    attempt("utime " + path, lambda: os.utime(path, (1, 1)))
    attempt("touch " + path, lambda: os.utime(path))
    attempt("chown " + path, lambda: os.chown(path, os.getuid(), os.getgid()))
    attempt("truncate " + path, lambda: os.truncate(path, 0))
    attempt("attribute " + path, lambda: os.setxattr(path, "user.x", b"1"))
    for call_of_attributes in (os.listxattr, lambda path: os.getxattr(path, "user.x")):
        try: print("attributes of", path, call_of_attributes(path))
        except OSError as e: assert e.errno == errno.ENOTSUP, (path, e)
    if path != "link": attempt("hard link " + path, lambda: os.link(path, "own/linked"))
for path in [outside, readable]:
    attempt("lchown " + path, lambda: os.lchown(path, os.getuid(), os.getgid()))
    attempt("lutime " + path, lambda: os.utime(path, (1, 1), follow_symlinks=False))
    attempt("move " + path, lambda: os.rename(path, "own/moved"))
attempt("chmod at a folder", lambda: os.chmod(name, 0o777, dir_fd=folder))
attempt("utime at a folder", lambda: os.utime(name, (1, 1), dir_fd=folder))
attempt("chown at a folder", lambda: os.chown(name, os.getuid(), os.getgid(), dir_fd=folder))
attempt("chmod of a folder", lambda: os.chmod(os.path.dirname(outside), 0o777))
attempt("fchmod", lambda: os.fchmod(reading, 0o777))
attempt("fchown", lambda: os.fchown(reading, os.getuid(), os.getgid()))
attempt("futime", lambda: os.utime(reading, (1, 1)))
attempt("fsetxattr", lambda: os.setxattr(reading, "user.x", b"1"))
attempt("flags", lambda: fcntl.ioctl(reading, 0x40086602, struct.pack("l", 0x80)))
for descriptor in (by_path, reading):
    attempt("fchmodat2", lambda: call(452, descriptor, b"", 0o777, 0x1000))
    attempt("fchownat", lambda: call(260 if X86 else 54, descriptor, b"", os.getuid(), os.getgid(), 0x1000))
    attempt("utimensat", lambda: call(280 if X86 else 88, descriptor, b"", 0, 0x1000))
if X86:
    then = struct.pack("llll", 1, 0, 1, 0)
    for number in (90, 92, 94): attempt("by number %d" % number, lambda: call(number, outside.encode(), 0o777, -1))
    attempt("utime by number", lambda: call(132, outside.encode(), then))
    attempt("utimes by number", lambda: call(235, outside.encode(), then))
    attempt("futimesat by number", lambda: call(261, -100, outside.encode(), then))
# The helper does nothing for a caller that the kernel hides.
if os.fork() == 0:
    libc.prctl(4, 0, 0, 0, 0)
    attempt("hidden", lambda: os.chmod(outside, 0o777))
    attempt("hidden, by a descriptor", lambda: os.fchmod(reading, 0o777))
    os._exit(0)
os.wait()
# Links and names change between the check and the call.
ended = False
def swap():
    while not ended:
        for to in (outside, os.path.abspath("own/file")):
            os.symlink(to, "new"); os.replace("new", "swapped")
            text.value = to.encode()
text = ctypes.create_string_buffer(4096)
os.symlink("own/file", "swapped")
thread = threading.Thread(target=swap); thread.start()
for mode in range(2000):
    try: os.chmod("swapped", 0o600 | mode % 8)
    except OSError: pass
    libc.chmod(text, 0o600 | mode % 8)
ended = True; thread.join()
print("tried")
"##;

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_keep_modes_and_times() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = in_place(&cache) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let (outside, mount_folder) = (folder.path().join("outside"), folder.path().join("shown"));
    std::fs::create_dir(&mount_folder).unwrap();
    open_to_all(&mount_folder);
    let readable = mount_folder.join("readable");
    for file in [&outside, &readable] {
        std::fs::write(file, "content").unwrap();
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o644)).unwrap();
    }
    let all: Vec<PathBuf> = vec![
        folder.path().into(),
        outside.clone(),
        mount_folder.clone(),
        readable.clone(),
    ];
    let seen = || -> Vec<_> {
        let metadata = all.iter().map(|path| std::fs::metadata(path).unwrap());
        metadata
            .map(|m| {
                (
                    m.mode(),
                    m.mtime_nsec(),
                    m.ctime_nsec(),
                    m.len(),
                    m.uid(),
                    m.gid(),
                )
            })
            .collect()
    };
    let before = seen();
    let mut spec = spec(python());
    spec.mounts.push(Mount {
        host: mount_folder.clone(),
        inside: "/shown".into(),
    });
    let sandbox = backend.start(&spec).await.unwrap();
    let script = CHANGE_OUTSIDE
        .replace("OUTSIDE", &format!("{outside:?}"))
        .replace("READABLE", &format!("{readable:?}"))
        .replace(
            "X86",
            if cfg!(target_arch = "x86_64") {
                "True"
            } else {
                "False"
            },
        );
    let output = run_python(&*sandbox, &script).await;
    let facts = sandbox.info().isolation.clone();
    sandbox.stop().await.unwrap();
    assert_eq!(output, "tried");
    assert_eq!(seen(), before);
    assert!(facts.starts_with("reduced isolation: "), "{facts}");
}

const CHANGE_INSIDE: &str = r##"
import ctypes, os, shutil, stat, subprocess, tempfile, threading
def mode(path): return stat.S_IMODE(os.lstat(path).st_mode)
def times(path): found = os.lstat(path); return found.st_atime_ns, found.st_mtime_ns
def same(a, b): assert a == b, (a, b)
me = os.getuid(), os.getgid()
os.mkdir("folder"); open("folder/file", "w").write("12345")
os.chmod("folder/file", 0o640); same(mode("folder/file"), 0o640)
os.chmod(os.path.abspath("folder"), 0o711); same(mode("folder"), 0o711)
os.utime("folder/file", ns=(1_000_000_001, 2_000_000_002)); same(times("folder/file"), (1_000_000_001, 2_000_000_002))
os.utime("folder/file"); assert times("folder/file")[1] > 10**18
os.symlink("folder/file", "link"); os.utime("link", (3, 4), follow_symlinks=False)
same(times("link"), (3 * 10**9, 4 * 10**9)); assert times("folder/file")[1] > 10**18
os.chmod("link", 0o604); same(mode("folder/file"), 0o604)
os.chown("folder/file", *me); os.lchown("link", *me)
os.truncate("folder/file", 2); same(os.path.getsize("folder/file"), 2)
folder = os.open("folder", os.O_RDONLY)
os.chmod("file", 0o600, dir_fd=folder); same(mode("folder/file"), 0o600)
os.utime("file", (5, 6), dir_fd=folder); same(times("folder/file"), (5 * 10**9, 6 * 10**9))
file = os.open("folder/file", os.O_RDWR)
os.fchmod(file, 0o601); os.fchown(file, *me); os.utime(file, (7, 8))
same((mode("folder/file"), times("folder/file")), (0o601, (7 * 10**9, 8 * 10**9)))
os.chmod("/proc/self/fd/%d" % file, 0o602); same(mode("folder/file"), 0o602)
os.unlink("folder/file"); os.fchmod(file, 0o603); same(stat.S_IMODE(os.fstat(file).st_mode), 0o603)
thread = threading.Thread(target=lambda: os.chmod(os.path.expanduser("~"), 0o700)); thread.start(); thread.join()
same(mode(os.path.expanduser("~")), 0o700)
with tempfile.NamedTemporaryFile() as temporary: os.chmod(temporary.name, 0o666); same(mode(temporary.name), 0o666)
open("script", "w").write("#!/bin/sh\nexit 3\n"); os.chmod("script", 0o755); same(subprocess.call(["./script"]), 3)
shutil.copy2("script", "copy"); same((mode("copy"), times("copy")[1]), (0o755, times("script")[1]))
subprocess.check_call("touch -d @9 touched && cp -p touched kept && install -m 751 script installed && chmod -R g-x .", shell=True)
same((times("kept")[1], mode("installed")), (9 * 10**9, 0o741))
for wrong, error in [("missing", FileNotFoundError), ("script/below", NotADirectoryError), ("", FileNotFoundError)]:
    try: os.chmod(wrong, 0o600)
    except error: continue
    print("no error:", wrong)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.chmod(ctypes.c_void_p(8), 0o600) == -1 and ctypes.get_errno() == 14
assert libc.fchmod(999, 0o600) == -1 and ctypes.get_errno() == 9
try: os.truncate("script", 1 << 50)
except OSError as error: same(error.errno, 27)
print("tried")
"##;

#[tokio::test(flavor = "multi_thread")]
async fn files_inside_change_modes_and_times() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = in_place(&cache) else {
        return;
    };
    let sandbox = backend.start(&spec(python())).await.unwrap();
    let output = run_python(&*sandbox, CHANGE_INSIDE).await;
    // Unpacking an archive sets modes and times too.
    let archive = tempfile::NamedTempFile::new().unwrap();
    let mut tar = tar::Builder::new(archive.reopen().unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    header.set_mode(0o711);
    header.set_mtime(12);
    tar.append_data(&mut header, "unpacked", std::io::empty())
        .unwrap();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(1);
    tar.append_data(&mut header, "unpacked/file", &b"x"[..])
        .unwrap();
    tar.finish().unwrap();
    let workspace = sandbox.info().paths.workspace.clone();
    sandbox.unpack(&workspace, archive.path()).await.unwrap();
    sandbox
        .upload(&workspace.join("uploaded"), b"x", 0o755)
        .await
        .unwrap();
    for (name, mode) in [
        ("unpacked", 0o711),
        ("unpacked/file", 0o711),
        ("uploaded", 0o755),
    ] {
        let metadata = std::fs::metadata(workspace.join(name)).unwrap();
        assert_eq!(metadata.mode() & 0o7777, mode, "{name}");
        assert!(name != "unpacked/file" || metadata.mtime() == 12, "{name}");
    }
    sandbox.stop().await.unwrap();
    assert_eq!(output, "tried");
}

/// An ordinary user's `chmod` affects a file under all its hard links.
#[tokio::test(flavor = "multi_thread")]
async fn ordinary_user_copies_saved_states() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = in_place(&cache) else {
        return;
    };
    let mut building = spec(python());
    building.root = true;
    let sandbox = backend.start(&building).await.unwrap();
    let script = "import os, sys
for name in ('env/pyvenv.cfg', 'base.tar'):
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write('as it was'); os.chmod(path, 0o644)";
    let store = sandbox.info().paths.store.display().to_string();
    let command = testwright_sandboxes::Command::new(["python3", "-c", script, &store]);
    let script_run = testwright_sandboxes::sandbox::output(
        &*sandbox,
        &command,
        std::time::Duration::from_secs(60),
    );
    assert_eq!(script_run.await.unwrap().code, 0);
    sandbox.save("first").await.unwrap();
    sandbox.stop().await.unwrap();
    let start = SandboxSource::Saved("first".to_owned());
    let sandbox = backend.start(&spec(start)).await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    sandbox.save("second").await.unwrap();
    let store = sandbox.info().paths.store.clone();
    let script = format!(
        "import os
for name in ('env/pyvenv.cfg', 'base.tar'):
    path = os.path.join({store:?}, name)
    for change in (lambda: os.chmod(path, 0), lambda: os.fchmod(os.open(path, os.O_RDONLY), 0)):
        try: change(); print('changed', name)
        except OSError: pass
print('tried')"
    );
    let output = run_python(&*sandbox, &script).await;
    for name in ["env/pyvenv.cfg", "base.tar"] {
        let mut inodes = Vec::new();
        for folder in [
            cache.path().join("states/first/store"),
            cache.path().join("states/second/store"),
            store.clone(),
            fork.info().paths.store.clone(),
        ] {
            let metadata = std::fs::metadata(folder.join(name)).unwrap();
            assert_eq!(metadata.mode() & 0o777, 0o644, "{name}");
            inodes.push(metadata.ino());
        }
        if !is_root() {
            let [first, second, one, other] = inodes[..] else {
                panic!()
            };
            assert!(![first, second, other].contains(&one), "{name}");
            assert!(![first, second].contains(&other), "{name}");
        }
    }
    fork.stop().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(output, "tried");
}
