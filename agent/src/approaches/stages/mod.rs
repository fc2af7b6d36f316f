//! Stages that pipelines consist of, one file each.

mod judge;
mod retrieve;
mod write;

pub(super) use judge::judge;
pub(super) use retrieve::{CODE_TOKENS, retrieve};
pub(super) use write::{
    Draft, SAMPLE_TEMPERATURE, SAMPLES, ask, system_and_user, user_message, write,
    write_and_hand_in,
};
