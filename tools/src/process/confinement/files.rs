//! The Landlock domain: it restricts no reading, and allows writing everywhere except in the toolbox's own folder.
//!
//! Landlock can allow folders, but cannot forbid one inside an allowed folder. So the domain allows the siblings of
//! every folder on the path to the toolbox's folder: all of `/` except `/home`, all of `/home` except the toolbox's
//! folder. `/proc` and `/sys` are left out: tests have nothing to write there, and they hold the settings of other
//! processes.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use crate::config::Config;

/// Returns the domain, whether it blocks signals to the outside, and whether it protects the toolbox's folder from
/// writing.
pub(super) fn domain(config: &Config) -> (Option<OwnedFd>, bool, bool) {
    let version = kernel_version();
    // Landlock ABI 1 refuses every rename from one folder into another.
    if version < 2 {
        return (None, false, false);
    }
    let signals = version >= 6;
    let private = config.private();
    let places = writable(config, &private);
    let ruleset = create_ruleset(places.as_deref());
    let domain: Option<OwnedFd> = ruleset.ok().and_then(Into::into);
    let there = domain.is_some();
    (domain, signals && there, places.is_some() && there)
}

/// Returns the Landlock ABI version; zero or less if the kernel has no Landlock.
fn kernel_version() -> i64 {
    const ASK_FOR_VERSION: u32 = 1;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: asked for its version, the kernel reads no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, ASK_FOR_VERSION) }
}

fn create_ruleset(places: Option<&[PathBuf]>) -> Result<RulesetCreated, RulesetError> {
    // A domain without file and signal rules still prevents tracing outside, but it needs at least one handled right.
    let writing: BitFlags<AccessFs> = match places {
        Some(_) => AccessFs::from_write(ABI::V3),
        None => AccessFs::MakeBlock | AccessFs::Refer,
    };
    let set = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    let everything = [PathBuf::from("/")];
    set.add_rules(path_beneath_rules(places.unwrap_or(&everything), writing))
}

/// Lists the folders that programs may write below; `None` if they need a folder that contains the toolbox's folder.
fn writable(config: &Config, private: &Path) -> Option<Vec<PathBuf>> {
    let private = std::fs::canonicalize(private).ok()?;
    let temporary = std::env::temp_dir();
    let needed = [
        config.workspace.as_path(),
        config.scratch.as_path(),
        temporary.as_path(),
        Path::new("/tmp"),
        Path::new("/var/tmp"),
        Path::new("/dev"),
    ];
    let needed: Vec<PathBuf> = needed
        .iter()
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect();
    if needed.iter().any(|folder| private.starts_with(folder)) {
        return None;
    }
    let mut places = needed;
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let mut below = private.as_path();
    while let Some(folder) = below.parent() {
        // A sandbox that forbids listing the parent folders forbids writing there too.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let beside = entries.map(|entry| entry.path()).filter(|path| {
            path != below && path != Path::new("/proc") && path != Path::new("/sys")
        });
        // A link may still lead to the folder.
        places.extend(beside.filter(|path| {
            std::fs::canonicalize(path)
                .is_ok_and(|real| !private.starts_with(&real) && Some(&real) != own.as_ref())
        }));
        below = folder;
    }
    Some(places)
}
