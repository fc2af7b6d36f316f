//! System calls that take disk space or memory faster than a watch can count, or where it cannot see it.

use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompRule as Rule,
};

use super::filter_options::{FilterOptions, Rules};

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
    let is = |index, value: u64| Condition::new(index, Length::Dword, Op::Eq, value);
    let masked =
        |index, mask, value| Condition::new(index, Length::Dword, Op::MaskedEq(mask), value);
    let mut unsupported = Rules::new();
    // Threads may not have separate descriptors, because only those of whole processes are inspected.
    let (thread, files) = (libc::CLONE_THREAD as u64, libc::CLONE_FILES as u64);
    let own_files = Rule::new(vec![masked(0, thread | files, thread)?])?;
    unsupported.insert(libc::SYS_clone, vec![own_files]);
    let unshare = u64::from(libc::CLOSE_RANGE_UNSHARE);
    let own_files = Rule::new(vec![masked(2, unshare, unshare)?])?;
    unsupported.insert(libc::SYS_close_range, vec![own_files]);
    let mut filters = Vec::new();
    if !options.memory_is_counted {
        // A pipe that gets one small page keeps the surrounding huge page.
        unsupported.insert(libc::SYS_vmsplice, vec![]);
        let mut socket = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut conditions = vec![is(0, family as u64)?];
            for protocol in PROTOCOLS {
                let other = Condition::new(2, Length::Dword, Op::Ne, protocol as u64)?;
                conditions.push(other);
            }
            socket.push(Rule::new(conditions)?);
        }
        unsupported.insert(libc::SYS_socket, socket);
        let mut sizes = Vec::new();
        for option in BUFFER_SIZES {
            let level = is(1, libc::SOL_SOCKET as u64)?;
            sizes.push(Rule::new(vec![level, is(2, option as u64)?])?);
        }
        let no_effect = Rules::from([(libc::SYS_setsockopt, sizes)]);
        filters.push((no_effect, SeccompAction::Errno(0)));
    }
    let refuse = SeccompAction::Errno(libc::EOPNOTSUPP as u32);
    filters.push((unsupported, refuse));
    Ok(filters)
}
