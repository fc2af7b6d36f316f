//! Memory that the kernel holds for a sandbox and that no process has mapped: socket buffers, and System V segments,
//! messages and semaphores. The keeper can see it because it joined the sandbox's namespaces.

use std::fs;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// Bytes of a socket and its file, without its buffers.
const SOCKET_BYTES: u64 = 2048;
/// Bytes of a semaphore, which takes its own cache line.
const SEMAPHORE: u64 = 64;
const MESSAGE: u64 = 64;

/// Bytes that a socket can send before it blocks, with some margin. `SO_SNDBUF` has no effect inside.
pub(super) const SEND_BUFFER: u64 = 256 << 10;
/// Messages from closed senders that a Unix datagram socket holds (`net.unix.max_dgram_qlen`, plus one).
const MAX_DATAGRAMS: u64 = 11;
/// Number of Unix datagram sockets that are open to any sender and not charged. Further ones are charged for full
/// queues, because the kernel does not report what they hold.
const FREE_DATAGRAM_SOCKETS: u64 = 64;

/// Returns the bytes that the kernel reports.
pub(super) fn kernel_bytes() -> u64 {
    system_v() + socket_buffers().unwrap_or(0)
}

/// Returns the bytes of System V objects in this process's namespace. They remain after their last user has ended.
fn system_v() -> u64 {
    let sum = |table: &str, columns: &[(&str, u64)]| -> u64 {
        let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
        let mut lines = text.lines();
        let names: Vec<_> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        lines
            .map(|line| {
                let fields: Vec<_> = line.split_whitespace().collect();
                let bytes = |(name, size): &(&str, u64)| {
                    let column = names.iter().position(|other| other == name)?;
                    Some(fields.get(column)?.parse::<u64>().ok()? * size)
                };
                columns.iter().filter_map(bytes).sum::<u64>()
            })
            .sum()
    };
    sum("shm", &[("rss", 1), ("swap", 1)])
        + sum("msg", &[("cbytes", 1), ("qnum", MESSAGE)])
        + sum("sem", &[("nsems", SEMAPHORE)])
}

/// Returns the bytes of all sockets in this process's network namespace, including those that no process has open.
/// `None` if this kernel does not list them.
pub(super) fn socket_buffers() -> Option<u64> {
    Some(unix_sockets()? + internet_buffers()? + netlink_sockets())
}

/// Returns the bytes of TCP and UDP sockets only.
///
/// To list sockets takes milliseconds, because the kernel searches a table of the sockets of all namespaces. So only
/// those of a protocol in use are listed.
pub(super) fn internet_buffers() -> Option<u64> {
    let counts = fs::read_to_string("/proc/net/sockstat").ok();
    let counts_of_version_6 = fs::read_to_string("/proc/net/sockstat6").unwrap_or_default();
    let counts = counts.map(|counts| counts + &counts_of_version_6);
    let mut sum = 0;
    for (protocol, names) in [
        (libc::IPPROTO_TCP, ["TCP", "TCP6"]),
        (libc::IPPROTO_UDP, ["UDP", "UDP6"]),
    ] {
        // Without the kernel's counts, sockets may be in use.
        if counts.as_ref().is_none_or(|all| is_in_use(all, names)) {
            for family in [libc::AF_INET, libc::AF_INET6] {
                sum += internet_sockets(family as u8, protocol as u8)?;
            }
        }
    }
    Some(sum)
}

/// Returns whether sockets with these names are in use, including those that no process has open.
fn is_in_use(counts: &str, names: [&str; 2]) -> bool {
    counts
        .lines()
        .filter_map(|line| line.split_once(": inuse "))
        .filter(|(name, _)| names.contains(name))
        .any(|(_, rest)| rest.split(' ').next() != Some("0"))
}

/// Sums the fields of a socket's `SK_MEMINFO`.
fn buffers(attribute: &[u8]) -> u64 {
    let field = |index: usize| u64::from(number(attribute, index * 4).unwrap_or(0));
    let (received, sent, forward) = (field(0), field(2).max(field(5)), field(4));
    SOCKET_BYTES + received + sent + forward + field(6) + field(7)
}

