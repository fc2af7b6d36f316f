//! Replies of a jail's supervisor, as read by the host.
#![no_main]

use testwright_fuzz::{block_on, bounded_target};
use testwright_sandboxes::local::protocol::read_reply;

bounded_target!(fixed: 256 << 10, per_byte: 32, |data: &[u8]| {
    block_on(async {
        let mut stream = data;
        while read_reply(&mut stream).await.is_ok() {}
    });
});
