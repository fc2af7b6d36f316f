//! The system call filter: calls that target the toolbox fail with EPERM.
//!
//! A filter sees only the numeric arguments. So it compares them with the toolbox's thread ids, and refuses calls
//! entirely if their target is in memory, which a filter cannot read.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
};

/// Calls that no test needs and that reach into other processes or bypass a filter.
const REFUSED_CALLS: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
];

/// Calls with the index of the argument that names a process or a thread.
const TARGETED_CALLS: &[(i64, u8)] = &[
    (libc::SYS_kill, 0),
    (libc::SYS_tkill, 0),
    (libc::SYS_tgkill, 0),
    (libc::SYS_tgkill, 1),
    (libc::SYS_rt_sigqueueinfo, 0),
    (libc::SYS_rt_tgsigqueueinfo, 0),
    (libc::SYS_rt_tgsigqueueinfo, 1),
    (libc::SYS_pidfd_open, 0),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];

const F_SETOWN: u64 = 8;
const F_SETOWN_EX: u64 = 15;
/// Ioctls that set the receiver of a descriptor's signals: FIOSETOWN, SIOCSPGRP.
const SET_OWNER_IOCTLS: [u64; 2] = [0x8901, 0x8902];

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Returns a filter for programs that must not reach these threads of this process.
pub(super) fn program(threads: &[i32]) -> Result<BpfProgram, BackendError> {
    let equals = |index: u8, value: u64| Condition::new(index, Length::Dword, Op::Eq, value);
    let is = |index: u8, value: i32| equals(index, u64::from(value.cast_unsigned()));
    let group = nix::unistd::getpgrp().as_raw();
    let mut rules: Rules = REFUSED_CALLS
        .iter()
        .map(|number| (*number, vec![]))
        .collect();
    let mut add = |number: i64, conditions: Vec<Condition>| -> Result<(), BackendError> {
        let rule = Rule::new(conditions)?;
        rules.entry(number).or_default().push(rule);
        Ok(())
    };
    for (number, index) in TARGETED_CALLS {
        for thread in threads {
            add(*number, vec![is(*index, *thread)?])?;
        }
    }
    // The targets are every process of the user (-1), the toolbox's group, and the first process of the sandbox.
    for target in [-1, -group, 1] {
        add(libc::SYS_kill, vec![is(0, target)?])?;
    }
    for thread in threads {
        // The first argument selects the kind of target. A process is 0 for the CPU priority and 1 for the I/O
        // priority.
        add(libc::SYS_setpriority, vec![is(0, 0)?, is(1, *thread)?])?;
        add(libc::SYS_ioprio_set, vec![is(0, 1)?, is(1, *thread)?])?;
    }
    for (number, of_group, of_user) in [(libc::SYS_setpriority, 1, 2), (libc::SYS_ioprio_set, 2, 3)]
    {
        add(number, vec![is(0, of_group)?, is(1, group)?])?;
        add(number, vec![is(0, of_user)?])?;
    }
    for target in threads.iter().chain(&[-1, -group, 1]) {
        add(libc::SYS_fcntl, vec![equals(1, F_SETOWN)?, is(2, *target)?])?;
    }
    add(libc::SYS_fcntl, vec![equals(1, F_SETOWN_EX)?])?;
    for request in SET_OWNER_IOCTLS {
        add(libc::SYS_ioctl, vec![equals(1, request)?])?;
    }
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        std::env::consts::ARCH.try_into()?,
    )?;
    let mut program = BpfProgram::new();
    #[cfg(target_arch = "x86_64")]
    program.extend(without_x32());
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Refuses the x32 interface: it has its own numbers for the same calls under the same architecture.
#[cfg(target_arch = "x86_64")]
fn without_x32() -> [seccompiler::sock_filter; 3] {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const REFUSE: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| seccompiler::sock_filter { code, jt, jf, k };
    [
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 1, X32),
        step(RETURN, 0, 0, REFUSE | libc::ENOSYS.cast_unsigned()),
    ]
}
