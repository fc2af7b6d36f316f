//! Stages that pipelines are made of: one file each.

mod judge;
mod retrieve;
mod write;

pub use judge::judge;
pub use retrieve::{CODE_TOKENS, retrieve};
pub use write::{
    Draft, ReplyFormat, SAMPLE_TEMPERATURE, SAMPLES, system_and_user, write, write_and_hand_in,
};
