//! The toolbox program, embedded: one file to ship, and host and sandbox never differ in version.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A static executable for the architecture that this program was built for. Not a `const`: each use would be a copy.
pub static TOOLBOX: &[u8] = include_bytes!(env!("TESTWRIGHT_TOOLBOX"));

/// SHA-256 of [`TOOLBOX`], hex.
pub static DIGEST: LazyLock<String> = LazyLock::new(|| {
    Sha256::digest(TOOLBOX)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
});
