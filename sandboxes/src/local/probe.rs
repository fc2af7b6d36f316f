//! Finds the available isolation by setting up a jail, not by checking versions.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::protocol::{self, Isolation, Overlay, Reply, Setup};
use super::state_store::Cache;
use super::{LocalSettings, SANDBOX_UID};
use crate::error::SandboxError;
use crate::sandbox::{Limits, Result};

/// Capabilities of this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub isolation: Isolation,
    /// Whether saved workspaces can be overlaid instead of copied.
    pub overlay: bool,
    /// Whether a control group counts the memory of all processes together.
    pub memory_is_counted: bool,
}

const NO_ISOLATION: Probe = Probe {
    isolation: Isolation::None,
    overlay: false,
    memory_is_counted: false,
};

pub(super) fn choose(settings: &LocalSettings, cache: &Cache) -> Result<Probe> {
    let candidates = match settings.force {
        Some(Isolation::None) => return Ok(NO_ISOLATION),
        Some(one) => vec![one],
        None if settings.in_container => vec![Isolation::Namespaces, Isolation::Landlock],
        None => vec![Isolation::Namespaces],
    };
    let mut reasons = Vec::new();
    for isolation in candidates {
        if isolation == Isolation::Namespaces
            && let Ok(probe) = attempt(settings, cache, isolation, true)
        {
            return Ok(probe);
        }
        match attempt(settings, cache, isolation, false) {
            Ok(probe) => return Ok(probe),
            Err(e) => reasons.push(format!("{isolation:?}: {e}").to_lowercase()),
        }
    }
    if settings.no_isolation && settings.force.is_none() {
        return Ok(NO_ISOLATION);
    }
    let message = format!("isolate processes on this machine ({})", reasons.join("; "));
    Err(SandboxError::unavailable(message).hint(
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0; on Ubuntu \
         kernel.apparmor_restrict_unprivileged_userns=0), or use --sandbox docker (Docker or Podman), --sandbox \
         landlock (reduced isolation) or, only for code that you trust, --no-isolation",
    ))
}

fn attempt(
    settings: &LocalSettings,
    cache: &Cache,
    isolation: Isolation,
    overlay: bool,
) -> Result<Probe> {
    let trial = cache.new_sandbox("probe")?;
    let result = set_up(settings, &trial.folder, isolation, overlay);
    trial.remove()?;
    Ok(Probe {
        isolation,
        overlay,
        memory_is_counted: result?,
    })
}

/// Sets up a jail, and returns whether a control group counts its memory.
fn set_up(
    settings: &LocalSettings,
    folder: &std::path::Path,
    isolation: Isolation,
    overlay: bool,
) -> Result<bool> {
    let here = |name: &str| folder.join(name);
    for name in ["root", "lower", "upper", "work"] {
        std::fs::create_dir(here(name))?;
    }
    let root = nix::unistd::geteuid().is_root();
    let setup = Setup {
        isolation,
        host_port: None,
        root: here("root"),
        binds: Vec::new(),
        overlay: overlay.then(|| Overlay {
            inside: "/testbed".into(),
            lower: here("lower"),
            upper: here("upper"),
            work: here("work"),
        }),
        owner: (root && isolation != Isolation::None).then_some(SANDBOX_UID),
        building: false,
        limits: Limits::default(),
        env: Default::default(),
    };
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(Duration::from_secs(20)))?;
    let (program, arguments) = settings
        .launcher
        .split_first()
        .ok_or_else(|| SandboxError::unavailable("no launcher is configured"))?;
    let mut keeper = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| SandboxError::unavailable(format!("start {}: {e}", program.display())))?;
    let reply = protocol::write(&mut ours, &setup).and_then(|()| protocol::read(&mut ours));
    drop(ours);
    keeper.wait()?;
    match reply {
        Ok(Reply::Ready {
            memory_is_counted, ..
        }) => Ok(memory_is_counted),
        Ok(Reply::Failed { message }) => Err(SandboxError::unavailable(message)),
        Ok(_) => Err(SandboxError::unavailable(
            "the launcher gave an unexpected answer",
        )),
        Err(e) => Err(SandboxError::unavailable(format!(
            "the launcher did not answer: {e}"
        ))),
    }
}
