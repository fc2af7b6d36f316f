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
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    header.set_mtime(now.map(|d| d.as_secs()).unwrap_or_default());
    header.set_size(0);
    header
}

pub(super) fn folders(list: &[(&Path, Ids)]) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, ids) in list {
        builder.append_data(
            &mut header(tar::EntryType::Directory, 0o755, *ids),
            path,
            io::empty(),
        )?;
    }
    builder.into_inner()
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
    let list: Vec<(&Path, Ids)> = above.into_iter().rev().map(|p| (p, ids)).collect();
    let mut archive = tar::Builder::new(out);
    for (path, ids) in list {
        archive.append_data(
            &mut header(tar::EntryType::Directory, 0o755, ids),
            path,
            io::empty(),
        )?;
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
    let (sender, receiver) = mpsc::channel(8);
    tokio::task::spawn_blocking(move || {
        let out = io::BufWriter::with_capacity(1 << 16, Channel(sender.clone()));
        if let Err(error) = write(out) {
            // Sending fails only if the receiver is gone.
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures::stream::unfold(receiver, |mut receiver| async {
        let chunk = receiver.recv().await?;
        Some((chunk, receiver))
    })
}

/// Writes the archive with its entries below a folder, and with other owners.
///
/// # Errors
///
/// Fails if the archive cannot be read or is damaged, or if writing fails.
pub fn rewrite(archive: &Path, folder: &Path, ids: Ids, out: impl Write) -> io::Result<()> {
    let mut builder = tar::Builder::new(out);
    if !folder.as_os_str().is_empty() {
        builder.append_data(
            &mut header(tar::EntryType::Directory, 0o755, ids),
            folder,
            io::empty(),
        )?;
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::StreamExt;

    use super::*;

    fn ids(uid: u64, gid: u64) -> Ids {
        Ids { uid, gid }
    }

    #[test]
    fn users_are_parsed() {
        assert_eq!(Ids::parse("1000"), Some(ids(1000, 1000)));
        assert_eq!(Ids::parse("1:2"), Some(ids(1, 2)));
        assert_eq!(Ids::parse("alice"), None);
    }

    #[test]
    fn file_archive_includes_parent_folders() {
        let tar = file(Path::new("a/b/c.txt"), b"text", 0o640, ids(7, 8)).unwrap();
        let mut archive = tar::Archive::new(&tar[..]);
        let mut listing = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let header = entry.header();
            let (uid, mode) = (header.uid().unwrap(), header.mode().unwrap());
            listing.push(format!("{} {uid} {mode:o}", path.trim_end_matches('/')));
        }
        assert_eq!(listing, ["a 7 755", "a/b 7 755", "a/b/c.txt 7 640"]);
    }

    #[tokio::test]
    async fn archive_gets_new_folder_and_owner() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("in.tar");
        let long = format!("{}/file.py", "d".repeat(180));
        let mut builder = tar::Builder::new(Vec::new());
        let mut plain = header(tar::EntryType::Regular, 0o755, Ids::ROOT);
        plain.set_size(3);
        plain.set_mtime(12345);
        builder.append_data(&mut plain, &long, &b"abc"[..]).unwrap();
        let mut link = header(tar::EntryType::Symlink, 0o777, Ids::ROOT);
        builder
            .append_link(&mut link, "link", "../elsewhere")
            .unwrap();
        std::fs::write(&path, builder.into_inner().unwrap()).unwrap();

        let to = PathBuf::from("to");
        let chunks: Vec<_> = owned(&path, to, ids(1000, 1001)).collect().await;
        let tar: Vec<u8> = chunks
            .into_iter()
            .flat_map(|c| c.unwrap().to_vec())
            .collect();
        let mut archive = tar::Archive::new(&tar[..]);
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let h = entry.header();
            assert_eq!((h.uid().unwrap(), h.gid().unwrap()), (1000, 1001));
            let path = entry.path().unwrap().display().to_string();
            let link = entry.link_name().unwrap().map(|l| l.display().to_string());
            seen.push((
                path.trim_end_matches('/').to_owned(),
                h.mode().unwrap(),
                h.mtime().unwrap(),
                link,
            ));
        }
        assert_eq!(seen[1], (format!("to/{long}"), 0o755, 12345, None));
        assert_eq!(seen[2].0, "to/link");
        assert_eq!(seen[2].3.as_deref(), Some("../elsewhere"));
    }

    #[test]
    fn oversized_sparse_entry_is_refused() {
        // GNU tar writes sparse files in this format: the real size, and the positions of data.
        let mut header = tar::Header::new_gnu();
        header.set_path("large").unwrap();
        header.set_entry_type(tar::EntryType::GNUSparse);
        header.set_mode(0o644);
        header.set_size(0);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.set_real_size(1 << 40);
        gnu.sparse[0].set_offset(1 << 40);
        gnu.sparse[0].set_length(0);
        header.set_cksum();
        let mut tar = header.as_bytes().to_vec();
        tar.extend([0; 1024]);
        assert!(first(&tar).is_err());
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("in.tar");
        std::fs::write(&path, tar).unwrap();
        let written = rewrite(&path, Path::new("to"), Ids::ROOT, io::sink());
        assert!(written.is_err());
    }

    #[tokio::test]
    async fn broken_archive_fails_the_stream() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("in.tar");
        std::fs::write(&path, [b'x'; 1024]).unwrap();
        let chunks: Vec<_> = owned(&path, PathBuf::new(), Ids::ROOT).collect().await;
        assert!(chunks.iter().any(|chunk| chunk.is_err()));
    }
}
