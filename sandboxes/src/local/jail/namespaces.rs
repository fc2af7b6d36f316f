//! The jail's view of the machine: a root on a small tmpfs with read-only system programs, generated configuration, a
//! minimal /dev, a new /proc, and the sandbox's folders.

use std::ffi::CString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root, sethostname};

use super::super::protocol::{Bind, Overlay, Setup};
use super::error::{JailError, Result, StepContext};
use super::user_mapping::INSIDE;
use crate::hex::hex;

/// Folders of programs and libraries.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
];
/// Configuration that programs need and that contains no secrets.
pub(super) const ETC_READ_ONLY: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/fonts",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/debian_version",
    "/etc/os-release",
];

/// The zone of sandboxes, as in the images of Python. Programs read its name from the link at `/etc/localtime`.
const TIME_ZONE: &str = "/usr/share/zoneinfo/Etc/UTC";

/// Flags of mounts that ignore set-user-id bits and device nodes.
const NO_DEVICES: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Flags for the namespaces of a sandbox.
pub(super) const FLAGS: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWNET;

/// Builds the root file system and enters it. Returns the protections that are not in force.
pub(super) fn enter(setup: &Setup) -> Result<Vec<String>> {
    let root = setup.root.as_path();
    let mut lacking = Vec::new();
    mount_plain("/", None, MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    mount_new("tmpfs", root, "tmpfs", NO_DEVICES, "mode=755,size=16m")?;
    for path in SYSTEM {
        expose(root, Path::new(path))?;
    }
    let host_name = random_host_name()?;
    configuration(root, &host_name)?;
    devices(root)?;
    if !mount_proc(root)? {
        lacking.push("no /proc".to_owned());
    }
    for link in ["/run", "/var/tmp", "/var/lib", "/home"] {
        make_folder(&below(root, Path::new(link)))?;
    }
    for entry in &setup.binds {
        bind(root, entry)?;
    }
    if let Some(overlay) = &setup.overlay {
        overlay_workspace(&below(root, &overlay.inside), overlay)?;
    }
    chdir(root).doing("enter the new root")?;
    pivot_root(".", ".").doing("change the root")?;
    umount2(".", MntFlags::MNT_DETACH).doing("detach the old root")?;
    chdir("/").doing("enter the new root")?;
    set_attributes(Path::new("/"), libc::MOUNT_ATTR_RDONLY, false)?;
    sethostname(&host_name).doing("set the host name")?;
    if loopback().is_err() {
        lacking.push("no loopback".to_owned());
    }
    Ok(lacking)
}

/// Shows a file or folder of the host if it exists, a link as a link.
fn expose(root: &Path, host: &Path) -> Result<()> {
    match fs::symlink_metadata(host) {
        Ok(metadata) if metadata.is_symlink() => {
            let inside = below(root, host);
            inside.parent().map_or(Ok(()), make_folder)?;
            let target = fs::read_link(host).doing(format_args!("read {}", host.display()))?;
            symlink(target, &inside).doing(format_args!("link {}", host.display()))
        }
        Ok(_) => bind_read_only(root, host),
        Err(_) => Ok(()),
    }
}

fn bind_read_only(root: &Path, host: &Path) -> Result<()> {
    let entry = Bind {
        host: host.to_owned(),
        inside: host.to_owned(),
        writable: false,
    };
    bind(root, &entry)
}

/// Returns a host name that code cannot know beforehand, of the form that container engines choose.
fn random_host_name() -> Result<String> {
    let mut bytes = [0; 6];
    fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .doing("choose a host name")?;
    Ok(hex(&bytes))
}

fn configuration(root: &Path, host_name: &str) -> Result<()> {
    let etc = root.join("etc");
    make_folder(&etc)?;
    // A link here leads below /usr, or to another of these paths.
    for path in ETC_READ_ONLY {
        expose(root, Path::new(path))?;
    }
    let write = |name: &str, content: &[u8]| {
        fs::write(etc.join(name), content).doing(format_args!("write /etc/{name}"))
    };
    write(
        "passwd",
        format!("root:x:0:0:root:/root:/bin/sh\ntestwright:x:{INSIDE}:{INSIDE}::/home/testwright:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n").as_bytes(),
    )?;
    write(
        "group",
        format!("root:x:0:\ntestwright:x:{INSIDE}:\nnogroup:x:65534:\n").as_bytes(),
    )?;
    write(
        "nsswitch.conf",
        b"passwd: files\ngroup: files\nhosts: files dns\n",
    )?;
    write("hostname", format!("{host_name}\n").as_bytes())?;
    write(
        "hosts",
        format!("127.0.0.1 localhost {host_name}\n::1 localhost\n").as_bytes(),
    )?;
    write("timezone", b"Etc/UTC\n")?;
    // Without the file, the C library uses UTC.
    if Path::new(TIME_ZONE).exists() {
        symlink(TIME_ZONE, etc.join("localtime")).doing("link /etc/localtime")?;
    }
    Ok(())
}

fn devices(root: &Path) -> Result<()> {
    let dev = root.join("dev");
    make_folder(&dev)?;
    for name in DEVICES {
        let (host, inside) = (Path::new("/dev").join(name), dev.join(name));
        if host.exists() {
            make_file(&inside)?;
            mount_plain(&inside, Some(&host), MsFlags::MS_BIND)?;
        }
    }
    let pts = dev.join("pts");
    make_folder(&pts)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = "newinstance,ptmxmode=0666,mode=620";
    mount_new("devpts", &pts, "devpts", flags, options)?;
    let shm = dev.join("shm");
    make_folder(&shm)?;
    let options = "mode=1777,size=256m,nr_inodes=64k";
    mount_new("shm", &shm, "tmpfs", NO_DEVICES, options)?;
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, dev.join(name)).doing(format_args!("link /dev/{name}"))?;
    }
    Ok(())
}

