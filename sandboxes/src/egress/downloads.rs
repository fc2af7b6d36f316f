//! What was fetched from package indexes, kept on the host for later builds. Sandboxes never see the folder: it is
//! written here alone, and a file only when its digest is the one that the index named.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::page::Files;
use crate::sandbox::Result;

/// How long a page counts as current.
const FRESH: Duration = Duration::from_secs(600);

#[derive(Debug, Clone)]
pub struct Downloads {
    folder: PathBuf,
}

/// A page as it goes to sandboxes.
#[derive(Debug)]
pub struct Page {
    pub head: Head,
    pub body: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// Seconds since 1970.
    fetched: u64,
    pub etag: Option<String>,
    pub json: bool,
    pub files: Files,
}

impl Page {
    pub fn new(etag: Option<String>, json: bool, files: Files, body: Vec<u8>) -> Page {
        let head = Head {
            fetched: now(),
            etag,
            json,
            files,
        };
        Page { head, body }
    }

    pub fn is_fresh(&self) -> bool {
        // A clock that was set back makes nothing fresh for ever.
        let now = now();
        self.head.fetched <= now && now - self.head.fetched < FRESH.as_secs()
    }

    /// The index said that it has not changed.
    pub fn renew(&mut self) {
        self.head.fetched = now();
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Hexadecimal digest of these parts.
pub fn key(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Downloads {
    pub fn open(cache: &Path) -> Result<Downloads> {
        let folder = cache.join("downloads");
        for name in ["", "files", "pages", "aside"] {
            let folder = folder.join(name);
            fs::create_dir_all(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        }
        Ok(Downloads { folder })
    }

    /// Where the file of this address and digest lies if it was fetched.
    pub fn file(&self, url: &str, sha256: &str) -> PathBuf {
        self.folder.join("files").join(key(&[url, sha256]))
    }

    /// A file that goes away unless it is kept.
    pub fn aside(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(self.folder.join("aside"))
    }

    pub fn keep(&self, aside: NamedTempFile, target: &Path) -> io::Result<()> {
        aside.persist(target).map_err(|e| e.error)?;
        Ok(())
    }

    pub fn page(&self, key: &str) -> Option<Page> {
        let text = fs::read(self.folder.join("pages").join(key)).ok()?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let head = serde_json::from_slice(&text[..end]).ok()?;
        let body = text[end + 1..].to_vec();
        Some(Page { head, body })
    }

    pub fn keep_page(&self, key: &str, page: &Page) -> io::Result<()> {
        let mut aside = self.aside()?;
        let mut text = serde_json::to_vec(&page.head)?;
        text.push(b'\n');
        io::Write::write_all(&mut aside, &text)?;
        io::Write::write_all(&mut aside, &page.body)?;
        self.keep(aside, &self.folder.join("pages").join(key))
    }

    /// Removes what was used longest ago until all together takes no more than this, and what builds that were cut
    /// short have left.
    pub fn evict(&self, most: u64) -> io::Result<()> {
        let mut kept = Vec::new();
        for name in ["files", "pages", "aside"] {
            for entry in fs::read_dir(self.folder.join(name))? {
                let entry = entry?;
                let Ok(found) = entry.metadata() else {
                    continue;
                };
                let used = found.modified().unwrap_or(UNIX_EPOCH);
                let age = used.elapsed().unwrap_or_default();
                if name != "aside" {
                    kept.push((used, found.len(), entry.path()));
                } else if age > Duration::from_secs(24 * 3600) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        let mut bytes: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        kept.sort();
        for (_, size, path) in kept {
            if bytes <= most {
                break;
            }
            fs::remove_file(&path)?;
            bytes -= size;
        }
        Ok(())
    }
}

/// Remembers that a file was used.
pub fn touch(file: &fs::File) {
    let _ = file.set_modified(SystemTime::now());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_pages_survive_a_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let downloads = Downloads::open(folder.path()).unwrap();
        let page = Page::new(Some("x".to_owned()), true, Files::new(), b"{\n}".to_vec());
        downloads.keep_page("p", &page).unwrap();
        let again = downloads.page("p").unwrap();
        assert_eq!(
            (again.body, again.head.etag.as_deref()),
            (page.body, Some("x"))
        );
        for (name, age) in [("old", 50), ("new", 5)] {
            let file = fs::File::create(folder.path().join("downloads/files").join(name)).unwrap();
            file.set_len(1000).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
        }
        downloads.evict(1500).unwrap();
        let left = fs::read_dir(folder.path().join("downloads/files")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new"]);
        let mode = fs::metadata(folder.path().join("downloads"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
