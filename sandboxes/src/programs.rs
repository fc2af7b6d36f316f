//! Programs of the host. They are started away from the current folder, which may be a stranger's repository, and are
//! never looked up in it: a relative part of PATH (`.`, `bin`, an empty one) leads there.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are looked up if no part of PATH can be used; an empty PATH would mean the current folder.
const FALLBACK: &str = "/usr/local/bin:/usr/bin:/bin";

fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    absolute_parts(&path)
}

/// PATH without its relative parts.
fn absolute_parts(path: &OsStr) -> OsString {
    let parts = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    match std::env::join_paths(parts) {
        Ok(path) if !path.is_empty() => path,
        _ => FALLBACK.into(),
    }
}

/// All files of this name on the PATH, in its order.
pub(crate) fn named(name: &str) -> Vec<PathBuf> {
    std::env::split_paths(&search_path())
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file())
        .collect()
}

/// A program by its name, or by an absolute path. What it starts in turn is looked up by the same PATH. Where there is
/// no such program, starting it fails with `NotFound`.
pub(crate) fn program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let path = search_path();
    // A name is looked up in the PATH that is set here. Where none is, starting takes no fork of this process.
    if std::env::var_os("PATH").as_ref() != Some(&path) {
        command.env("PATH", path);
    }
    command
}

/// The same, started away from the current folder: Python imports modules from there (a `uv.py`, a `pip/`), and version
/// managers and uv itself read files there.
pub fn outside(name: impl AsRef<OsStr>) -> Command {
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
    fn relative_parts_of_the_path_are_left_out() {
        for (path, left) in [
            ("/usr/bin:/bin", "/usr/bin:/bin"),
            (":.:/usr/bin::bin:../x:/bin:", "/usr/bin:/bin"),
            ("", FALLBACK),
            (".:", FALLBACK),
        ] {
            assert_eq!(absolute_parts(path.as_ref()), left, "{path}");
        }
    }
}
