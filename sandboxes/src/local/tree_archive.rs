//! Archives folders that jailed processes may have written. Links are not followed, and a file with several names is
//! stored once.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Adds everything below `folder` as `name`, except sockets, pipes and devices.
pub(super) fn append_tree(
    archive: &mut tar::Builder<impl Write>,
    name: &Path,
    folder: &Path,
) -> io::Result<()> {
    archive.append_dir(name, folder)?;
    let mut stored: HashMap<(u64, u64), PathBuf> = HashMap::new();
    let mut waiting = vec![(name.to_owned(), folder.to_owned())];
    while let Some((name, folder)) = waiting.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (name, path) = (name.join(entry.file_name()), entry.path());
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                archive.append_dir(&name, &path)?;
                waiting.push((name, path));
            } else if !metadata.is_file() && !metadata.is_symlink() {
                continue;
            } else if metadata.nlink() == 1 || metadata.is_symlink() {
                archive.append_path_with_name(&path, &name)?;
            } else if let Some(first) = stored.get(&(metadata.dev(), metadata.ino())) {
                let mut header = tar::Header::new_gnu();
                header.set_metadata(&metadata);
                header.set_entry_type(tar::EntryType::Link);
                header.set_size(0);
                archive.append_link(&mut header, &name, first)?;
            } else {
                archive.append_path_with_name(&path, &name)?;
                stored.insert((metadata.dev(), metadata.ino()), name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn hard_links_are_stored_once() {
        let place = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| place.path().join(name));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("file"), vec![b'x'; 100_000]).unwrap();
        for number in 0..20 {
            fs::hard_link(from.join("file"), from.join(format!("sub/{number}"))).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", from.join("link")).unwrap();
        fs::hard_link(from.join("link"), from.join("other-link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();

        let mut archive = tar::Builder::new(Vec::new());
        archive.follow_symlinks(false);
        append_tree(&mut archive, Path::new("."), &from).unwrap();
        let bytes = archive.into_inner().unwrap();
        assert!(bytes.len() < 200_000, "{}", bytes.len());

        tar::Archive::new(bytes.as_slice()).unpack(&to).unwrap();
        assert_eq!(fs::read(to.join("sub/7")).unwrap().len(), 100_000);
        assert_eq!(fs::metadata(to.join("file")).unwrap().nlink(), 21);
        for name in ["link", "other-link"] {
            assert_eq!(fs::read_link(to.join(name)).unwrap(), Path::new("nowhere"));
        }
        assert!(!to.join("socket").exists());
    }
}
