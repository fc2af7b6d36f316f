//! What differs from the base commit, and from how things were when the environment was built.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::archive::{Archive, git_mode};
use super::files::walker;
use crate::tool::ToolError;
use crate::tools::submission::Change;

/// One file that differs from the base commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// Relative, with forward slashes.
    pub path: String,
    pub change: Change,
    /// Content at the base commit (a link's target for a link); `None` for a new file.
    pub base: Option<Vec<u8>>,
    /// Content now; `None` for a deleted file.
    pub now: Option<Vec<u8>>,
    /// Mode as git records it: 0o100644, 0o100755 or 0o120000.
    pub base_mode: Option<u32>,
    pub mode: Option<u32>,
}

/// What a path is now: git mode and digest of the content; `None`: not there.
type State = Option<(u32, String)>;

/// What a file's metadata was when its content was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(data: &fs::Metadata) -> Stamp {
        Stamp {
            inode: data.ino(),
            size: data.size(),
            mode: data.mode(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }

    /// The file was written so lately that another write could leave the same stamp.
    fn is_racy(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(now.as_secs()).unwrap_or(i64::MAX) - self.changed.0 < 2
    }
}

pub struct Tracker {
    /// What differed from the base commit when the workspace was first opened.
    baseline: BTreeMap<String, State>,
    /// Files whose content is known to be that of the base commit.
    same: HashMap<PathBuf, Stamp>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    workspace: PathBuf,
    files: BTreeMap<String, State>,
}

const KEPT_IN: &str = "baseline.json";

impl Tracker {
    pub fn open(root: &Path, base: &Archive, scratch: &Path) -> Result<Tracker, ToolError> {
        let mut tracker = Tracker {
            baseline: BTreeMap::new(),
            same: HashMap::new(),
        };
        let kept = scratch.join(KEPT_IN);
        if let Ok(bytes) = fs::read(&kept)
            && let Ok(known) = serde_json::from_slice::<Kept>(&bytes)
            && known.workspace == root
        {
            tracker.baseline = known.files;
            return Ok(tracker);
        }
        let changes = tracker.changes(root, base)?;
        tracker.baseline = changes
            .into_iter()
            .map(|c| (c.path.clone(), state(&c)))
            .collect();
        let known = Kept {
            workspace: root.to_path_buf(),
            files: tracker.baseline.clone(),
        };
        let bytes = serde_json::to_vec(&known).map_err(|e| ToolError::Broken(e.to_string()))?;
        fs::create_dir_all(scratch)?;
        let mut aside = tempfile::NamedTempFile::new_in(scratch)?;
        std::io::Write::write_all(&mut aside, &bytes)?;
        aside.persist(&kept).map_err(|e| e.error)?;
        Ok(tracker)
    }

    /// It differed from the base commit already when the workspace was first opened.
    pub fn is_baseline(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|p| self.baseline.contains_key(p))
    }

    /// See [`super::Workspace::changes`].
    pub fn changes(&mut self, root: &Path, base: &Archive) -> Result<Vec<Changed>, ToolError> {
        let mut found = Vec::new();
        for (path, entry) in base.entries() {
            let Some(name) = path.to_str() else { continue };
            let whole = root.join(path);
            let data = fs::symlink_metadata(&whole).ok().filter(|d| !d.is_dir());
            let stamp = data.as_ref().map(Stamp::of);
            if stamp.is_some() && self.same.get(path) == stamp.as_ref() {
                continue;
            }
            let now = match &data {
                Some(data) => content(&whole, data)?,
                None => None,
            };
            let mode = data.as_ref().map(|d| git_mode(d.is_symlink(), d.mode()));
            let was = base.content(entry)?;
            if now.as_deref() == Some(&was[..]) && mode == Some(entry.git_mode()) {
                if let Some(stamp) = stamp.filter(|s| !s.is_racy()) {
                    self.same.insert(path.clone(), stamp);
                }
                continue;
            }
            found.push(Changed {
                path: name.to_owned(),
                change: if now.is_some() {
                    Change::Modified
                } else {
                    Change::Deleted
                },
                base: Some(was),
                base_mode: Some(entry.git_mode()),
                mode: now.as_ref().and(mode),
                now,
            });
        }
        self.added(root, base, &mut found)?;
        found.retain(|c| {
            self.baseline
                .get(&c.path)
                .is_none_or(|then| *then != state(c))
        });
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn added(
        &self,
        root: &Path,
        base: &Archive,
        found: &mut Vec<Changed>,
    ) -> Result<(), ToolError> {
        for entry in walker(root).build().flatten() {
            let Ok(path) = entry.path().strip_prefix(root) else {
                continue;
            };
            let Some(name) = path.to_str() else { continue };
            if entry.file_type().is_none_or(|t| t.is_dir()) || base.entry(path).is_some() {
                continue;
            }
            let Ok(data) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            if let Some(now) = content(entry.path(), &data)? {
                found.push(Changed {
                    path: name.to_owned(),
                    change: Change::Added,
                    base: None,
                    now: Some(now),
                    base_mode: None,
                    mode: Some(git_mode(data.is_symlink(), data.mode())),
                });
            }
        }
        Ok(())
    }
}

fn state(changed: &Changed) -> State {
    let now = changed.now.as_ref()?;
    let digest = Sha256::digest(now)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    Some((changed.mode.unwrap_or_default(), digest))
}

/// What git would record; `None` for what it would not (sockets, pipes) and for what cannot be read.
fn content(path: &Path, data: &fs::Metadata) -> Result<Option<Vec<u8>>, ToolError> {
    if data.is_symlink() {
        return Ok(fs::read_link(path)
            .ok()
            .map(|t| t.as_os_str().as_bytes().to_vec()));
    }
    if !data.is_file() {
        return Ok(None);
    }
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e)
            if matches!(
                e.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(e.into()),
    }
}
