//! Code that means harm, as small hostile inputs that the tests make themselves: what it tries, and that it gets nowhere.
//! Each test was seen to fail before the hole was closed.

mod git;
pub mod images;
mod jail_calls;
mod jail_in_place;
mod jail_limits;
mod jail_own_files;
mod jail_states;
mod jail_uncounted;
mod jail_users;
mod network;
mod network_index;
