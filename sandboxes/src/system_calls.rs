//! System calls that sandboxes may use, and those that are refused: one list for every backend.
//!
//! A call that is on neither list does not exist inside (`ENOSYS`, as on an older kernel). So a new call of a future
//! kernel stays closed until it is reviewed. A call by another calling convention (x32 and `int 0x80` on x86-64) ends
//! the process, because the filters of engines cannot answer otherwise.
//!
//! Two kinds of calls are on neither list:
//!
//! - Calls that are decided by an argument ([`BY_ARGUMENT`]).
//! - Calls whose arguments are in memory, where a filter cannot see them: `clone3` (libc falls back to `clone` if it
//!   does not exist) and `io_setup` with its family, which reads like `preadv2`.

mod arguments;

pub use arguments::{ArgumentRule, BY_ARGUMENT, Masked, Refused};

/// A system call by name, with its number if it is known for this architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    constant: &'static str,
    /// Number on this architecture; `None` if it is unknown.
    pub number: Option<i64>,
}

impl SystemCall {
    /// Returns the kernel's name of the call, e.g. `openat`.
    pub fn name(&self) -> &'static str {
        self.constant.strip_prefix("SYS_").unwrap_or(self.constant)
    }
}

const fn call(constant: &'static str, number: Option<i64>) -> SystemCall {
    SystemCall { constant, number }
}

macro_rules! numbered_by_libc {
    ($list:ident, $condition:meta: $($call:ident)*) => {
        #[cfg($condition)]
        const $list: &[SystemCall] = &[$(call(stringify!($call), Some(libc::$call))),*];
        #[cfg(not($condition))]
        const $list: &[SystemCall] = &[$(call(stringify!($call), None)),*];
    };
}

