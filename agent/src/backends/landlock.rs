//! `--sandbox landlock`: reduced isolation, for machines without namespaces and without an engine.

use testwright_sandboxes::local::Isolation;

use super::local::LocalConnector;

pub(super) static LANDLOCK: LocalConnector = LocalConnector {
    name: "landlock",
    description: "Landlock and seccomp: reduced isolation, for machines without namespaces or an engine",
    force: Some(Isolation::Landlock),
};
