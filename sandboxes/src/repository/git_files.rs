//! Reads the files of a stranger's git folder: plain ones up to a size, never through a link, never waiting for a pipe.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as Io, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// A plain file, opened; `None` where there is nothing of that name, or a folder.
pub(super) fn open(path: &Path, most: u64) -> Result<Option<File>> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), Io::NotFound | Io::NotADirectory) => return Ok(None),
        Err(e) if path.is_symlink() => {
            return Err(odd(path, &format!("is a symbolic link ({})", e.kind())));
        }
        Err(e) => return Err(odd(path, &format!("cannot be read: {e}"))),
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Ok(None);
    }
    if !found.is_file() {
        return Err(odd(path, "is a pipe, a socket or a device"));
    }
    if found.len() > most {
        return Err(odd(path, &format!("has {} bytes", found.len())));
    }
    Ok(Some(file))
}

/// The content of a plain file.
pub(super) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = open(path, most)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// One line of text, trimmed.
pub(super) fn line(path: &Path, most: u64) -> Result<Option<String>> {
    let content = read(path, most)?;
    Ok(content.map(|c| String::from_utf8_lossy(&c).trim().to_owned()))
}

/// Copies a plain file; returns whether there was one.
pub(super) fn copy(from: &Path, to: &Path, most: u64) -> Result<bool> {
    let Some(file) = open(from, most)? else {
        return Ok(false);
    };
    let modified = file.metadata()?.modified()?;
    let mut copy = File::create(to)?;
    std::io::copy(&mut file.take(most), &mut copy)?;
    copy.set_modified(modified)?;
    Ok(true)
}

/// Something that git does not make.
pub(super) fn odd(path: &Path, what: &str) -> SandboxError {
    let text = format!("read {}: it {what}", path.display());
    SandboxError::new(ErrorKind::Input, text)
        .hint("the git folder is damaged or was tampered with: clone the repository again")
}
