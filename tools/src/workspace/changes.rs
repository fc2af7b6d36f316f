//! Finds changes relative to the base commit and to the state when the environment was built.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::archive::{Archive, Entry, git_mode};
use super::files::walker;
use super::hex;
use super::regular::{self, UnreadReason};
use super::stamps::Stamp;
use crate::error::{Result, ToolError};

/// Maximum bytes of a file, before or after, whose content is read. A test patch has room for far less.
const MAX_FILE_LEN: u64 = 16 << 20;
/// Maximum bytes of all contents together.
const MAX_TOTAL_LEN: u64 = 128 << 20;

/// The kind of difference of a file or a test from the base commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// New since the base commit.
    Added,
    /// Changed since the base commit.
    Modified,
    /// Deleted since the base commit.
    Deleted,
}

/// One file that differs from the base commit.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    /// Relative path, with forward slashes.
    pub path: String,
    /// Kind of difference from the base commit.
    pub change: Change,
    /// Content at the base commit (a link's target for a link); `None` for a new file.
    pub base: Option<Vec<u8>>,
    /// Content now; `None` for a deleted file.
    pub now: Option<Vec<u8>>,
    /// Mode as git records it: 0o100644, 0o100755 or 0o120000.
    pub base_mode: Option<u32>,
    /// Mode now, in the same form; `None` for a deleted file.
    pub mode: Option<u32>,
    /// Size in bytes, before or after, if it exceeds the limit. Then `base` and `now` are `None`.
    pub oversized: Option<u64>,
}

/// Current state of a path: git mode and content digest (the size for a large file); `None` if it does not exist.
type FileState = Option<(u32, String)>;

pub(super) struct Tracker {
    /// Differences from the base commit when the workspace was first opened.
    baseline: BTreeMap<String, FileState>,
    /// Files whose content is known to match the base commit.
    same: HashMap<PathBuf, Stamp>,
}

#[derive(Serialize, Deserialize)]
struct SavedBaseline {
    /// Path relative to the folder that holds this file, since a copy of the sandbox may have both elsewhere.
    workspace: PathBuf,
    files: BTreeMap<String, FileState>,
}

const BASELINE_FILE: &str = "baseline.json";

fn seen_from(folder: &Path, path: &Path) -> PathBuf {
    let (mut folder, mut path) = (folder.components().peekable(), path.components().peekable());
    while folder.peek().is_some() && folder.peek() == path.peek() {
        folder.next();
        path.next();
    }
    folder.map(|_| Component::ParentDir).chain(path).collect()
}

impl Tracker {
    pub(super) fn open(root: &Path, base: &Archive, scratch: &Path) -> Result<Tracker> {
        let mut tracker = Tracker {
            baseline: BTreeMap::new(),
            same: HashMap::new(),
        };
        let baseline_path = scratch.join(BASELINE_FILE);
        let workspace = seen_from(scratch, root);
        if let Ok(bytes) = fs::read(&baseline_path)
            && let Ok(saved_baseline) = serde_json::from_slice::<SavedBaseline>(&bytes)
            && saved_baseline.workspace == workspace
        {
            tracker.baseline = saved_baseline.files;
            return Ok(tracker);
        }
        for differing in tracker.differing(root, base)? {
            let state = differing.state()?;
            if state.is_some() || differing.entry.is_some() {
                tracker.baseline.insert(differing.name, state);
            }
        }
        let new_baseline = SavedBaseline {
            workspace,
            files: tracker.baseline.clone(),
        };
        let bytes =
            serde_json::to_vec(&new_baseline).map_err(|e| ToolError::Broken(e.to_string()))?;
        fs::create_dir_all(scratch)?;
        let mut aside = tempfile::NamedTempFile::new_in(scratch)?;
        std::io::Write::write_all(&mut aside, &bytes)?;
        aside.persist(&baseline_path).map_err(|e| e.error)?;
        Ok(tracker)
    }

    /// Returns whether the file already differed from the base commit when the workspace was first opened.
    pub(super) fn is_baseline(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|p| self.baseline.contains_key(p))
    }

    /// Implements [`super::Workspace::changes`].
    pub(super) fn changes(&mut self, root: &Path, base: &Archive) -> Result<Vec<FileChange>> {
        let mut changes = Vec::new();
        let mut room = MAX_TOTAL_LEN;
        for differing in self.differing(root, base)? {
            if let Some(then) = self.baseline.get(&differing.name)
                && *then == differing.state()?
            {
                continue;
            }
            changes.extend(differing.read(base, &mut room)?);
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// Returns all differences from the base commit, including the baseline: tracked files first, then others, by path.
    fn differing<'b>(&mut self, root: &Path, base: &'b Archive) -> Result<Vec<DifferingPath<'b>>> {
        let mut differing_paths = Vec::new();
        for (path, entry) in base.entries() {
            let Some(name) = path.to_str() else { continue };
            let whole = root.join(path);
            let data = fs::symlink_metadata(&whole).ok().filter(|d| !d.is_dir());
            let stamp = data.as_ref().map(Stamp::from_metadata);
            if stamp.is_some() && self.same.get(path) == stamp.as_ref() {
                continue;
            }
            let differing = DifferingPath {
                name: name.to_owned(),
                whole,
                data: data.filter(|d| d.is_file() || d.is_symlink()),
                entry: Some(entry),
            };
            if !differing.is_as_in(base)? {
                differing_paths.push(differing);
            } else if let Some(stamp) = stamp.filter(|s| !s.is_racy()) {
                self.same.insert(path.clone(), stamp);
            }
        }
        let tracked = differing_paths.len();
        for entry in walker(root).build().flatten() {
            let Ok(path) = entry.path().strip_prefix(root) else {
                continue;
            };
            let Some(name) = path.to_str() else { continue };
            if entry.file_type().is_none_or(|t| t.is_dir()) || base.entry(path).is_some() {
                continue;
            }
            let data = fs::symlink_metadata(entry.path()).ok();
            let data = data.filter(|d| d.is_file() || d.is_symlink());
            if data.is_some() {
                differing_paths.push(DifferingPath {
                    name: name.to_owned(),
                    whole: entry.path().to_path_buf(),
                    data,
                    entry: None,
                });
            }
        }
        differing_paths[tracked..].sort_by(|a, b| a.name.cmp(&b.name));
        Ok(differing_paths)
    }
}

