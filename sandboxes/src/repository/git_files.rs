//! Access to the files of an untrusted git folder: only plain files up to a size, never through a link, and never
//! blocking on a pipe.

use std::fs::File;
use std::io::{ErrorKind as Io, Read};
use std::path::Path;

use crate::error::{SandboxError, Shortage};
use crate::plain_file::{self, Links};
use crate::sandbox::Result;

/// Opens a plain file. Returns `None` if the path does not exist or is a folder.
pub(super) fn open(path: &Path, max_bytes: u64) -> Result<Option<File>> {
    if_plain(path, plain_file::open(path, Links::Refuse, max_bytes))
}

fn if_plain<T>(path: &Path, result: std::io::Result<T>) -> Result<Option<T>> {
    result.map(Some).or_else(|e| match e.kind() {
        Io::NotFound | Io::NotADirectory | Io::IsADirectory => Ok(None),
        Io::InvalidData => Err(refused(path, &e.to_string())),
        _ => Err(unreadable(path, &e)),
    })
}

/// Returns the content of a plain file.
pub(super) fn read(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>> {
    if_plain(path, plain_file::read(path, Links::Refuse, max_bytes))
}

/// Returns the trimmed text of a plain file.
pub(super) fn line(path: &Path, max_bytes: u64) -> Result<Option<String>> {
    let content = read(path, max_bytes)?;
    Ok(content.map(|c| String::from_utf8_lossy(&c).trim().to_owned()))
}

/// Copies a plain file. Returns whether it exists.
pub(super) fn copy(from: &Path, to: &Path, max_bytes: u64) -> Result<bool> {
    let Some(file) = open(from, max_bytes)? else {
        return Ok(false);
    };
    let modified = file.metadata()?.modified()?;
    let mut copy = File::create(to)?;
    std::io::copy(&mut file.take(max_bytes), &mut copy)?;
    copy.set_modified(modified)?;
    Ok(true)
}

/// Returns the error for content that git would not create.
pub(super) fn unexpected_content(path: &Path, what: &str) -> SandboxError {
    refused(path, &format!("it {what}"))
}

/// Returns the error for a file or folder that cannot be read. A shortage of this machine says nothing about the
/// repository.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> SandboxError {
    match Shortage::reported_by(error) {
        Some(shortage) => {
            SandboxError::exhausted(shortage, format!("read {}: {error}", path.display()))
        }
        None => unexpected_content(path, &format!("cannot be read: {error}")),
    }
}

fn refused(path: &Path, why: &str) -> SandboxError {
    let text = format!("read {}: {why}", path.display());
    SandboxError::input(text)
        .hint("clone the repository again: its git folder is damaged or was tampered with")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortage_is_no_fault_of_repository() {
        let error = |number| {
            unreadable(
                Path::new("HEAD"),
                &std::io::Error::from_raw_os_error(number),
            )
        };
        let missing = error(libc::EMFILE);
        assert_eq!(missing.shortage(), Some(Shortage::Descriptors));
        assert_eq!(
            missing.message,
            "read HEAD: Too many open files (os error 24)"
        );
        assert_eq!(error(libc::EACCES).shortage(), None);
    }
}
