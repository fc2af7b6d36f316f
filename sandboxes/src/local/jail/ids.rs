//! Who one is inside: user and group 1000, whoever runs the host's process.

use nix::sys::prctl;
use nix::unistd::{Gid, Pid, Uid, getegid, geteuid, setgroups, setresgid, setresuid};

/// User and group of tools inside namespaces.
pub const INSIDE: u32 = 1000;

/// An unprivileged host: 1000 is its user. Root as host: 1000 is `owner`, a user that nobody has; root stays
/// root only until the jail is set up.
pub fn write_maps(supervisor: Pid, owner: Option<u32>) -> Result<(), String> {
    let file = |name: &str, content: &str| {
        std::fs::write(format!("/proc/{supervisor}/{name}"), content)
            .map_err(|e| format!("write {name}: {e}"))
    };
    match owner {
        Some(owner) => {
            let map = format!("0 0 1\n{INSIDE} {owner} 1\n");
            file("uid_map", &map)?;
            file("gid_map", &map)
        }
        None => {
            file("setgroups", "deny")?;
            file("uid_map", &format!("{INSIDE} {} 1\n", geteuid()))?;
            file("gid_map", &format!("{INSIDE} {} 1\n", getegid()))
        }
    }
}

/// Gives up every privilege for good. `switch`: become that user first (it takes root).
pub fn drop_privileges(switch: Option<u32>) -> Result<(), String> {
    let failed = |what: &'static str| move |e: nix::Error| format!("{what}: {e}");
    for capability in 0..64 {
        // SAFETY: plain numbers; EINVAL for capabilities that the kernel does not have.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    if let Some(id) = switch {
        setgroups(&[]).map_err(failed("drop groups"))?;
        let group = Gid::from_raw(id);
        setresgid(group, group, group).map_err(failed("change group"))?;
        let user = Uid::from_raw(id);
        setresuid(user, user, user).map_err(failed("change user"))?;
    }
    clear_capabilities().map_err(|e| format!("drop capabilities: {e}"))?;
    prctl::set_no_new_privs().map_err(failed("set no_new_privs"))?;
    prctl::set_dumpable(false).map_err(failed("hide the supervisor"))
}

fn clear_capabilities() -> std::io::Result<()> {
    // _LINUX_CAPABILITY_VERSION_3, this process; effective, permitted and inheritable, twice 32 bits.
    let header: [u32; 2] = [0x2008_0522, 0];
    let none = [0u32; 6];
    // SAFETY: both arrays have the layout and size that version 3 asks for and outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
