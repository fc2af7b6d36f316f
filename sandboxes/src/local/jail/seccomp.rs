//! The filter of system calls: what sandboxes have is in [`crate::system_calls`], what depends on the isolation is here.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, apply_filter,
};

use super::super::protocol::Isolation;
use super::unbounded_calls;
use crate::system_calls::{self, NEW_NAMESPACES, PERSONALITIES, SOCKET_FAMILIES, SystemCall};

/// The ioctls that put characters into a terminal's input: TIOCSTI, TIOCLINUX.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

pub type Rules = BTreeMap<i64, Vec<Rule>>;

/// What the filter depends on.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    pub isolation: Isolation,
    pub network: bool,
    /// The one port that may be connected to, in place.
    pub host_port: Option<u16>,
    /// The kernel counts the memory of all processes together, also what no process has mapped.
    pub memory_is_counted: bool,
}

pub fn apply(around: Surroundings) -> Result<(), String> {
    let build = || -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
        let (allow, refuse) = (SeccompAction::Allow, error(libc::EPERM));
        let mut rules = rules(around)?;
        if around.isolation == Isolation::Landlock && !around.network && around.host_port.is_some()
        {
            one_port(&mut rules)?;
        }
        let mut programs = vec![program(known_calls(), error(libc::ENOSYS), allow.clone())?];
        for (rules, action) in unbounded_calls::filters(around)? {
            programs.push(program(rules, allow.clone(), action)?);
        }
        // The filter that is added last says which error it is.
        programs.push(program(rules, allow, refuse)?);
        Ok(programs)
    };
    for filter in build().map_err(|e| format!("build the system call filter: {e}"))? {
        apply_filter(&filter).map_err(|e| format!("apply the system call filter: {e}"))?;
    }
    Ok(())
}

fn error(number: i32) -> SeccompAction {
    SeccompAction::Errno(number as u32)
}

fn numbers(calls: impl Iterator<Item = SystemCall>) -> impl Iterator<Item = i64> {
    calls.filter_map(|call| call.number)
}

/// All that exists inside: the rest does not, `clone3` included.
fn known_calls() -> Rules {
    let by_arguments = [libc::SYS_clone, libc::SYS_socket, libc::SYS_personality];
    numbers(system_calls::allowed().chain(system_calls::refused()))
        .chain(by_arguments)
        .map(|number| (number, vec![]))
        .collect()
}

const BY_PATH: [&str; 7] = [
    "inotify_add_watch",
    "lremovexattr",
    "lsetxattr",
    "removexattr",
    "removexattrat",
    "setxattr",
    "setxattrat",
];

/// What is refused.
fn rules(around: Surroundings) -> Result<Rules, seccompiler::BackendError> {
    let Surroundings {
        isolation, network, ..
    } = around;
    let is = |index, value: u64| Condition::new(index, Length::Dword, Op::Eq, value);
    let is_not = |index, value: u32| Condition::new(index, Length::Dword, Op::Ne, value.into());
    let none_of = |index, values: &[u32]| {
        let conditions: Result<_, _> = values.iter().map(|value| is_not(index, *value)).collect();
        Rule::new(conditions?)
    };
    let mut rules: Rules = numbers(system_calls::refused())
        .map(|number| (number, vec![]))
        .collect();
    let mut clone = Vec::new();
    for bit in NEW_NAMESPACES.map(u64::from) {
        let set = Condition::new(0, Length::Dword, Op::MaskedEq(bit), bit)?;
        clone.push(Rule::new(vec![set])?);
    }
    rules.insert(libc::SYS_clone, clone);
    let ioctl = TERMINAL_INPUT
        .iter()
        .map(|number| Rule::new(vec![is(1, *number)?]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, ioctl);
    rules.insert(libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]);
    let families = match (isolation, network) {
        (Isolation::Namespaces, _) => SOCKET_FAMILIES.to_vec(),
        // A socket of the host's services (an agent, an engine) is a path that Landlock lets one connect to.
        (_, true) => SOCKET_FAMILIES
            .into_iter()
            .filter(|family| *family != libc::AF_UNIX as u32)
            .collect(),
        (_, false) => Vec::new(),
    };
    let socket = match families.is_empty() {
        true => Vec::new(),
        false => vec![none_of(0, &families)?],
    };
    rules.insert(libc::SYS_socket, socket);
    if !around.memory_is_counted {
        rules.insert(libc::SYS_memfd_create, vec![]);
    }
    if isolation != Isolation::Namespaces {
        // A datagram pair (also one that is asked for as a raw one) could be pointed at another address later; these
        // two cannot.
        let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| kind as u64);
        let mut other = Vec::new();
        for kind in (0..=0xf).filter(|kind| !connected.contains(kind)) {
            let condition = Condition::new(1, Length::Dword, Op::MaskedEq(0xf), kind)?;
            other.push(Rule::new(vec![condition])?);
        }
        rules.insert(libc::SYS_socketpair, other);
        if !network {
            rules.insert(libc::SYS_connect, vec![]);
        }
        // By a path, which Landlock leaves alone: attributes of files outside, and what happens to them.
        let by_path = |call: &SystemCall| BY_PATH.contains(&call.name());
        for number in numbers(system_calls::allowed().filter(by_path)) {
            rules.insert(number, vec![]);
        }
        // Kept by the host's kernel under names and numbers that all see.
        for number in [
            libc::SYS_shmget,
            libc::SYS_semget,
            libc::SYS_msgget,
            libc::SYS_mq_open,
        ] {
            rules.insert(number, vec![]);
        }
        reaching_others(&mut rules)?;
    }
    Ok(rules)
}

/// Landlock keeps TCP to one port; nothing else may pass beside it. Its rules know neither MPTCP nor a connection that
/// is made by sending (TCP Fast Open).
fn one_port(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let is_not = |index, value: i32| Condition::new(index, Length::Dword, Op::Ne, value as u64);
    let masked = |index, mask: u64, value: i32| {
        Condition::new(index, Length::Dword, Op::MaskedEq(mask), value as u64)
    };
    let mut socket = vec![Rule::new(vec![is_not(0, libc::AF_INET)?])?];
    for kind in [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
        socket.push(Rule::new(vec![masked(1, 0xf, kind)?])?);
    }
    let other = vec![is_not(2, 0)?, is_not(2, libc::IPPROTO_TCP)?];
    socket.push(Rule::new(other)?);
    rules.insert(libc::SYS_socket, socket);
    rules.remove(&libc::SYS_connect);
    for number in [libc::SYS_bind, libc::SYS_listen] {
        rules.insert(number, vec![]);
    }
    for (number, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        let fast_open = masked(flags, libc::MSG_FASTOPEN as u64, libc::MSG_FASTOPEN)?;
        rules.insert(number, vec![Rule::new(vec![fast_open])?]);
    }
    Ok(())
}

/// Calls that take a process or a user by number, whose processes outside may be: for oneself (0) only.
fn reaching_others(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let other = |index| Condition::new(index, Length::Dword, Op::Ne, 0);
    for number in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        rules.insert(number, vec![Rule::new(vec![other(0)?])?]);
    }
    for (number, users) in [
        (libc::SYS_setpriority, libc::PRIO_USER as u64),
        (libc::SYS_ioprio_set, 3),
    ] {
        let all_of_a_user = Condition::new(0, Length::Dword, Op::Eq, users)?;
        let refused = vec![Rule::new(vec![other(1)?])?, Rule::new(vec![all_of_a_user])?];
        rules.insert(number, refused);
    }
    Ok(())
}

fn program(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()
}
