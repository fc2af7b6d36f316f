//! The jail's first process: confines itself, then starts processes on request and reports their exit codes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, geteuid};

use super::super::protocol::{self, Isolation, Reply, Request, Setup, Task};
use super::error::{JailError, Result, StepContext};
use super::files::TaskFailure;
use super::filter_options::FilterOptions;
use super::limits::Accounting;
use super::{files, kernel_memory, landlock, limits, namespaces, seccomp, user_mapping};

/// Byte of the first step if the keeper could not join the namespaces.
pub(super) const NOT_JOINED: &[u8; 1] = b"u";

/// Timeout and delay for retrying to execute a program that is open for writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
const BUSY_DELAY: Duration = Duration::from_millis(5);

/// Runs the supervisor. `keeper` delivers one byte once users are mapped, and one once memory is counted. It takes the
/// descriptor for answering passed-on calls, which no process of the sandbox keeps.
pub(super) fn main(
    setup: &Setup,
    socket: &UnixStream,
    keeper: UnixStream,
    accounting: Accounting,
) -> ! {
    // No byte arrives if the keeper died.
    let step = || {
        let mut byte = [0];
        let read = (&keeper).read_exact(&mut byte).map(|()| byte);
        read.doing("read from the keeper")
    };
    let confined = step().and_then(|first| {
        let (mut confined, mediated) = confine(setup, accounting)?;
        if first == *NOT_JOINED {
            let lack = "sockets, System V objects and closed folders are not counted";
            confined.lacking.push(lack.to_owned());
        }
        let sent = mediated.map_or(Ok(()), |descriptor| send(&keeper, &descriptor));
        sent.doing("pass calls to the keeper")?;
        step().map(|_| confined)
    });
    drop(keeper);
    let reply = match &confined {
        Ok(confined) => Reply::Ready {
            lacking: confined.lacking.clone(),
            memory_is_counted: accounting.memory_is_counted,
        },
        Err(error) => Reply::Failed {
            message: error.to_string(),
        },
    };
    let sent = protocol::write(&mut &*socket, &reply);
    let (Ok(confined), Ok(())) = (confined, sent) else {
        std::process::exit(125);
    };
    let result = serve(setup, socket, accounting, confined.signals_stay_inside);
    std::process::exit(i32::from(result.is_err()));
}

/// Result of the confinement.
struct Confinement {
    /// Protections that are not in force, as texts for people.
    lacking: Vec<String>,
    /// Whether a signal to all processes reaches those of the sandbox and no others. Otherwise it must not be sent.
    signals_stay_inside: bool,
}

