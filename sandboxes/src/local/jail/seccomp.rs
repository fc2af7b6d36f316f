//! The filter of system calls: what sandboxes have is in [`crate::system_calls`], what depends on the isolation is here.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, apply_filter,
};

use super::super::protocol::Isolation;
use super::unbounded_calls;
use crate::system_calls::{self, BY_ARGUMENT, Refused, SystemCall};

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
        let mut filters = vec![
            #[cfg(target_arch = "x86_64")]
            without_x32(),
            program(known_calls(), error(libc::ENOSYS), allow.clone())?,
        ];
        for number in [0, libc::EOPNOTSUPP] {
            let rules = rules_by_argument(number)?;
            filters.push(program(rules, allow.clone(), error(number))?);
        }
        let mut rules = rules(around)?;
        if around.isolation == Isolation::Landlock && !around.network && around.host_port.is_some()
        {
            one_port(&mut rules)?;
        }
        for (rules, action) in unbounded_calls::filters(around)? {
            filters.push(program(rules, allow.clone(), action)?);
        }
        // The filter that is added last says which error it is.
        filters.push(program(rules, allow, refuse)?);
        Ok(filters)
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
    let by_argument = BY_ARGUMENT.iter().map(|rule| rule.call);
    numbers(
        system_calls::allowed()
            .chain(system_calls::refused())
            .chain(by_argument),
    )
    .map(|number| (number, vec![]))
    .collect()
}

/// The rules of all calls that fail with this error for some values of an argument.
fn rules_by_argument(error: i32) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for rule in BY_ARGUMENT
        .iter()
        .filter(|rule| i32::from(rule.error) == error)
    {
        if let Some(number) = rule.call.number {
            rules.insert(number, refused(rule.index, rule.refused)?);
        }
    }
    Ok(rules)
}

/// The rules of a call that is refused for these values of an argument.
fn refused(index: u8, refused: Refused) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let is = |op, value: u32| Condition::new(index, Length::Dword, op, value.into());
    let one = |condition| Rule::new(vec![condition]);
    match refused {
        Refused::Values(values) => (values.iter())
            .map(|value| one(is(Op::Eq, *value)?))
            .collect(),
        Refused::AllBut(values) => {
            let conditions: Result<_, _> = values.iter().map(|value| is(Op::Ne, *value)).collect();
            Ok(vec![Rule::new(conditions?)?])
        }
        Refused::AnyBit(bits) => (bits.iter())
            .map(|bit| one(is(Op::MaskedEq(u64::from(*bit)), *bit)?))
            .collect(),
    }
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
    let mut rules = rules_by_argument(libc::EPERM)?;
    rules.extend(numbers(system_calls::refused()).map(|number| (number, vec![])));
    // In namespaces the table's rule is enough.
    match (isolation, network) {
        (Isolation::Namespaces, _) => {}
        // A socket of the host's services (an agent, an engine) is a path that Landlock lets one connect to.
        (_, true) => {
            let local = Condition::new(0, Length::Dword, Op::Eq, libc::AF_UNIX as u64)?;
            rules.insert(libc::SYS_socket, vec![Rule::new(vec![local])?]);
        }
        (_, false) => {
            rules.insert(libc::SYS_socket, vec![]);
        }
    }
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

/// x32 has numbers of its own for the same calls, under the same architecture. It ends the process, as the filters of
/// engines have it, and as another architecture (`int 0x80`) does by what every filter of this kind begins with.
#[cfg(target_arch = "x86_64")]
fn without_x32() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| seccompiler::sock_filter { code, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    vec![
        step(load as u16, 0, 0, 0),
        step(at_least as u16, 0, 1, X32),
        step(answer as u16, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(answer as u16, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
