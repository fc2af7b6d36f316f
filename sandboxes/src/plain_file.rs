//! Opens and reads files by name safely: only plain files, within a size limit, without blocking.
//!
//! A folder with untrusted content can hold a link to `/dev/zero`, a pipe without a writer, or a sparse file of
//! terabytes. This module reads every file that is found by its name; `tests/it/repository/architecture` checks that.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Take};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum bytes of a document that is parsed as a whole.
pub const MAX_DOCUMENT: u64 = 256 << 20;
/// Maximum bytes of a line.
pub const MAX_LINE: usize = 16 << 20;
/// Maximum bytes of a record file that is read line by line.
pub const MAX_RECORDS: u64 = 4 << 30;

/// Maximum time that a pipe may have no writer.
const WRITER_TIMEOUT: Duration = Duration::from_secs(3);

/// Flags for opening files that this program did not just create: a pipe or a terminal must not block it.
pub const FLAGS: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;

/// Whether the name may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Reject links, for names that the program finds in a folder.
    Refuse,
    /// Follow links, for paths that the user gives.
    Follow,
}

/// Opens a plain file of at most `max` bytes.
///
/// # Errors
///
/// `NotFound` and `IsADirectory` as usual. `InvalidData` for links, pipes, sockets, devices and larger files.
pub fn open(path: &Path, links: Links, max: u64) -> io::Result<File> {
    let file = open_any(path, links)?;
    check(&file, max)?;
    Ok(file)
}

/// Opens a record file for reading and appending. Creates it if needed, but never through a link.
///
/// # Errors
///
/// Fails if the file cannot be opened or created, or is a link.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW | FLAGS)
        .open(path)
}

/// Appends a line, with its line end, to a record file and syncs it to disk.
///
/// # Errors
///
/// Fails if the line cannot be written. A full disk may take a part of it, which is removed again.
pub fn append_line(file: &mut File, line: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    let written = io::Write::write_all(file, line).and_then(|()| file.sync_data());
    if written.is_err() {
        // The next line must not join with half of this one.
        let _ = file.set_len(before);
    }
    written
}

/// Checks that an open file is a plain one of at most `max` bytes.
///
/// # Errors
///
/// `IsADirectory` for a folder; `InvalidData` for pipes, sockets, devices and larger files.
pub fn check(file: &File, max: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_plain(&metadata));
    }
    match metadata.len() {
        length if length > max => Err(too_large(length, max)),
        _ => Ok(()),
    }
}

/// Reads a plain file of at most `max` bytes.
///
/// # Errors
///
/// Fails as [`open`] does, or if the file cannot be read.
pub fn read(path: &Path, links: Links, max: u64) -> io::Result<Vec<u8>> {
    read_all(open(path, links, max)?, max)
}

/// Reads a plain UTF-8 file of at most `max` bytes.
///
/// # Errors
///
/// Fails as [`read`] does; `InvalidData` if the text is not UTF-8.
pub fn read_text(path: &Path, links: Links, max: u64) -> io::Result<String> {
    let bytes = read(path, links, max)?;
    String::from_utf8(bytes).map_err(|error| invalid(format!("it is not UTF-8 text: {error}")))
}

/// Reads a stream of at most `max` bytes to its end. A file may have grown since its size was checked.
///
/// # Errors
///
/// Fails if reading fails; `InvalidData` if there are more than `max` bytes.
pub fn read_all(from: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max {
        true => Err(invalid(format!("it has more than {max} bytes, the limit"))),
        false => Ok(bytes),
    }
}

/// Reads at most `max` bytes of a file that the user gives, or of a pipe such as `<(command)` or `/dev/stdin`.
///
/// A pipe is read until all processes close its other end. Devices are rejected, and so is a pipe without a writer.
///
/// # Errors
///
/// Fails if the file cannot be read; `InvalidData` for devices, sockets, larger content, and pipes that have no writer
/// within 3 s.
pub fn read_user_file(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_any(path, Links::Follow)?;
    if file.metadata()?.file_type().is_fifo() {
        return read_pipe(file, max, WRITER_TIMEOUT);
    }
    check(&file, max)?;
    read_all(file, max)
}