/// A path whose state differs from the base commit.
struct DifferingPath<'b> {
    name: String,
    whole: PathBuf,
    /// Metadata of a file or link; `None` if it is missing, or a kind that git does not record (sockets, pipes).
    data: Option<Metadata>,
    entry: Option<&'b Entry>,
}

/// The current content of a path.
enum Content {
    /// Missing or unreadable.
    Nothing,
    Bytes(Vec<u8>),
    /// A file of this many bytes, which is not read.
    TooLarge(u64),
}

impl DifferingPath<'_> {
    fn mode(&self) -> Option<u32> {
        let data = self.data.as_ref()?;
        Some(git_mode(data.is_symlink(), data.mode()))
    }

    /// Returns whether the content turns out to be unchanged.
    fn is_as_in(&self, base: &Archive) -> Result<bool> {
        let (Some(entry), Some(data)) = (self.entry, &self.data) else {
            return Ok(false);
        };
        if self.mode() != Some(entry.git_mode()) {
            return Ok(false);
        }
        if data.is_symlink() {
            let target = fs::read_link(&self.whole).ok();
            return Ok(target.is_some() && target == entry.link);
        }
        if data.len() != entry.size {
            return Ok(false);
        }
        match regular::open(&self.whole, OFlag::O_NOFOLLOW) {
            Ok(file) => Ok(base.holds(entry, &file)?),
            Err(e) if is_gone(&e) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    fn now(&self, max_bytes: u64) -> Result<Content> {
        match &self.data {
            None => Ok(Content::Nothing),
            Some(data) if data.is_symlink() => Ok(match fs::read_link(&self.whole) {
                Ok(target) => Content::Bytes(target.into_os_string().into_vec()),
                Err(_) => Content::Nothing,
            }),
            Some(_) => match regular::read_itself(&self.whole, max_bytes) {
                Ok(Ok(bytes)) => Ok(Content::Bytes(bytes)),
                Ok(Err(UnreadReason::TooLarge(size))) => Ok(Content::TooLarge(size)),
                Ok(Err(UnreadReason::NotRegular)) => Ok(Content::Nothing),
                Err(e) if is_gone(&e) => Ok(Content::Nothing),
                Err(e) => Err(e.into()),
            },
        }
    }

    fn state(&self) -> Result<FileState> {
        let digest = match self.now(MAX_FILE_LEN)? {
            Content::Nothing => return Ok(None),
            Content::Bytes(bytes) => hex(&Sha256::digest(bytes)),
            Content::TooLarge(size) => format!("{size} bytes"),
        };
        Ok(Some((self.mode().unwrap_or_default(), digest)))
    }

    /// Reads the contents if there is room for them; otherwise reports only the kind of change. Returns `None` for a
    /// new file that has disappeared or cannot be read.
    fn read(self, base: &Archive, room: &mut u64) -> Result<Option<FileChange>> {
        let before = self.entry.map_or(0, |entry| entry.size);
        let max_bytes = MAX_FILE_LEN.min(*room);
        let now = match &self.data {
            Some(data) if before > max_bytes => Content::TooLarge(data.len()),
            _ => self.now(MAX_FILE_LEN.min(room.saturating_sub(before)))?,
        };
        let is_there = !matches!(now, Content::Nothing);
        let mut changed = FileChange {
            change: match (self.entry, is_there) {
                (None, false) => return Ok(None),
                (None, true) => Change::Added,
                (Some(_), true) => Change::Modified,
                (Some(_), false) => Change::Deleted,
            },
            base: None,
            now: None,
            base_mode: self.entry.map(Entry::git_mode),
            mode: self.mode().filter(|_| is_there),
            oversized: None,
            path: self.name,
        };
        match now {
            Content::TooLarge(size) => changed.oversized = Some(size.max(before)),
            Content::Nothing if before > max_bytes => changed.oversized = Some(before),
            now => {
                if let Content::Bytes(bytes) = now {
                    changed.now = Some(bytes);
                }
                changed.base = self.entry.map(|entry| base.content(entry)).transpose()?;
                let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len) as u64;
                *room = room.saturating_sub(length(&changed.base) + length(&changed.now));
            }
        }
        Ok(Some(changed))
    }
}

/// Returns whether a file has disappeared, cannot be read, or became a link.
fn is_gone(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    matches!(e.kind(), NotFound | PermissionDenied) || e.raw_os_error() == Some(Errno::ELOOP as i32)
}
