//! A source derived from another one by changing files. The archive is copied entry by entry.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::archive::append_file;
use super::patch_base::{File, FileKind, Files, is_plain};
use super::{Source, Tree, archive_cache};
use crate::error::SandboxError;
use crate::hex::hex;
use crate::sandbox::Result;

impl Source {
    /// Returns the same commit with files replaced, added (mode 0644) or removed (`None`), as a source with its own
    /// digest. Modes are kept. Nothing is written if nothing differs.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read, or the new one cannot be written.
    pub fn with_changes(
        &self,
        files: &BTreeMap<String, Option<Vec<u8>>>,
        cache: &Path,
    ) -> Result<Source> {
        let tree = self.tree()?;
        let file = |(path, content): (&String, &Option<Vec<u8>>)| {
            let place = tree.place(path).filter(|place| place.link.is_none());
            let kind = FileKind::plain(place.is_some_and(|place| place.executable));
            let file = content.clone().map(|content| File { content, kind });
            (path.clone(), file)
        };
        create(self, &tree, files.iter().map(file).collect(), cache)
    }

    /// Returns the same commit with the files that a patch produced, with their kinds.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read, or the new one cannot be written.
    pub fn with_files(&self, files: &Files, cache: &Path) -> Result<Source> {
        create(self, &self.tree()?, files.clone(), cache)
    }
}

fn create(source: &Source, tree: &Tree, mut files: Files, cache: &Path) -> Result<Source> {
    if let Some(path) = files.keys().find(|path| !is_plain(path)) {
        let text = format!("change the file {path}: it is not a valid path in the tree");
        return Err(SandboxError::input(text));
    }
    let mut same = Vec::new();
    for (path, file) in &files {
        if tree.file(path)? == *file {
            same.push(path.clone());
        }
    }
    files.retain(|path, _| !same.contains(path));
    if files.is_empty() {
        return Ok(source.clone());
    }
    let digest = digest(source, &files);
    let folder = cache.join("sources");
    crate::private::create_closed(&folder)?;
    let archive = folder.join(format!("{}.tar", &digest[..32]));
    let mut held = archive_cache::acquire_lease(&archive)?;
    if held.is_none() {
        let aside = tempfile::NamedTempFile::new_in(&folder)?;
        write(source, &files, aside.as_file())?;
        held = archive_cache::store(aside, &archive)?;
    }
    Ok(Source {
        archive,
        digest,
        held,
        ..source.clone()
    })
}

/// Returns the digest of the original source and all changes. Lengths separate adjacent parts.
///
/// The archive's name is included, because it contains the date of the files.
fn digest(source: &Source, files: &Files) -> String {
    let mut digest = Sha256::new();
    let name = source.archive.file_name().unwrap_or_default();
    for part in [source.digest.as_bytes(), name.as_bytes()] {
        digest.update(part);
        digest.update([0]);
    }
    for (path, file) in files {
        digest.update(path.as_bytes());
        digest.update([0]);
        let (kind, content) = match file {
            None => (0, &[][..]),
            Some(file) => (file.kind as u8 + 1, file.content.as_slice()),
        };
        digest.update([kind]);
        digest.update((content.len() as u64).to_be_bytes());
        digest.update(content);
    }
    hex(&digest.finalize())
}

fn write(source: &Source, files: &Files, to: &std::fs::File) -> Result<()> {
    let mut builder = tar::Builder::new(BufWriter::with_capacity(1 << 18, to));
    let from = std::fs::File::open(&source.archive)?;
    let mut time = 0;
    let mut missing: BTreeMap<&str, &File> = files
        .iter()
        .filter_map(|(path, file)| Some((path.as_str(), file.as_ref()?)))
        .collect();
    for entry in tar::Archive::new(BufReader::with_capacity(1 << 18, from)).entries()? {
        let mut entry = entry?;
        time = entry.header().mtime()?;
        let bytes = entry.path_bytes().into_owned();
        let path = String::from_utf8_lossy(&bytes).into_owned();
        match files.get(&path) {
            Some(None) => {}
            Some(Some(file)) => {
                append(&mut builder, Path::new(&path), file, time)?;
                missing.remove(path.as_str());
            }
            None => {
                let mut header = entry.header().clone();
                let path = Path::new(OsStr::from_bytes(&bytes));
                match entry.link_name()?.map(|target| target.into_owned()) {
                    Some(target) => builder.append_link(&mut header, path, target)?,
                    None => builder.append_data(&mut header, path, &mut entry)?,
                }
            }
        }
    }
    for (path, file) in missing {
        append(&mut builder, Path::new(path), file, time)?;
    }
    builder.into_inner()?.flush()?;
    Ok(())
}

fn append(
    builder: &mut tar::Builder<impl Write>,
    path: &Path,
    file: &File,
    time: u64,
) -> Result<()> {
    let content = file.content.as_slice();
    append_file(
        builder,
        path,
        file.kind,
        content,
        content.len() as u64,
        time,
    )
}
