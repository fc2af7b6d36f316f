#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn buffers_of_closed_senders_count() {
    let before = socket_buffers().unwrap();
    let pairs: Vec<_> = (0..64).map(|_| UnixStream::pair().unwrap()).collect();
    for (sender, _) in &pairs {
        sender.set_nonblocking(true).unwrap();
        while (&*sender).write(&[0; 4096]).is_ok() {}
    }
    let min_growth = 64 * 100 * 1024;
    assert!(socket_buffers().unwrap() > before + min_growth);
    let receivers: Vec<_> = pairs.into_iter().map(|(_, receiver)| receiver).collect();
    assert!(socket_buffers().unwrap() > before + min_growth);
    drop(receivers);
    assert!(socket_buffers().unwrap() < before + min_growth);
}

#[test]
fn buffers_of_unaccepted_connections_count() {
    let before = internet_buffers().unwrap();
    let listener = TcpListener::bind("[::1]:0")
        .or_else(|_| TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    sender.set_nonblocking(true).unwrap();
    while sender.write(&[0; 4096]).is_ok() {}
    drop(sender);
    assert!(internet_buffers().unwrap() > before + 100 * 1024);
}

#[test]
fn counts_tell_protocols_in_use() {
    let protocols = |counts: &str| {
        let udp = is_in_use(counts, ["UDP", "UDP6"]);
        (is_in_use(counts, ["TCP", "TCP6"]), udp)
    };
    let unused = "sockets: used 9\nTCP: inuse 0 orphan 0 tw 3 alloc 8 mem 1\nUDP: inuse 0 mem 2\n\
                      UDPLITE: inuse 4\nTCP6: inuse 0\nUDP6: inuse 0\n";
    assert_eq!(protocols(unused), (false, false));
    let tcp = unused.replace("TCP: inuse 0", "TCP: inuse 12");
    assert_eq!(protocols(&tcp), (true, false));
    let version_6 = unused.replace("P6: inuse 0", "P6: inuse 1");
    assert_eq!(protocols(&version_6), (true, true));
}
