//! Confinement in place, where user namespaces are forbidden: files by Landlock, the network by seccomp.
//!
//! Landlock does not hide that a path exists (stat works); it refuses to open, list, write or run it. Modes, times and
//! attributes of files of the same user it does not protect: under root the sandbox is a user of its own, and else the
//! sandbox's facts say so.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, NetPort, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use super::super::protocol::Setup;
use super::namespaces::{ETC_NETWORK, ETC_READ_ONLY, SYSTEM};

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

/// What calls that Landlock leaves alone do to files that belong to the user.
pub const OWN_FILES_OUTSIDE: &str =
    "modes, times and extended attributes of the user's files outside are not protected";

pub struct Enforcement {
    /// What the kernel cannot do, for people.
    pub lacking: Vec<String>,
    pub signals_stay_inside: bool,
}

/// Confines this process and all that it starts.
pub fn apply(setup: &Setup) -> Result<Enforcement, String> {
    let failed = |e: landlock::RulesetError| format!("apply Landlock: {e}");
    let abi = ABI::V9;
    let network: &[&str] = if setup.network { ETC_NETWORK } else { &[] };
    let (writable, readable): (Vec<_>, Vec<_>) = setup.binds.iter().partition(|bind| bind.writable);
    let read = AccessFs::from_read(abi);
    let all = AccessFs::from_all(abi);
    let port = setup.host_port.filter(|_| !setup.network);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|set| match port {
            Some(_) => set.handle_access(AccessNet::from_all(abi)),
            None => Ok(set),
        })
        .and_then(|set| set.scope(Scope::from_all(abi)))
        .and_then(|set| set.create())
        .and_then(|set| match port {
            Some(port) => set.add_rule(NetPort::new(port, AccessNet::ConnectTcp)),
            None => Ok(set),
        })
        .and_then(|set| set.add_rules(path_beneath_rules(SYSTEM.iter().chain(ETC_READ_ONLY), read)))
        .and_then(|set| set.add_rules(path_beneath_rules(READABLE.iter().chain(network), read)))
        .and_then(|set| {
            set.add_rules(path_beneath_rules(
                readable.iter().map(|bind| &bind.host),
                read,
            ))
        })
        .and_then(|set| {
            set.add_rules(path_beneath_rules(
                writable.iter().map(|bind| &bind.host),
                all,
            ))
        })
        .and_then(|set| set.add_rules(path_beneath_rules(WRITABLE, all)))
        .and_then(|set| set.restrict_self())
        .map_err(failed)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("apply Landlock: the kernel does not have it or it is switched off".to_owned());
    }
    let mut lacking = Vec::new();
    let mut signals_stay_inside = false;
    if let LandlockStatus::Available { effective_abi, .. } = status.landlock {
        if port.is_some() && effective_abi < ABI::V4 {
            lacking.push("TCP while building is not limited".to_owned());
        }
        signals_stay_inside = effective_abi >= ABI::V6;
        if !signals_stay_inside {
            lacking.push("signals to processes outside are not refused".to_owned());
        }
        if effective_abi < ABI::V3 {
            lacking.push("truncation of files outside is not refused".to_owned());
        }
    }
    Ok(Enforcement {
        lacking,
        signals_stay_inside,
    })
}