/// Returns the calls that programs need.
pub fn allowed() -> impl Iterator<Item = SystemCall> {
    [
        ALLOWED_EVERYWHERE,
        ALLOWED_ON_X86_64,
        ALLOWED_ON_AARCH64,
        ALLOWED_RECENTLY,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Returns the calls that fail with `EPERM`: those that tests do not need and that have broken kernels, those that
/// reach into other processes, and those reserved for administrators.
pub fn refused() -> impl Iterator<Item = SystemCall> {
    [
        REFUSED_EVERYWHERE,
        REFUSED_ON_X86_64,
        REFUSED_RECENTLY,
        REFUSED_ELSEWHERE,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Returns the calls on names that a sandbox in place shares with every program of the machine: System V objects,
/// message queues, extended attributes, watches, sockets with an address. A sandbox without namespaces is refused these
/// whole families.
///
/// Most of them are allowed in namespaces. [`refused`] already contains the rest: keyrings, `bpf`, `perf_event_open`,
/// `userfaultfd`, `io_uring`, file handles, quotas, memory and descriptors of other processes.
pub fn shared_names() -> impl Iterator<Item = SystemCall> {
    let recent = ALLOWED_RECENTLY
        .iter()
        .filter(|call| call.name().contains("xattr"));
    SHARED_NAMES.iter().chain(recent).copied()
}

/// Flags `CLONE_NEW…`: mounts, control groups, names, messages, users, processes, network.
pub const NEW_NAMESPACES: [u32; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

/// Allowed socket families: Unix, IPv4, IPv6, netlink. A network namespace would not confine the others (vsock, packet,
/// the kernel's ciphers …), or they have been ways into kernels.
pub const SOCKET_FAMILIES: [u32; 4] = [1, 2, 10, 16];

/// Allowed personalities: plain Linux, `UNAME26`, 32 bits, both, and the query for the present one, but not
/// `ADDR_NO_RANDOMIZE` etc.
pub const PERSONALITIES: [u32; 5] = [0, 0x0002_0000, 8, 0x0002_0008, 0xffff_ffff];

numbered_by_libc! {
    ALLOWED_EVERYWHERE, any(target_arch = "x86_64", target_arch = "aarch64"):
        SYS_accept SYS_accept4 SYS_bind SYS_brk SYS_capget SYS_capset SYS_chdir SYS_clock_getres SYS_clock_gettime
        SYS_clock_nanosleep SYS_close SYS_close_range SYS_connect SYS_copy_file_range SYS_dup SYS_dup3
        SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_execve SYS_execveat
        SYS_exit SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fanotify_mark SYS_fchdir
        SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr
        SYS_flock SYS_fremovexattr SYS_fsetxattr SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_futex
        SYS_futex_waitv SYS_get_robust_list SYS_getcpu SYS_getcwd SYS_getdents64 SYS_getegid SYS_geteuid SYS_getgid
        SYS_getgroups SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpid SYS_getppid SYS_getpriority SYS_getrandom
        SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage SYS_getsid SYS_getsockname SYS_getsockopt SYS_gettid
        SYS_gettimeofday SYS_getuid SYS_getxattr SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch
        SYS_ioprio_get SYS_ioprio_set SYS_kill SYS_landlock_add_rule SYS_landlock_create_ruleset SYS_landlock_restrict_self
        SYS_lgetxattr SYS_linkat SYS_listen SYS_listxattr SYS_llistxattr SYS_lremovexattr SYS_lseek SYS_lsetxattr
        SYS_membarrier SYS_memfd_create SYS_mincore SYS_mkdirat SYS_mknodat SYS_mlock SYS_mlock2
        SYS_mlockall SYS_mmap SYS_mprotect SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive
        SYS_mq_timedsend SYS_mq_unlink SYS_mremap SYS_mseal SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_msync
        SYS_munlock SYS_munlockall SYS_munmap SYS_nanosleep SYS_newfstatat SYS_openat SYS_openat2 SYS_pidfd_open
        SYS_pidfd_send_signal SYS_pipe2 SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_ppoll SYS_prctl
        SYS_pread64 SYS_preadv SYS_prlimit64 SYS_process_mrelease SYS_pselect6 SYS_pwrite64 SYS_pwritev
        SYS_pwritev2 SYS_read SYS_readahead SYS_readlinkat SYS_readv SYS_recvfrom SYS_recvmmsg SYS_recvmsg
        SYS_remap_file_pages SYS_removexattr SYS_renameat SYS_renameat2 SYS_restart_syscall SYS_rseq SYS_rt_sigaction
        SYS_rt_sigpending SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend
        SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sched_get_priority_max SYS_sched_get_priority_min
        SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam SYS_sched_getscheduler SYS_sched_rr_get_interval
        SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setparam SYS_sched_setscheduler SYS_sched_yield SYS_seccomp
        SYS_semctl SYS_semget SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto
        SYS_set_robust_list SYS_set_tid_address SYS_setfsgid SYS_setfsuid SYS_setgid SYS_setgroups SYS_setitimer
        SYS_setpgid SYS_setpriority SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid SYS_setrlimit SYS_setsid
        SYS_setsockopt SYS_setuid SYS_setxattr SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown SYS_sigaltstack
        SYS_signalfd4 SYS_socketpair SYS_splice SYS_statfs SYS_statx SYS_symlinkat SYS_sync SYS_sync_file_range
        SYS_syncfs SYS_sysinfo SYS_tee SYS_tgkill SYS_timer_create SYS_timer_delete SYS_timer_getoverrun
        SYS_timer_gettime SYS_timer_settime SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime SYS_times
        SYS_tkill SYS_truncate SYS_umask SYS_uname SYS_unlinkat SYS_utimensat SYS_vmsplice SYS_wait4 SYS_waitid
        SYS_write SYS_writev
}

numbered_by_libc! {
    ALLOWED_ON_X86_64, target_arch = "x86_64":
        SYS_access SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create SYS_epoll_ctl_old
        SYS_epoll_wait SYS_epoll_wait_old SYS_eventfd SYS_fork SYS_futimesat SYS_get_thread_area SYS_getdents
        SYS_getpgrp SYS_inotify_init SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_mknod SYS_open SYS_pause SYS_pipe
        SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select SYS_set_thread_area SYS_signalfd SYS_stat SYS_symlink
        SYS_time SYS_unlink SYS_utime SYS_utimes SYS_vfork
}

numbered_by_libc! {
    ALLOWED_ON_AARCH64, target_arch = "aarch64":
        SYS_sync_file_range2
}

/// Newer than libc's list. Their numbers are the same on every architecture.
const ALLOWED_RECENTLY: &[SystemCall] = &[
    call("SYS_fchmodat2", Some(452)),
    call("SYS_map_shadow_stack", Some(453)),
    call("SYS_futex_wake", Some(454)),
    call("SYS_futex_wait", Some(455)),
    call("SYS_futex_requeue", Some(456)),
    call("SYS_setxattrat", Some(463)),
    call("SYS_getxattrat", Some(464)),
    call("SYS_listxattrat", Some(465)),
    call("SYS_removexattrat", Some(466)),
];

numbered_by_libc! {
    SHARED_NAMES, any(target_arch = "x86_64", target_arch = "aarch64"):
        // System V identifiers are small numbers that `…_STAT` lists.
        SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd
        SYS_semctl SYS_semget SYS_semop SYS_semtimedop
        SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget
        // POSIX message queues.
        SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend SYS_mq_unlink
        // Landlock does not protect attributes of the same user's files, and a path or a descriptor is enough to change
        // them.
        SYS_fgetxattr SYS_flistxattr SYS_fremovexattr SYS_fsetxattr SYS_getxattr SYS_lgetxattr SYS_listxattr
        SYS_llistxattr SYS_lremovexattr SYS_lsetxattr SYS_removexattr SYS_setxattr
        // These watch files that can be seen but not opened.
        SYS_fanotify_mark SYS_inotify_add_watch
        // These use addresses of the machine's network, abstract sockets included.
        SYS_accept SYS_accept4 SYS_bind SYS_connect SYS_listen
        // This one acts on other processes.
        SYS_process_mrelease
}

numbered_by_libc! {
    REFUSED_EVERYWHERE, any(target_arch = "x86_64", target_arch = "aarch64"):
        SYS_acct SYS_add_key SYS_adjtimex SYS_bpf SYS_chroot SYS_clock_adjtime SYS_clock_settime SYS_delete_module
        SYS_fanotify_init SYS_finit_module SYS_fsconfig SYS_fsmount SYS_fsopen SYS_fspick SYS_get_mempolicy
        SYS_init_module SYS_io_uring_enter SYS_io_uring_register SYS_io_uring_setup SYS_kcmp SYS_kexec_file_load
        SYS_kexec_load SYS_keyctl SYS_lookup_dcookie SYS_mbind SYS_memfd_secret SYS_migrate_pages SYS_mount
        SYS_mount_setattr SYS_move_mount SYS_move_pages SYS_name_to_handle_at SYS_nfsservctl SYS_open_by_handle_at
        SYS_open_tree SYS_perf_event_open SYS_pidfd_getfd SYS_pivot_root SYS_process_madvise SYS_process_vm_readv
        SYS_process_vm_writev SYS_ptrace SYS_quotactl SYS_quotactl_fd SYS_reboot SYS_request_key SYS_set_mempolicy
        SYS_set_mempolicy_home_node SYS_setdomainname SYS_sethostname SYS_setns SYS_settimeofday SYS_swapoff
        SYS_swapon SYS_syslog SYS_umount2 SYS_unshare SYS_userfaultfd SYS_vhangup
}

numbered_by_libc! {
    REFUSED_ON_X86_64, target_arch = "x86_64":
        SYS__sysctl SYS_afs_syscall SYS_getpmsg SYS_ioperm SYS_iopl SYS_modify_ldt SYS_putpmsg SYS_security SYS_sysfs
        SYS_tuxcall SYS_uselib SYS_ustat SYS_vserver
}

/// Newer than libc's list. Their numbers are the same on every architecture.
const REFUSED_RECENTLY: &[SystemCall] = &[
    // It reveals which parts of a file are in memory, which sandboxes share (see `BY_ARGUMENT`).
    call("SYS_cachestat", Some(451)),
    call("SYS_statmount", Some(457)),
    call("SYS_listmount", Some(458)),
    call("SYS_lsm_get_self_attr", Some(459)),
    call("SYS_lsm_set_self_attr", Some(460)),
    call("SYS_lsm_list_modules", Some(461)),
    call("SYS_open_tree_attr", Some(467)),
];

/// Names on other architectures and of old kernels, for filters that match by name.
const REFUSED_ELSEWHERE: &[SystemCall] = &[
    call("SYS_clock_adjtime64", None),
    call("SYS_clock_settime64", None),
    call("SYS_create_module", None),
    call("SYS_get_kernel_syms", None),
    call("SYS_query_module", None),
    call("SYS_stime", None),
    call("SYS_umount", None),
    call("SYS_vm86", None),
    call("SYS_vm86old", None),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn call_lists_do_not_overlap() {
        let names: Vec<_> = allowed().chain(refused()).map(|call| call.name()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let by_argument = BY_ARGUMENT.iter().map(|rule| rule.call.name());
        let in_memory = ["clone3", "io_setup", "io_submit", "io_pgetevents"];
        for name in by_argument.chain(in_memory) {
            assert!(!names.contains(&name), "{name}");
        }
    }

    #[test]
    fn shared_names_cover_complete_families() {
        let shared: Vec<_> = shared_names().map(|call| call.name()).collect();
        assert!(shared_names().all(|call| allowed().any(|one| one == call)));
        let families = ["shm", "sem", "msg", "mq_"];
        for call in allowed().filter(|call| !shared.contains(&call.name())) {
            let name = call.name();
            let is_shared =
                name.contains("xattr") || families.iter().any(|family| name.starts_with(family));
            assert!(!is_shared, "{name} is allowed in place");
        }
    }
}
