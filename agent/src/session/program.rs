//! The toolbox is this program, by another name: one file to ship, and host and sandbox never differ in version.

use std::path::Path;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;

/// Where this program is, to be put into sandboxes.
pub fn toolbox() -> Result<&'static Path, SandboxError> {
    // Nothing of this machine is in a container.
    if cfg!(not(target_feature = "crt-static")) {
        let what = "this testwright is linked dynamically, and would not start in a sandbox; build it in its own folder, \
                    or with RUSTFLAGS='-C target-feature=+crt-static' and --target host-tuple";
        return Err(SandboxError::new(ErrorKind::System, what));
    }
    // Also when the file has been replaced since.
    Ok(Path::new("/proc/self/exe"))
}
