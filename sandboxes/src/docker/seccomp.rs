//! The system call filter in the format of engines. [`crate::system_calls`] lists the calls, as for the local backend.
//! The defaults of engines allow more (tracing, new namespaces inside Podman's containers).
//!
//! Docker accepts the filter as text. Podman reads it only from a file on its machine, and its version of Docker's API
//! takes the text for a path. So the filter is written to the user's cache folder, where Podman can read it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::engine::Engine;
use crate::hex::hex;
use crate::system_calls::{self, BY_ARGUMENT, Masked, SystemCall};

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// Returns the security option that sets the filter. `None` if the filter cannot reach the engine, which then uses its
/// own.
pub(super) fn option(engine: &Engine) -> Option<String> {
    if !engine.podman {
        return Some(format!("seccomp={}", profile()));
    }
    if !engine.local {
        return None;
    }
    let written = folder().ok_or_else(|| "the home folder is unknown".to_owned());
    match written.and_then(|folder| write(&folder).map_err(|e| e.to_string())) {
        Ok(path) => Some(format!("seccomp={}", path.display())),
        Err(error) => {
            tracing::warn!(error, "using Podman's own system call filter");
            None
        }
    }
}

/// Returns the folder of filters, which only the user can write.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    std::path::absolute(cache.join("testwright/seccomp")).ok()
}

fn write(folder: &Path) -> std::io::Result<PathBuf> {
    let text = profile().to_string();
    let digest = Sha256::digest(text.as_bytes());
    let path = folder.join(format!("{}.json", hex(&digest[..8])));
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(path);
    }
    crate::private::create(folder)?;
    crate::private::write(&path, text.as_bytes())?;
    Ok(path)
}

fn profile() -> Value {
    let names = |calls: &mut dyn Iterator<Item = SystemCall>| -> Vec<&str> {
        calls.map(|call| call.name()).collect()
    };
    let refuse = |names: Vec<&str>, error: u32, arguments: Value| json!({"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": arguments});
    let allow = |names: Vec<&str>, arguments: Value| json!({"names": names, "action": "SCMP_ACT_ALLOW", "args": arguments});
    let mut rules = vec![
        allow(names(&mut system_calls::allowed()), json!([])),
        refuse(names(&mut system_calls::refused()), EPERM, json!([])),
        refuse(vec!["clone3"], ENOSYS, json!([])),
    ];
    for rule in BY_ARGUMENT {
        let matches = |set: &Masked| json!([{"index": rule.index, "value": set.mask, "valueTwo": set.value, "op": "SCMP_CMP_MASKED_EQ"}]);
        let name = || vec![rule.call.name()];
        let (refused, allowed) = rule.refused.as_masks();
        rules.extend(
            refused
                .iter()
                .map(|set| refuse(name(), rule.error.into(), matches(set))),
        );
        rules.extend(allowed.iter().map(|set| allow(name(), matches(set))));
    }
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": ENOSYS,
        // Only one calling convention is allowed per architecture: 32-bit and x32 programs end at their first call.
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": rules,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn filter_file_is_complete() {
        let home = tempfile::tempdir().unwrap();
        let path = write(home.path()).unwrap();
        let read: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, profile());
        // A truncated file is replaced.
        std::fs::write(&path, "{").unwrap();
        assert_eq!(write(home.path()).unwrap(), path);
        assert!(std::fs::read(&path).unwrap().len() > 1000);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
