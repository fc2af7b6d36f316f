//! Frames of a build's relay, as code in its sandbox may send them. The part before the byte 0xff is sent once, the
//! rest repeatedly. The memory of each connection must stay bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testwright_fuzz::{DIVIDER, block_on, peak_allocation};
use testwright_sandboxes::egress::carry_frames;

const ROUNDS: usize = 200;
/// Maximum bytes of one connection: its window, which doubles as it grows, and its buffers.
const MAX_CONNECTION_BYTES: usize = 1 << 20;
const FIXED: usize = 512 << 10;

fuzz_target!(init: testwright_fuzz::handle_stack_overflow(), |data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == DIVIDER);
    let first = parts.next().unwrap_or_default();
    let again = parts.next().unwrap_or_default();
    for is_read in [false, true] {
        let (opened, held) = peak_allocation(|| block_on(carry_frames(first, again, ROUNDS, is_read)));
        let max = FIXED + opened * MAX_CONNECTION_BYTES;
        assert!(held <= max, "{held} bytes were held for {opened} connections");
    }
});
