//! The processes that create and supervise a jail, separate from the host's process.
//!
//! Each sandbox has two of them. The *keeper*, outside, creates the namespaces, writes the id maps and ends leftover
//! processes. The *supervisor*, the jail's first process, starts processes on request.
//!
//! The supervisor ends when the host's end of the socket closes, however the host died, and its pid namespace ends with
//! it. Without a pid namespace, the keeper kills the remaining processes, whose reaper it is.

mod caller;
mod cgroup;
mod disk;
mod error;
mod file_changes;
mod files;
mod filter_options;
mod kernel_memory;
mod landlock;
mod limits;
mod mediation;
mod memory;
mod namespaces;
mod orphan_reaper;
mod processes;
mod seccomp;
mod supervisor;
mod unbounded_calls;
mod user_mapping;
mod watch;

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::prctl;
use nix::unistd::Pid;

use super::program_writer;
use super::protocol::{self, Isolation, Reply, Setup};
use error::{JailError, Result, StepContext};

/// Runs a launcher: takes the socket to the host from standard input, and never returns. Must be called before the
/// process has a second thread.
pub fn jail_main() -> ! {
    program_writer::run_if_requested();
    let code = match run_keeper() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            125
        }
    };
    std::process::exit(code)
}

fn run_keeper() -> Result<i32> {
    let mut socket = take_socket()?;
    let setup: Setup = protocol::read(&mut socket).doing("read the setup from the host")?;
    // SAFETY: no arguments, no memory involved.
    unsafe { libc::setsid() };
    let cgroup = match setup.isolation {
        Isolation::None => None,
        Isolation::Namespaces | Isolation::Landlock => cgroup::Cgroup::new(&setup.limits),
    };
    let (supervisor, has_joined) = match start_supervisor(&setup, &socket, cgroup.as_ref()) {
        Ok(started) => started,
        Err(error) => {
            let message = error.to_string();
            // Writing fails only if the host is gone.
            let _ = protocol::write(&mut socket, &Reply::Failed { message });
            return Err(error);
        }
    };
    let ended = watch::wait_for_end(&setup, supervisor, cgroup.as_ref(), has_joined)?;
    orphan_reaper::end_all();
    if let Some(why) = ended.why {
        // Writing fails only if the host is gone.
        let _ = protocol::write(&mut socket, &Reply::Ended { why });
    }
    Ok(ended.code)
}

/// Moves the socket from standard input to a descriptor that no child inherits, and closes all others.
fn take_socket() -> Result<UnixStream> {
    // SAFETY: descriptors are plain numbers here; nothing else in this young process owns them.
    unsafe {
        if libc::dup2(0, 3) != 3 || libc::fcntl(3, libc::F_SETFD, libc::FD_CLOEXEC) != 0 {
            return Err(JailError::last("take the socket"));
        }
        libc::syscall(libc::SYS_close_range, 4, libc::c_uint::MAX, 0);
        let null = File::open("/dev/null").doing("open /dev/null")?;
        if libc::dup2(null.as_raw_fd(), 0) != 0 {
            return Err(JailError::last("replace standard input"));
        }
        Ok(UnixStream::from(OwnedFd::from_raw_fd(3)))
    }
}

/// Starts the supervisor. Returns it, and whether this process joined its namespaces.
fn start_supervisor(
    setup: &Setup,
    socket: &UnixStream,
    cgroup: Option<&cgroup::Cgroup>,
) -> Result<(Pid, bool)> {
    let flags = match setup.isolation {
        Isolation::Namespaces => namespaces::FLAGS,
        Isolation::Landlock | Isolation::None => {
            prctl::set_child_subreaper(true).doing("become the reaper")?;
            0
        }
    };
    let (mut ours, theirs) = UnixStream::pair().doing("make a socket")?;
    let accounting = limits::Accounting {
        present: limits::present_processes(setup),
        memory_is_counted: cgroup.is_some(),
    };
    // SAFETY: this process has one thread, so the child may do anything a fresh process may.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    match pid {
        -1 => Err(JailError::last("make namespaces")),
        0 => {
            drop(ours);
            supervisor::main(setup, socket, theirs, accounting)
        }
        pid => {
            drop(theirs);
            let pid = Pid::from_raw(pid as i32);
            let mut has_joined = true;
            if setup.isolation == Isolation::Namespaces {
                user_mapping::write_maps(pid, setup.owner)?;
                has_joined = watch::join_namespaces(setup, pid, cgroup);
            }
            let mut tell = |step: &[u8]| {
                let sent = ours.write_all(step);
                sent.doing("notify the supervisor")
            };
            tell(if has_joined {
                b"m"
            } else {
                supervisor::NOT_JOINED
            })?;
            // This takes many milliseconds, during which the supervisor sets up the jail. No untrusted code runs before
            // it is done, since the supervisor waits for the second step before it serves.
            if let Some(cgroup) = cgroup {
                cgroup.add(pid).doing("limit the memory of the sandbox")?;
            }
            tell(b"c")?;
            mediate(setup, &ours)?;
            Ok((pid, has_joined))
        }
    }
}

/// Answers the calls that the supervisor passes on, if any. Runs in a thread, because limits are checked meanwhile.
fn mediate(setup: &Setup, supervisor: &UnixStream) -> Result<()> {
    // A supervisor that failed, or passes on no calls, sends nothing.
    let Ok((_, descriptors)) = supervisor::receive_descriptors(supervisor, &mut [0]) else {
        return Ok(());
    };
    for listener in descriptors {
        let setup = setup.clone();
        std::thread::Builder::new()
            .spawn(move || mediation::serve(listener, &setup))
            .doing("start answering calls")?;
    }
    Ok(())
}
