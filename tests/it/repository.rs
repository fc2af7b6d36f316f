//! Rules for the repository itself.

/// The GitHub Action.
mod action;
/// Crates, folders and their allowed dependencies; names and layout of files.
pub(crate) mod architecture;
/// Files for systemd, Compose and Kubernetes.
mod deployment;
/// The user's guide: its commands, links and generated pages.
mod guide;
/// Output that is generated from lists.
mod lists;
/// Manual pages and completions.
mod manual;
/// Adding a tool, an approach and a backend to a copy takes one file and one line each.
mod samples;
/// Licences and origins of dependencies.
mod supply_chain;
