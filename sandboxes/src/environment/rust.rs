//! Rust for packages that are compiled with it: the host's toolchain, read-only, and access to Rust's package index.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use super::BuildSettings;
use crate::programs::command_outside_cwd;
use crate::repository::{Source, Tree};
use crate::sandbox::{Backend, Result};

/// Rust's package index and its downloads. Like PyPI, they only serve published packages.
const INDEX_HOSTS: [&str; 2] = ["index.crates.io", "static.crates.io"];

/// Rust's own releases, which build tools download if there is no toolchain.
const RELEASES_HOST: &str = "static.rust-lang.org";

/// Build tools that call cargo.
const BUILD_TOOLS: [&str; 4] = [
    "maturin",
    "setuptools-rust",
    "setuptools_rust",
    "hatch-rust",
];

/// Maximum bytes of a file that is searched for build tools.
const MAX_FILE_LEN: u64 = 1 << 20;

/// Adds Rust's hosts to those that a build may reach, if the code is compiled with Rust.
pub(super) fn with_hosts(settings: &BuildSettings, source: &Source) -> Result<BuildSettings> {
    let mut settings = settings.clone();
    if is_needed(&source.tree()?)? {
        let hosts = INDEX_HOSTS.into_iter().chain([RELEASES_HOST]);
        settings.allowed_hosts.extend(hosts.map(str::to_owned));
    }
    Ok(settings)
}

/// Returns whether the repository has a package that is compiled with Rust.
pub(super) fn is_needed(tree: &Tree) -> Result<bool> {
    let is_near = |path: &&str| path.matches('/').count() <= 2;
    let named = |path: &str, name: &str| path.rsplit('/').next() == Some(name);
    if !tree
        .paths()
        .filter(is_near)
        .any(|path| named(path, "Cargo.toml"))
    {
        return Ok(false);
    }
    let builds = ["pyproject.toml", "setup.py", "setup.cfg"];
    for path in tree.paths().filter(is_near) {
        if !builds.iter().any(|name| named(path, name)) || tree.is_larger(path, MAX_FILE_LEN) {
            continue;
        }
        let text = tree.text(path)?.unwrap_or_default();
        if BUILD_TOOLS.iter().any(|tool| text.contains(tool)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the folder of the host's Rust toolchain, if sandboxes of this backend can use it and do not see it already.
pub(super) fn toolchain(backend: &dyn Backend) -> Option<&'static Path> {
    static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(find);
    let folder = FOLDER.as_deref().filter(|_| backend.name() == "local")?;
    (!folder.starts_with("/usr")).then_some(folder)
}

/// Asks the host's compiler for its folder, which has `bin/cargo` and everything that belongs to it.
fn find() -> Option<PathBuf> {
    let home = std::env::home_dir().unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from);
    let candidates = [PathBuf::from("rustc"), cargo_home.join("bin/rustc")];
    let folder = candidates.iter().find_map(|rustc| {
        let answer = command_outside_cwd(rustc)
            .args(["--print", "sysroot"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|answer| answer.status.success())?;
        let folder = String::from_utf8(answer.stdout).ok()?;
        std::fs::canonicalize(folder.trim()).ok()
    })?;
    // The folder becomes visible inside, so it must contain no more than the toolchain.
    let fits = folder.join("bin/cargo").is_file()
        && folder.join("lib/rustlib").is_dir()
        && !home.starts_with(&folder);
    fits.then_some(folder)
}