fn send(keeper: &UnixStream, descriptor: &OwnedFd) -> nix::Result<()> {
    let descriptors = [descriptor.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let (socket, byte) = (keeper.as_raw_fd(), [IoSlice::new(b"d")]);
    sendmsg::<()>(socket, &byte, &rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// Confines this process. Also returns the descriptor through which the keeper answers calls.
fn confine(setup: &Setup, accounting: Accounting) -> Result<(Confinement, Option<OwnedFd>)> {
    let options = FilterOptions {
        isolation: setup.isolation,
        relay: setup.host_port.is_some(),
        own_user: setup.owner.is_some(),
        landlock_truncates: false,
        memory_is_counted: accounting.memory_is_counted,
    };
    let mut mediated = None;
    let (mut lacking, signals_stay_inside) = match setup.isolation {
        Isolation::Namespaces => {
            let mut lacking = namespaces::enter(setup)?;
            user_mapping::drop_privileges(
                setup.owner.map(|_| user_mapping::INSIDE),
                user_mapping::RetainedPrivileges::Nothing,
            )?;
            seccomp::apply(options)?;
            if !accounting.memory_is_counted && kernel_memory::socket_buffers().is_none() {
                lacking.push("the memory of sockets is not counted".to_owned());
            }
            (lacking, true)
        }
        Isolation::Landlock => {
            // Orphans become children of this process, so that it can wait for killed ones.
            prctl::set_child_subreaper(true).doing("become the reaper")?;
            user_mapping::drop_privileges(setup.owner, user_mapping::RetainedPrivileges::Search)?;
            let enforced = landlock::apply(setup)?;
            mediated = seccomp::apply(FilterOptions {
                landlock_truncates: enforced.truncates,
                ..options
            })?;
            // No other process runs as that user.
            let signals_stay_inside = enforced.signals_stay_inside || setup.owner.is_some();
            (enforced.missing_protections, signals_stay_inside)
        }
        Isolation::None => (Vec::new(), false),
    };
    if geteuid().is_root() {
        lacking.push("no limit on processes, because the user is root".to_owned());
    }
    // The change of user clears this setting, so it must come after that.
    prctl::set_pdeathsig(Signal::SIGKILL).doing("tie the supervisor to the keeper")?;
    let confined = Confinement {
        lacking,
        signals_stay_inside,
    };
    Ok((confined, mediated))
}

/// Sends a signal to every process of the sandbox. Returns true if it reached all of them.
fn to_all(signals_stay_inside: bool, isolation: Isolation, signal: Signal) -> bool {
    if !signals_stay_inside {
        // Without isolation there are no guarantees.
        return isolation == Isolation::None;
    }
    let sent = kill(Pid::from_raw(-1), signal);
    // ESRCH means that no process exists.
    matches!(sent, Ok(()) | Err(nix::Error::ESRCH | nix::Error::EPERM))
}

/// Waits until all killed processes are gone. All are children, since orphans become children of the supervisor or end
/// with it.
fn wait_for_all(running: &mut HashMap<Pid, u64>, socket: &UnixStream) -> std::io::Result<()> {
    loop {
        match waitpid(None, None) {
            Ok(status) => {
                let (Some(pid), Some(code)) = (status.pid(), code(status)) else {
                    continue;
                };
                if let Some(id) = running.remove(&pid) {
                    report_exit(socket, id, code)?;
                }
            }
            Err(nix::Error::EINTR) => {}
            Err(_) => return Ok(()),
        }
    }
}

fn serve(
    setup: &Setup,
    socket: &UnixStream,
    accounting: Accounting,
    signals_stay_inside: bool,
) -> std::io::Result<()> {
    let mut child_ended = SigSet::empty();
    child_ended.add(Signal::SIGCHLD);
    child_ended.thread_block()?;
    let signals =
        SignalFd::with_flags(&child_ended, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let mut running: HashMap<Pid, u64> = HashMap::new();
    loop {
        let mut ready = [
            PollFd::new(socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let [request, ended] = ready.map(|fd| fd.any().unwrap_or(false));
        if ended {
            while signals.read_signal()?.is_some() {}
            while let Some((pid, code)) = reap() {
                if let Some(id) = running.remove(&pid) {
                    report_exit(socket, id, code)?;
                }
            }
        }
        if request {
            let (Request { id, task }, streams) = receive(socket)?;
            let signal = match task {
                Task::EndProcesses => Signal::SIGKILL,
                Task::Freeze => Signal::SIGSTOP,
                Task::Thaw => Signal::SIGCONT,
                Task::Ping => {
                    report_exit(socket, id, 0)?;
                    continue;
                }
                task => {
                    match start(setup, &task, streams, accounting) {
                        Ok(pid) => {
                            running.insert(pid, id);
                        }
                        Err(message) => {
                            eprintln!("{message}");
                            report_exit(socket, id, 126)?;
                        }
                    }
                    continue;
                }
            };
            let reached = to_all(signals_stay_inside, setup.isolation, signal);
            if reached && signal == Signal::SIGKILL && signals_stay_inside {
                wait_for_all(&mut running, socket)?;
            }
            report_exit(socket, id, i32::from(!reached))?;
        }
    }
}

fn report_exit(mut socket: &UnixStream, id: u64, code: i32) -> std::io::Result<()> {
    protocol::write(&mut socket, &Reply::Exited { id, code })
}

fn reap() -> Option<(Pid, i32)> {
    let status = waitpid(None, Some(WaitPidFlag::WNOHANG)).ok()?;
    Some((status.pid()?, code(status)?))
}

/// Returns the exit code that a shell would report.
fn code(status: WaitStatus) -> Option<i32> {
    match status {
        WaitStatus::Exited(_, code) => Some(code),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32),
        _ => None,
    }
}

/// Standard input, output and error of a process.
type Streams = Vec<OwnedFd>;

/// Reads available bytes into `buffer`, with the descriptors sent along.
pub(super) fn receive_descriptors(
    socket: &UnixStream,
    buffer: &mut [u8],
) -> std::io::Result<(usize, Vec<OwnedFd>)> {
    let mut descriptors = Vec::new();
    let mut space = nix::cmsg_space!([std::os::fd::RawFd; 3]);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just created them in this process, and they have no other owner.
            descriptors.extend(
                fds.into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            );
        }
    }
    Ok((message.bytes, descriptors))
}

fn receive(mut socket: &UnixStream) -> std::io::Result<(Request, Streams)> {
    let mut header = [0; 4];
    let (got, streams) = receive_descriptors(socket, &mut header)?;
    if got == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    if let Some(rest) = header.get_mut(got..) {
        socket.read_exact(rest)?;
    }
    let mut body = vec![0; protocol::body_length(header, protocol::MAX_REQUEST)?];
    socket.read_exact(&mut body)?;
    Ok((serde_json::from_slice(&body)?, streams))
}

fn start(setup: &Setup, task: &Task, streams: Streams, accounting: Accounting) -> Result<Pid> {
    let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(streams)
        .map_err(|_| JailError::new("start a process: its streams are missing"))?;
    // SAFETY: this process has one thread, so the child may do anything a fresh process may.
    match unsafe { fork() }.doing("start a process")? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            for (fd, place) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
                // SAFETY: plain numbers; the originals are marked to close on exec.
                unsafe { libc::dup2(fd.as_raw_fd(), place) };
            }
            let failed = become_task(setup, task, accounting).err();
            let code = failed.map_or(0, |(code, message)| {
                let _ = writeln!(std::io::stderr(), "{message}");
                code
            });
            // SAFETY: ends this process without running the supervisor's clean-up.
            unsafe { libc::_exit(code) }
        }
    }
}

