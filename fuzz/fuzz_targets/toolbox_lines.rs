//! Lines of a toolbox, as sent by code that has replaced it.
#![no_main]

use testwright_agent::session::call_answered_by;
use testwright_fuzz::{block_on, bounded_target};

bounded_target!(fixed: 1 << 20, per_byte: 128, |data: &[u8]| {
    let _ = block_on(call_answered_by(data.to_vec()));
});