/// Mounts a new /proc, and returns whether that succeeded. Inside a container that masks parts of its own /proc, the
/// kernel refuses; some harmless files then replace it.
fn mount_proc(root: &Path) -> Result<bool> {
    let proc = root.join("proc");
    make_folder(&proc)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if mount(Some("proc"), &proc, Some("proc"), flags, None::<&str>).is_ok() {
        return Ok(true);
    }
    for name in [
        "cpuinfo",
        "meminfo",
        "stat",
        "filesystems",
        "uptime",
        "version",
    ] {
        bind_read_only(root, &Path::new("/proc").join(name))?;
    }
    Ok(false)
}

fn bind(root: &Path, entry: &Bind) -> Result<()> {
    let inside = below(root, &entry.inside);
    // The given paths contain no links, so a link must have been placed there meanwhile.
    let is_link = fs::symlink_metadata(&entry.host).is_ok_and(|metadata| metadata.is_symlink());
    if is_link {
        return Err(JailError::new(format_args!(
            "mount {}: it is a symbolic link",
            entry.host.display()
        )));
    }
    if entry.host.is_dir() {
        make_folder(&inside)?;
    } else {
        make_file(&inside)?;
    }
    mount_plain(
        &inside,
        Some(&entry.host),
        MsFlags::MS_BIND | MsFlags::MS_REC,
    )?;
    let access = match entry.writable {
        true => 0,
        false => libc::MOUNT_ATTR_RDONLY,
    };
    let no_devices = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    set_attributes(&inside, access | no_devices, true)
}

fn overlay_workspace(inside: &Path, overlay: &Overlay) -> Result<()> {
    let folder = |path: &Path| {
        let text = path.to_string_lossy();
        // These characters would end the path in the mount options.
        match text.contains([',', ':', '\\']) {
            true => Err(JailError::new(format_args!(
                "overlay {text}: its path contains `,`, `:` or a backslash"
            ))),
            false => Ok(text.into_owned()),
        }
    };
    let (lower, upper, work) = (
        folder(&overlay.lower)?,
        folder(&overlay.upper)?,
        folder(&overlay.work)?,
    );
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr");
    make_folder(inside)?;
    mount_new("overlay", inside, "overlay", NO_DEVICES, &options)
}

fn set_attributes(path: &Path, set: u64, recursive: bool) -> Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let name = CString::new(path.as_os_str().as_bytes()).doing("change a mount")?;
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a C string and the structure has the size that is given; both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            name.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(JailError::last(format_args!(
            "change the mount {}",
            path.display()
        )))
    }
}

fn loopback() -> std::io::Result<()> {
    // SAFETY: `request` is a zeroed ifreq with a name that fits, and the socket is closed again.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let result = libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request);
        let error = std::io::Error::last_os_error();
        libc::close(socket);
        if result == 0 { Ok(()) } else { Err(error) }
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).doing(format_args!("make {}", path.display()))
}

fn make_file(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), make_folder)?;
    match fs::OpenOptions::new().create(true).append(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(error).doing(format_args!("make {}", path.display())),
    }
}

fn mount_plain(target: impl AsRef<Path>, source: Option<&Path>, flags: MsFlags) -> Result<()> {
    let target = target.as_ref();
    mount(source, target, None::<&str>, flags, None::<&str>)
        .doing(format_args!("mount {}", target.display()))
}

fn mount_new(source: &str, target: &Path, kind: &str, flags: MsFlags, options: &str) -> Result<()> {
    mount(Some(source), target, Some(kind), flags, Some(options))
        .doing(format_args!("mount {}", target.display()))
}
