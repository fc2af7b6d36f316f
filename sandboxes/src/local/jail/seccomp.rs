//! The system call filter. [`crate::system_calls`] lists the calls of all sandboxes; the rules here depend on the
//! isolation.

use std::os::fd::OwnedFd;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp as Op, SeccompFilter, SeccompRule as Rule, apply_filter,
};

use super::super::protocol::Isolation;
use super::error::{Result, StepContext};
use super::filter_options::{FilterOptions, Rules, rule};
use super::{mediation, unbounded_calls};
use crate::system_calls::{self, BY_ARGUMENT, Refused, SystemCall};

/// Ioctls that are refused in place, since they change a file through a descriptor for reading: flags (twice, for two
/// sizes), version, extended flags, verification, encryption.
const ATTRIBUTE_IOCTLS: [u64; 6] = [
    0x4008_6602,
    0x4004_6602,
    0x4008_7602,
    0x401c_5820,
    0x4080_6685,
    0x800c_6613,
];

const BUILD: &str = "build the system call filter";

/// Applies the filter. Returns the descriptor for the keeper's answers if calls are passed to it.
pub(super) fn apply(options: FilterOptions) -> Result<Option<OwnedFd>> {
    let (allow, refuse) = (SeccompAction::Allow, error(libc::EPERM));
    let install = |filter: &BpfProgram| apply_filter(filter).doing("apply the system call filter");
    #[cfg(target_arch = "x86_64")]
    install(&without_x32())?;
    let mut filters = vec![(known_calls(), error(libc::ENOSYS), allow.clone())];
    for number in [0, libc::EOPNOTSUPP] {
        let rules = rules_by_argument(number).doing(BUILD)?;
        filters.push((rules, allow.clone(), error(number)));
    }
    for (rules, action) in unbounded_calls::filters(options).doing(BUILD)? {
        filters.push((rules, allow.clone(), action));
    }
    // If several filters refuse a call, the last one determines the error.
    filters.push((rules(options).doing(BUILD)?, allow.clone(), refuse));
    if options.isolation == Isolation::Landlock {
        filters.push((attributes(), allow.clone(), error(libc::ENOTSUP)));
    }
    for (rules, otherwise, matched) in filters {
        install(&program(rules, otherwise, matched).doing(BUILD)?)?;
    }
    let handed_over = mediation::mediated(options);
    if handed_over.is_empty() {
        return Ok(None);
    }
    let rules = always(handed_over);
    let filter = program(rules, allow, SeccompAction::Trace(0)).doing(BUILD)?;
    mediation::apply(filter).map(Some)
}

/// Returns the calls on extended attributes, which fail in place with `ENOTSUP`: programs that copy files continue
/// without attributes that a file system does not support.
fn attributes() -> Rules {
    let calls = system_calls::shared_names().filter(|call| call.name().contains("xattr"));
    always(numbers(calls))
}

fn error(number: i32) -> SeccompAction {
    SeccompAction::Errno(number as u32)
}

fn numbers(calls: impl Iterator<Item = SystemCall>) -> impl Iterator<Item = i64> {
    calls.filter_map(|call| call.number)
}

/// Returns all calls that exist inside; the others, `clone3` included, do not.
fn known_calls() -> Rules {
    let by_argument = BY_ARGUMENT.iter().map(|rule| rule.call);
    let calls = system_calls::allowed().chain(system_calls::refused());
    always(numbers(calls.chain(by_argument)))
}

/// Returns rules that always match these calls.
fn always(calls: impl IntoIterator<Item = i64>) -> Rules {
    calls.into_iter().map(|number| (number, vec![])).collect()
}

/// Returns the rules of all calls that fail with this error for some values of an argument.
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

/// Returns the rules of a call that is refused for these values of an argument.
fn refused(index: u8, refused: Refused) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let is = |op, value: &u32| (index, op, u64::from(*value));
    match refused {
        Refused::Values(values) => {
            let rules = values.iter().map(|value| rule(&[is(Op::Eq, value)]));
            rules.collect()
        }
        Refused::AllBut(values) => {
            let others: Vec<_> = values.iter().map(|value| is(Op::Ne, value)).collect();
            Ok(vec![rule(&others)?])
        }
        Refused::AnyBit(bits) => {
            let rules = bits
                .iter()
                .map(|bit| rule(&[is(Op::MaskedEq((*bit).into()), bit)]));
            rules.collect()
        }
    }
}

/// Returns the rules of all refused calls.
fn rules(options: FilterOptions) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = rules_by_argument(libc::EPERM)?;
    rules.extend(always(numbers(system_calls::refused())));
    if !options.memory_is_counted {
        rules.insert(libc::SYS_memfd_create, vec![]);
    }
    if options.isolation != Isolation::Landlock {
        return Ok(rules);
    }
    for ioctl in ATTRIBUTE_IOCTLS {
        let refused = rules.entry(libc::SYS_ioctl).or_default();
        refused.push(rule(&[(1, Op::Eq, ioctl)])?);
    }
    rules.extend(always(numbers(system_calls::shared_names())));
    for number in mediation::mediated(options) {
        rules.remove(&number);
    }
    // A datagram pair (even one requested as raw) could be connected to another address later; these two kinds cannot.
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| kind as u64);
    rules.insert(libc::SYS_socketpair, other_kinds(1, &connected)?);
    let socket = match options.relay {
        true => tcp_alone(&mut rules)?,
        false => vec![],
    };
    rules.insert(libc::SYS_socket, socket);
    restrict_to_self(&mut rules)?;
    Ok(rules)
}

/// Returns rules that match all kinds of sockets except these.
fn other_kinds(argument: u8, kinds: &[u64]) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let others = (0..=0xf).filter(|kind| !kinds.contains(kind));
    others
        .map(|kind| rule(&[(argument, Op::MaskedEq(0xf), kind)]))
        .collect()
}

/// Refuses sockets that can send to an address without `connect`, and TCP Fast Open, which can do so too. Returns the
/// rules for `socket`.
fn tcp_alone(rules: &mut Rules) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let is_not = |index, value: i32| (index, Op::Ne, value as u64);
    let mut socket = vec![rule(&[is_not(0, libc::AF_INET)])?];
    socket.extend(other_kinds(1, &[libc::SOCK_STREAM as u64])?);
    socket.push(rule(&[is_not(2, 0), is_not(2, libc::IPPROTO_TCP)])?);
    for (number, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        let bit = libc::MSG_FASTOPEN as u64;
        let fast_open = rule(&[(flags, Op::MaskedEq(bit), bit)])?;
        rules.insert(number, vec![fast_open]);
    }
    Ok(socket)
}

/// Restricts calls that take the number of a process or a user, which may be outside, to the calling process (0).
fn restrict_to_self(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    for number in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        rules.insert(number, vec![rule(&[(0, Op::Ne, 0)])?]);
    }
    for (number, users) in [
        (libc::SYS_setpriority, libc::PRIO_USER as u64),
        (libc::SYS_ioprio_set, 3),
    ] {
        let all_of_a_user = rule(&[(0, Op::Eq, users)])?;
        rules.insert(number, vec![rule(&[(1, Op::Ne, 0)])?, all_of_a_user]);
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

/// Returns a filter that ends processes that use x32, which has different numbers for the same calls under the same
/// architecture. The filters of engines do the same. The prologue of every filter already ends processes that use
/// another architecture (`int 0x80`).
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
