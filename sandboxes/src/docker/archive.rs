//! Tar archives, the only format in which an engine accepts files.

#![allow(unreachable_pub)] // fuzz targets use these items

use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use futures::Stream;
use tokio::sync::mpsc;

/// User and group ids that own a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub uid: u64,
    pub gid: u64,
}

impl Ids {
    pub const ROOT: Ids = Ids { uid: 0, gid: 0 };

    /// Parses `UID` or `UID:GID`.
    pub fn parse(user: &str) -> Option<Ids> {
        let (uid, gid) = user.split_once(':').unwrap_or((user, user));
        Some(Ids {
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }
}

fn header(kind: tar::EntryType, mode: u32, ids: Ids) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(ids.uid);
    header.set_gid(ids.gid);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    header.set_mtime(now.as_secs());
    header.set_size(0);
    header
}

pub(super) fn folders(list: &[(&Path, Ids)]) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, ids) in list {
        append_folder(&mut builder, path, *ids)?;
    }
    builder.into_inner()
}

fn append_folder(builder: &mut tar::Builder<impl Write>, path: &Path, ids: Ids) -> io::Result<()> {
    let mut header = header(tar::EntryType::Directory, 0o755, ids);
    builder.append_data(&mut header, path, io::empty())
}

/// Returns an archive with a file and the parent folders that `path` names.
pub(super) fn file(path: &Path, content: &[u8], mode: u32, ids: Ids) -> io::Result<Vec<u8>> {
    let mut archive = Vec::new();
    write_file(path, content, content.len() as u64, mode, ids, &mut archive)?;
    Ok(archive)
}

fn write_file(
    path: &Path,
    content: impl io::Read,
    size: u64,
    mode: u32,
    ids: Ids,
    out: impl Write,
) -> io::Result<()> {
    let above: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .filter(|p| !p.as_os_str().is_empty())
        .collect();
    let mut archive = tar::Builder::new(out);
    for folder in above.into_iter().rev() {
        append_folder(&mut archive, folder, ids)?;
    }
    let mut header = header(tar::EntryType::Regular, mode, ids);
    header.set_size(size);
    archive.append_data(&mut header, path, content)?;
    archive.into_inner()?.flush()
}

/// Returns the same archive for a file on the host, as a stream.
pub(super) fn file_on_host(
    from: &Path,
    path: PathBuf,
    mode: u32,
    ids: Ids,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let from = from.to_owned();
    stream_from_writer(move |out| {
        let file = std::fs::File::open(from)?;
        let size = file.metadata()?.len();
        write_file(&path, io::Read::take(file, size), size, mode, ids, out)
    })
}

/// Streams the archive in a file, with each entry below `folder` and owned by `ids`.
pub(super) fn owned(
    archive: &Path,
    folder: PathBuf,
    ids: Ids,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let archive = archive.to_owned();
    stream_from_writer(move |out| rewrite(&archive, &folder, ids, out))
}

/// Returns the output of a writing thread as a stream.
pub(super) fn stream_from_writer(
    write: impl FnOnce(io::BufWriter<Channel>) -> io::Result<()> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let (sender, mut receiver) = mpsc::channel(8);
    tokio::task::spawn_blocking(move || {
        let out = io::BufWriter::with_capacity(1 << 16, Channel(sender.clone()));
        if let Err(error) = write(out) {
            // Sending fails only if the receiver is gone.
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures::stream::poll_fn(move |context| receiver.poll_recv(context))
}

/// Writes the archive with its entries below a folder, and with other owners.
///
/// # Errors
///
/// Fails if the archive cannot be read or is damaged, or if writing fails.
pub fn rewrite(archive: &Path, folder: &Path, ids: Ids, out: impl Write) -> io::Result<()> {
    let mut builder = tar::Builder::new(out);
    if !folder.as_os_str().is_empty() {
        append_folder(&mut builder, folder, ids)?;
    }
    let file = std::fs::File::open(archive)?;
    let length = file.metadata()?.len();
    for entry in tar::Archive::new(file).entries()? {
        let mut entry = entry?;
        check_size(&entry, length)?;
        let inside: PathBuf = entry
            .path()?
            .components()
            .filter(|c| !matches!(c, Component::RootDir | Component::CurDir))
            .collect();
        let mut header = entry.header().clone();
        if header.entry_type() == tar::EntryType::XGlobalHeader || inside.as_os_str().is_empty() {
            continue;
        }
        header.set_uid(ids.uid);
        header.set_gid(ids.gid);
        header.set_size(entry.size());
        let path = folder.join(inside);
        match entry.link_name()?.map(|target| target.into_owned()) {
            Some(target) if header.entry_type() == tar::EntryType::Link => {
                builder.append_link(&mut header, path, folder.join(target))?;
            }
            Some(target) => builder.append_link(&mut header, path, target)?,
            None => builder.append_data(&mut header, path, &mut entry)?,
        }
    }
    builder.into_inner()?.flush()
}

/// Checks the size of an entry. A sparse file may claim any size, and reading it would yield that many zeros.
fn check_size(entry: &tar::Entry<'_, impl io::Read>, archive: u64) -> io::Result<()> {
    if entry.size() > archive {
        let message = "a file in it is larger than the archive";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(())
}

pub(super) struct Channel(mpsc::Sender<io::Result<Bytes>>);

impl Write for Channel {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0
            .blocking_send(Ok(Bytes::copy_from_slice(data)))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Content of the first entry of an archive.
pub enum FirstEntry {
    File(Vec<u8>),
    Link(PathBuf),
    Other,
}

/// Reads the first entry of an archive.
///
/// # Errors
///
/// Fails if the archive is damaged.
pub fn first(archive: &[u8]) -> io::Result<FirstEntry> {
    let length = archive.len() as u64;
    let mut archive = tar::Archive::new(archive);
    let Some(entry) = archive.entries()?.next() else {
        return Ok(FirstEntry::Other);
    };
    let mut entry = entry?;
    check_size(&entry, length)?;
    match entry.header().entry_type() {
        tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
            let mut content = Vec::new();
            io::Read::read_to_end(&mut entry, &mut content)?;
            Ok(FirstEntry::File(content))
        }
        tar::EntryType::Symlink => {
            let target = entry.link_name()?.map(|target| target.into_owned());
            Ok(target.map_or(FirstEntry::Other, FirstEntry::Link))
        }
        _ => Ok(FirstEntry::Other),
    }
}

#[cfg(test)]
mod tests;
