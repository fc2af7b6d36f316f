//! The Landlock domain: everything may be read as before, and written except the toolbox's own folder.
//!
//! Landlock allows below folders and forbids nothing below them. So what is allowed is what is beside the way to the
//! toolbox's folder: all of `/` but `/home`, all of `/home` but the toolbox's folder. `/proc` and `/sys` are left out:
//! there is nothing in them for tests to write, and the settings of other processes are.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use crate::config::Config;

/// The domain; whether it keeps signals in; whether it keeps the toolbox's folder from being written.
pub fn domain(config: &Config) -> (Option<OwnedFd>, bool, bool) {
    let version = kernel_version();
    // The first version refuses to rename from one folder into another, wherever.
    if version < 2 {
        return (None, false, false);
    }
    let signals = version >= 6;
    let private = config.private();
    let places = writable(config, &private);
    let made = create_ruleset(places.as_deref());
    match made {
        Ok(set) => {
            let domain: Option<OwnedFd> = set.into();
            let there = domain.is_some();
            (domain, signals && there, places.is_some() && there)
        }
        Err(_) => (None, false, false),
    }
}

/// Of Landlock; zero or less where the kernel has none.
fn kernel_version() -> i64 {
    const ASK_FOR_VERSION: u32 = 1;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: asked for its version, the kernel reads no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, ASK_FOR_VERSION) }
}

fn create_ruleset(places: Option<&[PathBuf]>) -> Result<RulesetCreated, RulesetError> {
    // Without files and signals there is still no tracing out of the domain, and that takes one right at least.
    let writing: BitFlags<AccessFs> = match places {
        Some(_) => AccessFs::from_write(ABI::V3),
        None => AccessFs::MakeBlock | AccessFs::Refer,
    };
    let set = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    let Some(places) = places else {
        return set.add_rules(path_beneath_rules([Path::new("/")], writing));
    };
    set.add_rules(path_beneath_rules(places, writing))
}

/// What programs may write below; `None` where the toolbox's folder is in one of the folders that they need.
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
        // Where a sandbox lets nobody list the folders above, it lets nobody write there either.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let beside = entries.map(|entry| entry.path()).filter(|path| {
            path != below && path != Path::new("/proc") && path != Path::new("/sys")
        });
        // A link may lead to the folder after all.
        places.extend(beside.filter(|path| {
            std::fs::canonicalize(path)
                .is_ok_and(|real| !private.starts_with(&real) && Some(&real) != own.as_ref())
        }));
        below = folder;
    }
    Some(places)
}
