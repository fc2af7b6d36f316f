//! A cache on the host for downloads from package indexes.
//!
//! Sandboxes never see its folder. Only this module writes there, and it stores a file only if its digest matches the
//! one in the index.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::lock;
use super::page::Files;
use crate::hex::hex;
use crate::sandbox::Result;

/// Period for which a page counts as current.
const PAGE_MAX_AGE: Duration = Duration::from_secs(600);

/// Age after which a temporary file without an owner counts as left by an interrupted build.
const ORPHAN_AGE: Duration = Duration::from_secs(60);

/// Version of stored pages. Raise it whenever pages are built differently or contain more. A page of another version
/// counts as missing, and its ETag is not used either.
const VERSION: u32 = 2;

#[derive(Debug, Clone)]
pub(super) struct Downloads {
    folder: PathBuf,
    /// Maximum bytes of all downloads.
    most: u64,
    /// Approximate bytes of all downloads.
    bytes: Arc<AtomicU64>,
    evicting: Arc<Mutex<()>>,
}

/// A page in the form that sandboxes get.
#[derive(Debug)]
pub(super) struct Page {
    pub head: Head,
    pub body: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// Version of the page. Pages without one lack upload dates.
    version: u32,
    /// Time of the fetch, in seconds since 1970.
    fetched: u64,
    pub etag: Option<String>,
    pub json: bool,
    pub files: Files,
}

impl Page {
    pub(super) fn new(etag: Option<String>, json: bool, files: Files, body: Vec<u8>) -> Page {
        let head = Head {
            version: VERSION,
            fetched: now(),
            etag,
            json,
            files,
        };
        Page { head, body }
    }

    pub(super) fn is_fresh(&self) -> bool {
        // A page from the future, after the clock was set back, does not count as current.
        let now = now();
        self.head.fetched <= now && now - self.head.fetched < PAGE_MAX_AGE.as_secs()
    }

    /// Marks the page as current, after the index reported no change.
    pub(super) fn renew(&mut self) {
        self.head.fetched = now();
    }
}

fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

/// Returns a hexadecimal digest of the parts.
pub(super) fn key(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}

impl Downloads {
    pub(super) fn open(cache: &Path, most: u64) -> Result<Downloads> {
        let folder = cache.join("downloads");
        for name in ["", "files", "pages", "aside"] {
            let folder = folder.join(name);
            fs::create_dir_all(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        }
        let downloads = Downloads {
            folder,
            most,
            bytes: Arc::default(),
            evicting: Arc::default(),
        };
        downloads.evict()?;
        Ok(downloads)
    }

    /// Returns the path of the cached file for a URL and digest. The file need not exist.
    pub(super) fn file(&self, url: &str, sha256: &str) -> PathBuf {
        self.folder.join("files").join(key(&[url, sha256]))
    }

    /// Creates a temporary file, which is deleted unless it is kept.
    pub(super) fn temporary_file(&self) -> io::Result<NamedTempFile> {
        let aside = NamedTempFile::new_in(self.folder.join("aside"))?;
        // The lock shows other processes that the file has an owner.
        let _ = aside.as_file().try_lock();
        Ok(aside)
    }

    /// Stores a temporary file, and evicts the least recently used files if all exceed the limit.
    ///
    /// The new file stays for now, whatever its size, because it is about to be requested.
    pub(super) fn store(&self, aside: NamedTempFile, target: &Path) -> io::Result<fs::File> {
        let file = aside.persist(target).map_err(|e| e.error)?;
        // The file counts as used now; its last write may be older than the use of others.
        touch(&file);
        let bytes = blocks(file.metadata()?.len());
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.most {
            // Evicts more than necessary, so that not every file triggers a scan.
            self.evict_all_but(Some(target), self.most / 10 * 9)?;
        }
        Ok(file)
    }

    pub(super) fn page(&self, key: &str) -> Option<Page> {
        let text = fs::read(self.folder.join("pages").join(key)).ok()?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&text[..end]).ok()?;
        if head.version != VERSION {
            return None;
        }
        let body = text[end + 1..].to_vec();
        Some(Page { head, body })
    }

    pub(super) fn store_page(&self, key: &str, page: &Page) -> io::Result<()> {
        let mut aside = self.temporary_file()?;
        let mut text = serde_json::to_vec(&page.head)?;
        text.push(b'\n');
        io::Write::write_all(&mut aside, &text)?;
        io::Write::write_all(&mut aside, &page.body)?;
        self.store(aside, &self.folder.join("pages").join(key))?;
        Ok(())
    }

    /// Returns the approximate bytes of all downloads.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Evicts the least recently used files until the rest fit the limit, and removes what interrupted builds left.
    pub(super) fn evict(&self) -> io::Result<()> {
        self.evict_all_but(None, self.most)
    }

    fn evict_all_but(&self, spared: Option<&Path>, max_bytes: u64) -> io::Result<()> {
        let _one_at_a_time = lock(&self.evicting);
        let (mut files, mut bytes) = (Vec::new(), 0);
        for name in ["files", "pages", "aside"] {
            for entry in fs::read_dir(self.folder.join(name))? {
                let entry = entry?;
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                let used = metadata.modified().unwrap_or(UNIX_EPOCH);
                let (size, path) = (blocks(metadata.len()), entry.path());
                if name == "aside" && is_orphaned(&path, used) {
                    removed(&path)?;
                    continue;
                }
                bytes += size;
                if name != "aside" && spared != Some(path.as_path()) {
                    files.push((used, size, path));
                }
            }
        }
        if bytes > max_bytes {
            files.sort();
            for (_, size, path) in files {
                if bytes <= max_bytes {
                    break;
                }
                removed(&path)?;
                bytes -= size;
            }
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the space that a file of this length takes, so that many small files count too.
fn blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096).max(4096)
}

fn is_orphaned(aside: &Path, used: SystemTime) -> bool {
    let free = || fs::File::open(aside).is_ok_and(|file| file.try_lock().is_ok());
    used.elapsed().unwrap_or_default() > ORPHAN_AGE && free()
}

/// Removes a file. Another process may have removed it already.
fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Records that a file was used, as its modification time.
pub(super) fn touch(file: &fs::File) {
    let _ = file.set_modified(SystemTime::now());
}

#[cfg(test)]
mod tests;
