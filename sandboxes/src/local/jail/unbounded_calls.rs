//! System calls that take disk space or memory faster than a watch can count, or where it cannot see it.

use seccompiler::{BackendError, SeccompAction, SeccompCmpOp as Op};

use super::filter_options::{FilterOptions, Rules, rule};

/// Options of `SOL_SOCKET` that change buffer sizes: `SO_SNDBUF`, `SO_RCVBUF`, and `…FORCE`.
const BUFFER_SIZES: [i32; 4] = [
    libc::SO_SNDBUF,
    libc::SO_RCVBUF,
    libc::SO_SNDBUFFORCE,
    libc::SO_RCVBUFFORCE,
];
/// Internet protocols whose socket buffers are counted.
const PROTOCOLS: [i32; 3] = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];

/// Returns rules, each with the action for matching calls.
pub(super) fn filters(options: FilterOptions) -> Result<Vec<(Rules, SeccompAction)>, BackendError> {
    let mut unsupported = Rules::new();
    // Threads may not have separate descriptors, because only those of whole processes are inspected.
    let (thread, files) = (libc::CLONE_THREAD as u64, libc::CLONE_FILES as u64);
    let own_files = rule(&[(0, Op::MaskedEq(thread | files), thread)])?;
    unsupported.insert(libc::SYS_clone, vec![own_files]);
    let unshare = u64::from(libc::CLOSE_RANGE_UNSHARE);
    let own_files = rule(&[(2, Op::MaskedEq(unshare), unshare)])?;
    unsupported.insert(libc::SYS_close_range, vec![own_files]);
    let mut filters = Vec::new();
    if !options.memory_is_counted {
        // A pipe that gets one small page keeps the surrounding huge page.
        unsupported.insert(libc::SYS_vmsplice, vec![]);
        let mut socket = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut conditions = vec![(0, Op::Eq, family as u64)];
            conditions.extend(PROTOCOLS.map(|protocol| (2, Op::Ne, protocol as u64)));
            socket.push(rule(&conditions)?);
        }
        unsupported.insert(libc::SYS_socket, socket);
        let mut sizes = Vec::new();
        for option in BUFFER_SIZES {
            let level = (1, Op::Eq, libc::SOL_SOCKET as u64);
            sizes.push(rule(&[level, (2, Op::Eq, option as u64)])?);
        }
        let no_effect = Rules::from([(libc::SYS_setsockopt, sizes)]);
        filters.push((no_effect, SeccompAction::Errno(0)));
    }
    let refuse = SeccompAction::Errno(libc::EOPNOTSUPP as u32);
    filters.push((unsupported, refuse));
    Ok(filters)
}