fn become_task(setup: &Setup, task: &Task, accounting: Accounting) -> Result<(), TaskFailure> {
    let failed = |e: &dyn std::fmt::Display| (126, format!("cannot start the process: {e}"));
    // SAFETY: no memory involved; restores what every program expects.
    unsafe {
        libc::setsid();
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::umask(0o022);
    }
    SigSet::empty().thread_set_mask().map_err(|e| failed(&e))?;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| failed(&e))?;
    limits::apply(setup, accounting).map_err(|e| failed(&e))?;
    if setup.isolation == Isolation::Landlock && !matches!(task, Task::Run { .. }) {
        // The keeper reads arguments of calls from this process's memory. Without the supervisor's descriptors, this
        // process is worth no more to attackers than any other of the sandbox.
        // SAFETY: plain numbers; this process uses its three streams and nothing else from here on.
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
        prctl::set_dumpable(true).map_err(|e| failed(&e))?;
    }
    match task {
        Task::Ping | Task::EndProcesses | Task::Freeze | Task::Thaw => Ok(()),
        Task::Run {
            argv,
            directory,
            env,
        } => {
            let mut all = setup.env.clone();
            all.extend(
                env.iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
            std::env::set_current_dir(directory)
                .map_err(|e| (126, format!("cannot enter {}: {e}", directory.display())))?;
            Err(execute(argv, &all))
        }
        Task::Upload { path, mode } => files::upload(path, *mode),
        Task::Unpack { folder } => files::unpack(folder),
        Task::Pack { folder } => files::pack(folder),
        Task::Download { path } => files::download(path),
    }
}

/// Executes a program. Returns only on failure, with the exit codes of shells.
fn execute(argv: &[String], env: &BTreeMap<String, String>) -> TaskFailure {
    let Some(name) = argv.first() else {
        return (126, "no program was given".to_owned());
    };
    let strings = |texts: Vec<String>| {
        texts
            .into_iter()
            .map(CString::new)
            .collect::<Result<Vec<_>, _>>()
    };
    let pairs = env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let (Ok(arguments), Ok(environment)) = (strings(argv.to_vec()), strings(pairs)) else {
        return (
            126,
            format!("{name}: an argument or variable contains a zero byte"),
        );
    };
    let candidates: Vec<_> = if name.contains('/') {
        vec![Path::new(name).to_owned()]
    } else {
        let path = env.get("PATH").map_or("", String::as_str);
        std::env::split_paths(path)
            .map(|folder| folder.join(name))
            .collect()
    };
    let mut failure = (127, format!("{name}: not found"));
    for candidate in candidates {
        let Ok(program) = CString::new(candidate.into_os_string().into_encoded_bytes()) else {
            continue;
        };
        let error = execute_when_not_busy(&program, &arguments, &environment);
        if !matches!(error, nix::Error::ENOENT | nix::Error::ENOTDIR) {
            failure = (126, format!("{name}: {}", error.desc()));
        }
    }
    failure
}

/// Executes a program, retrying while it is busy. Returns only on failure. A new program may still be open for writing
/// in a process that is about to execute another one.
fn execute_when_not_busy(
    program: &CString,
    arguments: &[CString],
    environment: &[CString],
) -> nix::Error {
    let begun = Instant::now();
    loop {
        match nix::unistd::execve(program, arguments, environment) {
            Ok(never) => match never {},
            Err(nix::Error::ETXTBSY) if begun.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(BUSY_DELAY);
            }
            Err(e) => return e,
        }
    }
}
