//! User ids inside: user and group 1000, for any user that runs the host's process.

use nix::sys::prctl;
use nix::unistd::{Gid, Pid, Uid, getegid, geteuid, setgroups, setresgid, setresuid};

use super::error::{JailError, Result, StepContext};

/// User and group of tools inside namespaces.
pub(super) const INSIDE: u32 = 1000;

/// Writes the id maps. Without root privileges, 1000 maps to the host's user. As root, 1000 maps to `owner`, a user
/// without an account, and root is mapped only until the jail is set up.
pub(super) fn write_maps(supervisor: Pid, owner: Option<u32>) -> Result<()> {
    let file = |name: &str, content: &str| {
        std::fs::write(format!("/proc/{supervisor}/{name}"), content)
            .doing(format_args!("write {name}"))
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

/// Privileges of root to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetainedPrivileges {
    Nothing,
    /// Keep the right to enter folders above those that Landlock allows, such as root's home, after a change of user.
    Search,
}

const CAP_DAC_READ_SEARCH: u32 = 2;

/// Permanently drops all privileges except those in `keep`. `switch` is a user to become first (needs root).
pub(super) fn drop_privileges(switch: Option<u32>, keep: RetainedPrivileges) -> Result<()> {
    let search = switch.is_some() && keep == RetainedPrivileges::Search;
    for capability in (0..64).filter(|capability| !(search && *capability == CAP_DAC_READ_SEARCH)) {
        // SAFETY: plain numbers; EINVAL for capabilities that the kernel does not have.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    if let Some(id) = switch {
        // SAFETY: plain numbers. Otherwise the change of user would clear the capability to keep.
        unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, libc::c_ulong::from(search), 0, 0, 0) };
        setgroups(&[]).doing("drop groups")?;
        let group = Gid::from_raw(id);
        setresgid(group, group, group).doing("change group")?;
        let user = Uid::from_raw(id);
        setresuid(user, user, user).doing("change user")?;
    }
    let capabilities = if search { 1 << CAP_DAC_READ_SEARCH } else { 0 };
    set_capabilities(capabilities).doing("drop capabilities")?;
    if search {
        // SAFETY: plain numbers. Started programs inherit the capability through the ambient set.
        let raised = unsafe {
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE,
                libc::c_ulong::from(CAP_DAC_READ_SEARCH),
                0,
                0,
            )
        };
        if raised != 0 {
            return Err(JailError::last("keep the right to enter folders"));
        }
    }
    prctl::set_no_new_privs().doing("set no_new_privs")?;
    prctl::set_dumpable(false).doing("hide the supervisor")
}

/// Sets exactly these of the first 32 capabilities.
fn set_capabilities(capabilities: u32) -> std::io::Result<()> {
    // _LINUX_CAPABILITY_VERSION_3, this process; effective, permitted and inheritable, twice 32 bits.
    let header: [u32; 2] = [0x2008_0522, 0];
    let sets = [capabilities, capabilities, capabilities, 0, 0, 0];
    // SAFETY: both arrays have the layout and size that version 3 asks for and outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
