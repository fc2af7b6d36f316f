//! Security tests with small hostile inputs that the tests create themselves. Each test failed before its vulnerability
//! was fixed.

mod git;
pub(crate) mod images;
mod jail_calls;
mod jail_in_place;
mod jail_limits;
mod jail_own_files;
mod jail_states;
mod jail_uncounted;
mod jail_users;
mod network;
mod network_index;