fn unix_sockets() -> Option<u64> {
    const SHOW_PEER: u32 = 4;
    const SHOW_MEMORY: u32 = 0x20;
    const PEER: u16 = 2;
    const MEMORY: u16 = 5;
    let mut request = vec![libc::AF_UNIX as u8, 0, 0, 0];
    for word in [u32::MAX, 0, SHOW_PEER | SHOW_MEMORY, 0, 0] {
        request.extend(word.to_ne_bytes());
    }
    let (mut sum, mut open_to_any) = (0, 0);
    list(&request, |socket| {
        let is_datagram = socket.get(1) == Some(&(libc::SOCK_DGRAM as u8));
        let (mut peer, mut memory) = (None, SOCKET_BYTES);
        for (kind, value) in attributes(socket, 16) {
            match kind {
                PEER => peer = number(value, 0),
                MEMORY => memory = buffers(value),
                _ => {}
            }
        }
        sum += memory;
        // Buffers are charged to their sender. A closed sender is not listed, and has no inode.
        match (is_datagram, peer) {
            (false, Some(0)) => sum += SEND_BUFFER,
            (true, Some(0)) => sum += SEND_BUFFER * MAX_DATAGRAMS,
            (true, None) => open_to_any += 1,
            _ => {}
        }
    })?;
    let charged = u64::saturating_sub(open_to_any, FREE_DATAGRAM_SOCKETS);
    Some(sum + charged * SEND_BUFFER * MAX_DATAGRAMS)
}

fn internet_sockets(family: u8, protocol: u8) -> Option<u64> {
    const MEMORY: u16 = 7;
    let mut request = vec![family, protocol, 1 << (MEMORY - 1), 0];
    request.extend(u32::MAX.to_ne_bytes());
    // All zeros match any address.
    request.extend([0; 48]);
    let mut sum = 0;
    list(&request, |socket| {
        sum += attributes(socket, 72)
            .find(|(kind, _)| *kind == MEMORY)
            .map_or(SOCKET_BYTES, |(_, value)| buffers(value));
    })?;
    Some(sum)
}

fn netlink_sockets() -> u64 {
    let table = fs::read_to_string("/proc/net/netlink").unwrap_or_default();
    let bytes = |line: &str| -> Option<u64> {
        let mut fields = line.split_whitespace().skip(4);
        let (received, sent): (u64, u64) =
            (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(SOCKET_BYTES + received + sent)
    };
    table.lines().filter_map(bytes).sum()
}

/// Lists all sockets that match a request, and calls `each` with the description of each. `None` if the kernel does not
/// support the request.
fn list(request: &[u8], mut each: impl FnMut(&[u8])) -> Option<()> {
    const BY_FAMILY: u16 = 20;
    const REQUEST_DUMP: u16 = 0x301;
    const HEADER: usize = 16;
    let asking = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )
    .ok()?;
    let length = u32::try_from(HEADER + request.len()).ok()?;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(request);
    send(asking.as_raw_fd(), &message, MsgFlags::empty()).ok()?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = recv(asking.as_raw_fd(), &mut buffer, MsgFlags::empty()).ok()?;
        let mut rest = buffer.get(..length)?;
        while !rest.is_empty() {
            let length = number(rest, 0)? as usize;
            let one = rest.get(HEADER..length)?;
            match u16::from_ne_bytes([*rest.get(4)?, *rest.get(5)?]) {
                // These are the end of the list, and an error.
                3 => return Some(()),
                2 => return None,
                _ => each(one),
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// Iterates over kind and value of the attributes after the first `skip` bytes.
fn attributes(message: &[u8], skip: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = message.get(skip..).unwrap_or_default();
    std::iter::from_fn(move || {
        let half = |at: usize| Some(u16::from_ne_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
        let (length, kind) = (usize::from(half(0)?), half(2)?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