/// A reader of the complete lines of a plain file.
pub struct LineReader<R> {
    reader: R,
    line: Vec<u8>,
    number: usize,
    whole: u64,
    max_line: usize,
}

impl LineReader<BufReader<Take<File>>> {
    /// Opens a file of at most `max` bytes that the program found in a folder.
    ///
    /// # Errors
    ///
    /// Fails as the function [`open`] does.
    pub fn open(path: &Path, max: u64) -> io::Result<Self> {
        LineReader::from_file(open(path, Links::Refuse, max)?, max)
    }

    /// Reads the lines of an open file, from its current position.
    ///
    /// # Errors
    ///
    /// Fails as [`check`] does.
    pub fn from_file(file: File, max: u64) -> io::Result<Self> {
        check(&file, max)?;
        Ok(LineReader::new(BufReader::new(file.take(max))))
    }
}

impl<R: BufRead> LineReader<R> {
    /// Reads the lines of a reader, each at most [`MAX_LINE`] bytes long.
    pub fn new(reader: R) -> Self {
        LineReader {
            reader,
            line: Vec::new(),
            number: 0,
            whole: 0,
            max_line: MAX_LINE,
        }
    }

    /// Sets the maximum bytes of a line, [`MAX_LINE`] by default.
    pub fn with_max_line(self, max_line: usize) -> Self {
        LineReader { max_line, ..self }
    }

    /// Returns the next line without its line end, or `None` at the end of the file. A last line without a line end is
    /// not returned, because its writer was interrupted.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read. `InvalidData` if the line is too long.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let limit = self.max_line as u64 + 1;
        let length = (&mut self.reader)
            .take(limit)
            .read_until(b'\n', &mut self.line)?;
        self.number += 1;
        if self.line.pop_if(|last| *last == b'\n').is_some() {
            self.whole += length as u64;
            return Ok(Some(&self.line));
        }
        match length as u64 == limit {
            true => Err(invalid(format!(
                "line {} has more than {} bytes, the limit",
                self.number, self.max_line
            ))),
            false => Ok(None),
        }
    }

    /// Returns the number of the last returned line, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the incomplete last line, once there is no next line.
    pub fn partial_line(&self) -> &[u8] {
        &self.line
    }

    /// Returns the number of bytes up to the end of the last returned line.
    pub fn complete_bytes(&self) -> u64 {
        self.whole
    }
}

fn open_any(path: &Path, links: Links) -> io::Result<File> {
    let no_links = match links {
        Links::Refuse => libc::O_NOFOLLOW,
        Links::Follow => 0,
    };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(FLAGS | no_links)
        .open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if links == Links::Refuse => invalid("it is a symbolic link"),
        // Opening a socket fails with ENXIO.
        Some(libc::ENXIO) => invalid(NOT_PLAIN),
        _ => error,
    })
}

/// Reads a pipe to its end, unless no process opens the other end in time.
fn read_pipe(mut pipe: File, max: u64, timeout: Duration) -> io::Result<Vec<u8>> {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    let mut events = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    let is_silent = poll(&mut events, timeout)? == 0;
    let mut begin = [0; 4096];
    let length = match pipe.read(&mut begin) {
        Ok(0) if is_silent => return Err(invalid("it is a pipe without a writer")),
        // A process holds the other end but has not written yet.
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        other => other?,
    };
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::empty()))?;
    read_all(begin[..length].chain(pipe), max)
}

fn not_plain(metadata: &Metadata) -> io::Error {
    match metadata.is_dir() {
        true => io::Error::new(ErrorKind::IsADirectory, "it is a folder"),
        false => invalid(NOT_PLAIN),
    }
}

const NOT_PLAIN: &str = "it is a pipe, a socket or a device";

fn too_large(length: u64, max: u64) -> io::Error {
    invalid(format!("it has {length} bytes, and the limit is {max}"))
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message.into())
}

#[cfg(test)]
mod tests;
