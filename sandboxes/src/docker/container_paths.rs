//! Folders of a container.

pub(super) const WORKSPACE: &str = "/testbed";
pub(super) const STORE: &str = "/opt/testwright";
pub(super) const CA_BUNDLE: &str = "/opt/testwright/ca-bundle.pem";

/// All that tools can write to in an image of ours: their own folders, and those that Debian lets everybody use.
pub(super) const WRITABLE: [&str; 5] = [WORKSPACE, "/tmp", "/var/tmp", "/home", "/run/lock"];
