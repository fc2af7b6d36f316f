//! A filter of system calls for engines whose own allows what tools must not do.
//!
//! Docker's default refuses new namespaces to processes without capabilities; Podman's allows them, so that containers
//! can hold containers. Podman reads a filter from a file on its machine only (its version of Docker's API takes the
//! text of a filter for a path), so it is written where Podman reaches it: into the user's cache folder.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::connect::Engine;
use crate::sandbox::Spec;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// System calls that no test needs and that kernels have been broken with, and what only root may do. What a runtime's
/// libseccomp does not know by name it leaves out.
const REFUSED: &[&str] = &[
    "_sysctl",
    "acct",
    "add_key",
    "adjtimex",
    "bpf",
    "chroot",
    "clock_adjtime",
    "clock_adjtime64",
    "clock_settime",
    "clock_settime64",
    "create_module",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_kernel_syms",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mount",
    "mount_setattr",
    "move_mount",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "open_tree_attr",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "query_module",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "setns",
    "settimeofday",
    "stime",
    "swapoff",
    "swapon",
    "syslog",
    "umount",
    "umount2",
    "unshare",
    "uselib",
    "userfaultfd",
    "vhangup",
    "vm86",
    "vm86old",
];

/// Mounts, control groups, names, messages, users, processes, network: `CLONE_NEW…`.
const NEW_NAMESPACES: [u32; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

/// The security option that hands in the filter; `None` where the engine's own is as good, or ours cannot reach it.
pub(super) fn option(engine: &Engine, spec: &Spec) -> Option<String> {
    if !engine.podman || !engine.local || spec.root {
        return None;
    }
    let written = folder().ok_or_else(|| "there is no home folder".to_owned());
    match written.and_then(|folder| write(&folder).map_err(|e| e.to_string())) {
        Ok(path) => Some(format!("seccomp={}", path.display())),
        Err(error) => {
            tracing::warn!(error, "Podman's own filter of system calls is used");
            None
        }
    }
}

/// Nobody else may be able to write there.
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
    let digits: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let path = folder.join(format!("{digits}.json"));
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(path);
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let aside = folder.join(format!("{}.new", super::container::unique()));
    std::fs::write(&aside, text)?;
    std::fs::rename(&aside, &path)?;
    Ok(path)
}

fn profile() -> Value {
    let refuse = |names: &[&str], error: u32, arguments: Value| {
        json!({
            "names": names,
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": error,
            "args": arguments,
        })
    };
    let mut rules = vec![
        refuse(REFUSED, EPERM, json!([])),
        // Its flags lie in memory, out of a filter's sight: "not there" makes libc fall back to clone.
        refuse(&["clone3"], ENOSYS, json!([])),
    ];
    for flag in NEW_NAMESPACES {
        let set =
            json!([{"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}]);
        rules.push(refuse(&["clone"], EPERM, set));
    }
    json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_file_is_whole_and_written_once() {
        let home = tempfile::tempdir().unwrap();
        let path = write(home.path()).unwrap();
        let read: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, profile());
        // A file that somebody cut short is not taken.
        std::fs::write(&path, "{").unwrap();
        assert_eq!(write(home.path()).unwrap(), path);
        assert!(std::fs::read(&path).unwrap().len() > 1000);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
