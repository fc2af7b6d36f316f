//! System calls that the keeper makes for a process of the sandbox (seccomp user notification).
//!
//! Without namespaces, some calls reach beyond what Landlock controls. `connect` takes addresses, but Landlock knows
//! only ports. Everyone who sees a path can change modes, owners and times of the same user's files.
//!
//! The filter passes these calls to the keeper, which makes them itself or answers with an error. It never lets the
//! original call continue: sandboxed code could have changed the arguments in memory since they were checked.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use seccompiler::{BpfProgram, sock_filter};

use super::super::protocol::{Isolation, Setup};
use super::caller::{Caller, control};
use super::error::{JailError, StepContext};
use super::file_changes::{self, OwnFolders};
use super::filter_options::FilterOptions;

/// Timeout for connecting to the relay, which listens on this machine's loopback and accepts at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the numbers of the calls that are passed to the keeper.
pub(super) fn mediated(options: FilterOptions) -> Vec<i64> {
    let mut calls = Vec::new();
    if options.isolation != Isolation::Landlock {
        return calls;
    }
    if options.relay {
        calls.push(libc::SYS_connect);
    }
    // As root, each sandbox is a separate user, and the kernel protects files of other users.
    if !options.own_user {
        calls.extend(file_changes::CALLS);
        // Landlock is preferred, because programs inside may have their own domains, which the keeper does not know.
        if !options.landlock_truncates {
            calls.push(libc::SYS_truncate);
        }
    }
    calls
}

/// Applies a filter that [`super::seccomp`] compiled with `Trace` for the calls to pass on. The returned descriptor is
/// for the keeper: a process of the sandbox that had it could answer its own calls.
pub(super) fn apply(mut program: BpfProgram) -> std::result::Result<OwnedFd, JailError> {
    const HAND_OVER: &str = "pass system calls to the keeper";
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    for step in &mut program {
        // seccompiler does not support notifications.
        if step.code == RETURN && step.k == libc::SECCOMP_RET_TRACE {
            step.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    #[repr(C)]
    struct Program {
        length: u16,
        steps: *const sock_filter,
    }
    let program_of_kernel = Program {
        length: u16::try_from(program.len()).doing(HAND_OVER)?,
        steps: program.as_ptr(),
    };
    // SAFETY: the structure is the kernel's `sock_fprog`; it and the steps outlive the call. The descriptor that comes
    // back is new and has no other owner.
    unsafe {
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program_of_kernel,
        );
        if listener < 0 {
            return Err(JailError::last(HAND_OVER));
        }
        Ok(OwnedFd::from_raw_fd(listener as i32))
    }
}

/// Answers calls until the sandbox ends.
pub(super) fn serve(listener: OwnedFd, setup: &Setup) {
    let mediator = Mediator {
        listener,
        relay: setup.host_port,
        folders: OwnFolders::new(setup),
    };
    // SAFETY: plain numbers; all zero is what the kernel asks for.
    let empty = || unsafe { std::mem::zeroed::<libc::seccomp_notif>() };
    loop {
        let mut call = empty();
        match control(
            &mediator.listener,
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &mut call,
        ) {
            Ok(()) => mediator.answer(&call),
            // A signal interrupted the call, or the caller ended before its call was read.
            Err(Errno::EINTR | Errno::ENOENT) => {}
            Err(_) => return,
        }
    }
}

struct Mediator {
    listener: OwnedFd,
    /// The single port of 127.0.0.1 that processes may connect to.
    relay: Option<u16>,
    folders: OwnFolders,
}

impl Mediator {
    fn answer(&self, call: &libc::seccomp_notif) {
        let caller = Caller {
            listener: &self.listener,
            id: call.id,
            thread: call.pid,
        };
        let number = i64::from(call.data.nr);
        let result = match number {
            libc::SYS_connect => self.connect(&caller, call.data.args),
            _ => file_changes::perform(&self.folders, &caller, number, call.data.args),
        };
        let mut response = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: result.err().map_or(0, |error| -(error as i32)),
            flags: 0,
        };
        // This fails if the caller has ended, or got a signal and will repeat its call.
        let _ = control(
            &self.listener,
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &mut response,
        );
    }

    /// Replaces the caller's socket with a connection to the relay. No other address is allowed.
    fn connect(&self, caller: &Caller<'_>, arguments: [u64; 6]) -> nix::Result<()> {
        let [socket, address, length, ..] = arguments;
        if length < size_of::<libc::sockaddr_in>() as u64 {
            return Err(Errno::EACCES);
        }
        let [f0, f1, p0, p1, a, b, c, d] = caller.bytes(address)?;
        let family = u16::from_ne_bytes([f0, f1]);
        let (port, host) = (u16::from_be_bytes([p0, p1]), Ipv4Addr::new(a, b, c, d));
        if i32::from(family) != libc::AF_INET
            || Some(port) != self.relay
            || host != Ipv4Addr::LOCALHOST
        {
            return Err(Errno::EACCES);
        }
        let flags = caller.flags(socket as i32)?;
        let to = SocketAddr::from((host, port));
        let failed =
            |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap_or(libc::ETIMEDOUT));
        let stream = TcpStream::connect_timeout(&to, CONNECT_TIMEOUT).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream
            .set_nonblocking(flags & libc::O_NONBLOCK != 0)
            .map_err(failed)?;
        let mut replacement = libc::seccomp_notif_addfd {
            id: caller.id,
            flags: libc::SECCOMP_ADDFD_FLAG_SETFD as u32,
            srcfd: stream.as_raw_fd() as u32,
            newfd: socket as u32,
            newfd_flags: (flags & libc::O_CLOEXEC) as u32,
        };
        control(
            &self.listener,
            libc::SECCOMP_IOCTL_NOTIF_ADDFD,
            &mut replacement,
        )
    }
}
