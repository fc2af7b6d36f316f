//! System calls that no test needs and that kernels have been broken with; they fail with EPERM.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, apply_filter,
};

use super::super::wire::{Isolation, Setup};

const REFUSED: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

const NEW_NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The ioctls that put characters into a terminal's input: TIOCSTI, TIOCLINUX.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

type Rules = BTreeMap<i64, Vec<Rule>>;

pub fn apply(setup: &Setup) -> Result<(), String> {
    let build = || -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
        let mut rules = rules(setup.isolation, setup.network)?;
        if setup.isolation == Isolation::Landlock && !setup.network && setup.host_port.is_some() {
            one_port(&mut rules)?;
        }
        Ok(vec![
            program(rules, libc::EPERM)?,
            // Its flags lie in memory, out of a filter's sight: "not there" makes libc fall back to clone.
            program(BTreeMap::from([(libc::SYS_clone3, vec![])]), libc::ENOSYS)?,
        ])
    };
    for filter in build().map_err(|e| format!("build the system call filter: {e}"))? {
        apply_filter(&filter).map_err(|e| format!("apply the system call filter: {e}"))?;
    }
    Ok(())
}

fn rules(isolation: Isolation, network: bool) -> Result<Rules, seccompiler::BackendError> {
    let is = |index, value: u64| Condition::new(index, Length::Dword, Op::Eq, value);
    let is_not = |index, value: i32| Condition::new(index, Length::Dword, Op::Ne, value as u64);
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, vec![])).collect();
    let mut clone = Vec::new();
    for flag in NEW_NAMESPACES {
        let bit = *flag as u32 as u64;
        clone.push(Rule::new(vec![Condition::new(
            0,
            Length::Dword,
            Op::MaskedEq(bit),
            bit,
        )?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    let ioctl = TERMINAL_INPUT
        .iter()
        .map(|number| Rule::new(vec![is(1, *number)?]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, ioctl);
    let inet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let families = match (isolation, network) {
        // The network namespace keeps them in; other families (vsock, packet …) it would not.
        (Isolation::Namespaces, _) => vec![libc::AF_UNIX, inet[0], inet[1], inet[2]],
        // A socket of the host's services (an agent, an engine) is a path that Landlock lets one connect to.
        (_, true) => inet.to_vec(),
        (_, false) => Vec::new(),
    };
    let mut socket = Vec::new();
    if !families.is_empty() {
        let conditions = families
            .iter()
            .map(|f| is_not(0, *f))
            .collect::<Result<_, _>>()?;
        socket.push(Rule::new(conditions)?);
    }
    rules.insert(libc::SYS_socket, socket);
    if isolation != Isolation::Namespaces {
        // A datagram pair could be pointed at another address later; a stream pair cannot.
        let kind = Condition::new(1, Length::Dword, Op::MaskedEq(0xf), libc::SOCK_DGRAM as u64)?;
        rules.insert(libc::SYS_socketpair, vec![Rule::new(vec![kind])?]);
        if !network {
            rules.insert(libc::SYS_connect, vec![]);
        }
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

fn program(rules: Rules, error: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(error as u32),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}
