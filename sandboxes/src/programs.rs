//! Programs of the host.
//!
//! They start away from the current folder, which may be an untrusted repository, and are never looked up in it:
//! relative parts of PATH (`.`, `bin`, an empty one) are ignored.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Search path if PATH has no usable part; an empty PATH would mean the current folder.
const FALLBACK: &str = "/usr/local/bin:/usr/bin:/bin";

fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    absolute_parts(&path)
}

/// Returns PATH without its relative parts.
fn absolute_parts(path: &OsStr) -> OsString {
    let parts = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    match std::env::join_paths(parts) {
        Ok(path) if !path.is_empty() => path,
        _ => FALLBACK.into(),
    }
}

/// Returns all files of this name on the PATH, in its order.
pub(crate) fn named(name: &str) -> Vec<PathBuf> {
    std::env::split_paths(&search_path())
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file())
        .collect()
}

/// Returns a command for a program, given by name or absolute path. Its child processes use the same filtered PATH. If
/// the program does not exist, starting it fails with `NotFound`.
pub(crate) fn program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let path = search_path();
    // The name is looked up in the PATH set here. If none is set, the program starts without a fork of this process.
    if std::env::var_os("PATH").as_ref() != Some(&path) {
        command.env("PATH", path);
    }
    command
}

/// Returns a command that starts away from the current folder. Python imports modules from the current folder (a
/// `uv.py`, a `pip/`), and version managers and uv itself read files there.
pub fn command_outside_cwd(name: impl AsRef<OsStr>) -> Command {
    let mut command = program(name);
    command
        .current_dir(Path::new("/"))
        .env("PYTHONSAFEPATH", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_path_entries_are_ignored() {
        for (path, expected) in [
            ("/usr/bin:/bin", "/usr/bin:/bin"),
            (":.:/usr/bin::bin:../x:/bin:", "/usr/bin:/bin"),
            ("", FALLBACK),
            (".:", FALLBACK),
        ] {
            assert_eq!(absolute_parts(path.as_ref()), expected, "{path}");
        }
    }
}
