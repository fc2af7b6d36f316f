//! Access to the results folder. Files in it are opened without following links, because the folder may contain
//! untrusted files.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use testwright_sandboxes::plain_file::{self, MAX_DOCUMENT};

/// Format version of the JSON files that do not declare their own.
pub const FORMAT: u32 = 1;

/// A record as it is written: with the version of its format. Readers accept records without it.
#[derive(Debug, Serialize)]
pub struct Versioned<T> {
    format: u32,
    #[serde(flatten)]
    record: T,
}

impl<T> Versioned<T> {
    /// Adds the format version to a record, which must be a struct.
    pub fn new(record: T) -> Self {
        Versioned {
            format: FORMAT,
            record,
        }
    }
}

/// Returns whether a path stays below the folder.
pub fn is_below(path: &str) -> bool {
    let mut components = Path::new(path).components();
    !path.is_empty() && components.all(|part| matches!(part, Component::Normal(_)))
}

/// Writes a file atomically: to a temporary file that is then renamed. An existing link is replaced, not followed. The
/// umask of the process applies to `mode`.
///
/// # Errors
///
/// Fails if the temporary file cannot be created, written or renamed.
pub fn write_atomically(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<File> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
        .tempfile_in(path.parent().unwrap_or(path))?;
    write(aside.as_file_mut())?;
    aside.persist(path).map_err(|error| error.error)
}

/// Writes a file atomically, as [`write_atomically`] does.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    write_atomically(path, 0o666, |file| file.write_all(content)).map(drop)
}

/// Serializes records as JSON, one per line.
///
/// # Errors
///
/// Fails if a record cannot be serialized.
pub fn json_lines<'r, T: Serialize + 'r>(
    records: impl IntoIterator<Item = &'r T>,
) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Serializes a value as indented JSON, which ends with a line break.
///
/// # Errors
///
/// Fails if the value cannot be serialized.
pub fn pretty_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Opens the folder of a path below `root`, and returns it with the file name. If `make` is set, missing folders are
/// created.
fn parent<'a>(root: &Path, path: &'a str, make: bool) -> io::Result<(OwnedFd, &'a str)> {
    if !is_below(path) {
        let reason = "the path leads outside of the results folder";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, root, flags, Mode::empty())?;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        if make {
            match mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        folder = openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok((folder, name))
}

/// Reads a file below the folder.
///
/// # Errors
///
/// Fails if the path leads outside of the folder, or is not a regular file of limited size that can be read.
pub fn read_below(root: &Path, path: &str) -> io::Result<Vec<u8>> {
    let (folder, name) = parent(root, path, false)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(&folder, name, flags, Mode::empty())?);
    plain_file::check(&file, MAX_DOCUMENT)?;
    plain_file::read_all(file, MAX_DOCUMENT)
}

/// Writes a new file below the folder, replacing any file of that name.
///
/// # Errors
///
/// Fails if the path leads outside of the folder, or the file cannot be written.
pub fn write_below(root: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    testwright_sandboxes::private::create(root)?;
    let (folder, name) = parent(root, path, true)?;
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::from_raw_mode(0o666))?;
    File::from(file).write_all(content)
}

#[cfg(test)]
mod tests;
