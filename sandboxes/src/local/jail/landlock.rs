//! Confinement in place, for machines that forbid user namespaces: Landlock confines file access, seccomp the network.
//!
//! Landlock does not hide that a path exists (stat works); it refuses to open, list, write or execute it. It does not
//! protect modes, owners and times of the same user's files. As root, each sandbox is therefore a separate user;
//! otherwise the keeper makes these calls ([`super::mediation`]).

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use super::super::protocol::Setup;
use super::error::{JailError, Result, StepContext};
use super::namespaces::{ETC_READ_ONLY, SYSTEM};

const READABLE: &[&str] = &[
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];
const WRITABLE: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

pub(super) struct Enforcement {
    /// Protections that the kernel does not support, as texts for people.
    pub missing_protections: Vec<String>,
    pub signals_stay_inside: bool,
    /// Whether it protects files from truncation.
    pub truncates: bool,
}

/// Confines this process and its children.
pub(super) fn apply(setup: &Setup) -> Result<Enforcement> {
    let abi = ABI::V9;
    let read = AccessFs::from_read(abi);
    let all = AccessFs::from_all(abi);
    let system = SYSTEM.iter().chain(ETC_READ_ONLY).chain(READABLE);
    let system = system.map(|path| (Path::new(path), read));
    let devices = WRITABLE.iter().map(|path| (Path::new(path), all));
    let binds = setup.binds.iter();
    let binds = binds.map(|bind| (bind.host.as_path(), if bind.writable { all } else { read }));
    let rules = system
        .chain(devices)
        .chain(binds)
        .flat_map(|(path, access)| path_beneath_rules([path], access));
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|set| set.handle_access(AccessNet::from_all(abi)))
        .and_then(|set| set.scope(Scope::from_all(abi)))
        .and_then(|set| set.create())
        .and_then(|set| set.add_rules(rules))
        .and_then(|set| set.restrict_self())
        .doing("apply Landlock")?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(JailError::new(
            "apply Landlock: the kernel lacks it or has it disabled",
        ));
    }
    let mut lacking = Vec::new();
    let (mut signals_stay_inside, mut truncates) = (false, false);
    if let LandlockStatus::Available { effective_abi, .. } = status.landlock {
        signals_stay_inside = effective_abi >= ABI::V6;
        if !signals_stay_inside {
            lacking.push("signals to outside processes are not blocked".to_owned());
        }
        truncates = effective_abi >= ABI::V3;
        if !truncates {
            lacking.push("readable files can be truncated".to_owned());
        }
    }
    Ok(Enforcement {
        missing_protections: lacking,
        signals_stay_inside,
        truncates,
    })
}
