//! What holds for the repository itself.

/// The GitHub Action.
mod action;
/// Crates, folders and what they may use; how files are named and laid out.
pub mod architecture;
/// Files for systemd, Compose and Kubernetes.
mod deployment;
/// The user's guide: its commands, links and generated pages.
mod guide;
/// A list plus one file for each item.
mod lists;
/// Manual pages and completions.
mod manual;
/// A tool, an approach, a backend … are added to a copy by one file and one line.
mod samples;
/// Licences and origins of dependencies.
mod supply_chain;
