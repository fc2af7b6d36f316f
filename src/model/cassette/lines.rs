//! Reads a recording line by line. A client may have named the file, or a stranger written it: links, pipes and devices are
//! refused, and the size of a file that is not a recording does not matter.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Take};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Maximum bytes of a recording, and of one line. A reply alone may have 16 MiB.
const MAX_FILE_LEN: u64 = 512 << 20;
const MAX_LINE_LEN: u64 = 64 << 20;

pub struct Lines {
    reader: BufReader<Take<File>>,
    line: Vec<u8>,
}

impl Lines {
    pub fn open(path: &Path) -> io::Result<Lines> {
        // Opening a pipe must not wait for its writer.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refused("it is a link"),
            _ => error,
        })?;
        check(&file.metadata()?)?;
        Ok(Lines {
            reader: BufReader::new(file.take(MAX_FILE_LEN)),
            line: Vec::new(),
        })
    }

    /// The next line without its end; `None` behind the last whole line.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut bounded = (&mut self.reader).take(MAX_LINE_LEN);
        let read = bounded.read_until(b'\n', &mut self.line)?;
        match self.line.pop() {
            Some(b'\n') => Ok(Some(&self.line)),
            _ if read as u64 == MAX_LINE_LEN => Err(refused("a line of it is too long")),
            _ => Ok(None),
        }
    }
}

fn check(file: &Metadata) -> io::Result<()> {
    if !file.is_file() {
        return Err(refused("it is not a plain file"));
    }
    match file.len() > MAX_FILE_LEN {
        true => Err(refused("it is too large")),
        false => Ok(()),
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
