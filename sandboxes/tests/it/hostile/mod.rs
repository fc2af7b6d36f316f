//! Attacks on what the sandboxes promise, as small hostile inputs that the tests make themselves.

mod git;
mod network;
mod network_index;
