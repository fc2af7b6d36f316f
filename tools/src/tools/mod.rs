//! One file a tool; the list of them is [`crate::list`].

pub mod submission;
