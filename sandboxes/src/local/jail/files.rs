//! Transfers files in and out, in a process of the jail. Links resolve as they do inside, and written files belong to
//! the user inside.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::protocol::NOT_FOUND;
use super::super::tree_archive::append_tree;

/// An exit code, and the message for standard error.
pub(super) type TaskFailure = (i32, String);

fn failure(what: &str, path: &Path) -> impl Fn(io::Error) -> TaskFailure {
    let about = format!("{what} {}", path.display());
    move |e| {
        let code = if e.kind() == ErrorKind::NotFound {
            NOT_FOUND
        } else {
            1
        };
        (code, format!("{about}: {e}"))
    }
}

/// Writes a file atomically, so that no process sees an incomplete file or a busy program.
pub(super) fn upload(path: &Path, mode: u32) -> Result<(), TaskFailure> {
    let failed = failure("write", path);
    let folder = path
        .parent()
        .ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?;
    fs::create_dir_all(folder).map_err(&failed)?;
    if path.is_dir() {
        return Err(failed(ErrorKind::IsADirectory.into()));
    }
    // A link stands for its target.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let aside = aside(&target);
    let written = (|| {
        let mut file = File::create_new(&aside)?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        fs::rename(&aside, &target)
    })();
    written.map_err(|e| {
        let _ = fs::remove_file(&aside);
        failed(e)
    })
}

fn aside(target: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    target.with_file_name(name)
}

pub(super) fn unpack(folder: &Path) -> Result<(), TaskFailure> {
    let failed = failure("unpack into", folder);
    fs::create_dir_all(folder).map_err(&failed)?;
    let mut archive = tar::Archive::new(io::BufReader::with_capacity(1 << 18, io::stdin().lock()));
    archive.set_preserve_permissions(true);
    archive.set_preserve_mtime(true);
    archive.set_overwrite(true);
    archive.unpack(folder).map_err(|e| {
        let cause = std::error::Error::source(&e)
            .map(|s| format!(": {s}"))
            .unwrap_or_default();
        (1, format!("unpack into {}: {e}{cause}", folder.display()))
    })
}

pub(super) fn download(path: &Path) -> Result<(), TaskFailure> {
    let failed = failure("read", path);
    let mut file = File::open(path).map_err(&failed)?;
    let metadata = file.metadata().map_err(&failed)?;
    if metadata.is_dir() {
        return Err(failed(ErrorKind::IsADirectory.into()));
    }
    let mut out = io::stdout().lock();
    io::copy(&mut file, &mut out).map_err(&failed)?;
    out.flush().map_err(failed)
}

pub(super) fn pack(folder: &Path) -> Result<(), TaskFailure> {
    let failed = failure("pack", folder);
    let mut archive = tar::Builder::new(io::BufWriter::with_capacity(1 << 18, io::stdout().lock()));
    archive.follow_symlinks(false);
    append_tree(&mut archive, Path::new("."), folder).map_err(&failed)?;
    archive
        .into_inner()
        .and_then(|mut out| out.flush())
        .map_err(failed)
}
