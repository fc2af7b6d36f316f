//! The checkout that the tools work on. It keeps paths inside the checkout, reads the content of the base
//! commit, and tracks what has changed since.
//!
//! The workspace needs no git: the base commit is a tar archive (see [`Config::base_archive`]).
//! Every path that a tool receives goes through [`Workspace::resolve`] first.

mod archive;
mod changes;
mod checkout;
mod encoding;
mod files;
mod ignore_rules;
mod layout;
mod line_ending;
mod patch;
mod paths;
mod regular;
mod stamps;
#[cfg(test)]
mod tests;
mod text_file;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use changes::{Change, FileChange};
pub use checkout::Checkout;
pub use files::{nearest, walker};
pub use layout::{Layout, is_conftest};
pub use line_ending::LineEnding;
pub use patch::{added_lines, blob_id, unified};
pub(crate) use paths::REPO;
pub(crate) use regular::{open_for_reading as open_regular, read_itself};
pub(crate) use stamps::Stamp;
pub use stamps::Stamps;
pub use text_file::decode_source;
pub(crate) use text_file::{read_text, transcoded};
#[cfg(fuzzing)]
pub use {archive::Archive, patch::patch};

use crate::config::Config;
use crate::error::{Result, ToolError, refusal};
use crate::metadata;
#[cfg(not(fuzzing))]
use archive::Archive;
use changes::Tracker;
use regular::UnreadReason;
use text_file::TextFile;

/// The largest file that is shown or edited as text, in bytes.
pub const MAX_TEXT_LEN: u64 = 5 << 20;
/// The largest file that is read at all, in bytes.
const MAX_READ_LEN: u64 = 64 << 20;

/// The checkout that tools work on, and its state at the base commit.
pub struct Workspace {
    checkout: Checkout,
    base: Archive,
    tracker: Tracker,
    /// Newest modification time that each path ever had here, in whole seconds. A file that comes back
    /// with the same size and second would run from its stale `.pyc`.
    stamps: HashMap<PathBuf, u64>,
}

impl Workspace {
    /// Reads the index of the base archive and records the baseline (see [`Workspace::changes`]).
    ///
    /// # Errors
    ///
    /// Fails if the checkout, the archive or the baseline cannot be read, or the baseline cannot be stored.
    pub fn open(config: Config) -> Result<Workspace> {
        let checkout = Checkout::open(config)?;
        let base = Archive::open(&checkout.config().base_archive)?;
        // Use the base commit: later changes must not turn other files into tests.
        let read = |name: &str| {
            let bytes = base.read(Path::new(name)).ok().flatten()?;
            Some(TextFile::read(Path::new(name), &bytes).ok()?.text)
        };
        let paths = base.entries().keys().filter_map(|path| path.to_str());
        let layout = Layout::from_tree(paths, &read);
        let checkout = checkout.with_layout(layout);
        let config = checkout.config();
        let tracker = Tracker::open(checkout.root(), &base, &config.private())?;
        Ok(Workspace {
            checkout,
            base,
            tracker,
            stamps: HashMap::new(),
        })
    }

    /// Returns the checkout, which is all that a test run needs.
    pub fn checkout(&self) -> &Checkout {
        &self.checkout
    }

    /// Returns the settings of the toolbox.
    pub fn config(&self) -> &Config {
        self.checkout.config()
    }

    /// Returns the root folder of the checkout: absolute, with links resolved.
    pub fn root(&self) -> &Path {
        self.checkout.root()
    }

    /// Returns the layout of the tests, from the repository's own pytest configuration at the base commit.
    pub fn layout(&self) -> &Layout {
        self.checkout.layout()
    }

    /// Returns the path relative to the root, normalized, with links resolved. Accepts relative paths, `./x`,
    /// and absolute paths below the root. The file need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the path leaves the workspace, also through links.
    pub fn resolve(&self, path: &str) -> Result<PathBuf> {
        paths::resolve(self.root(), &self.config().workspace, path)
    }

    /// Resolves a path like [`Workspace::resolve`], but the file must exist.
    ///
    /// # Errors
    ///
    /// Fails if the path leaves the workspace, or is not a file; the error names the nearest paths.
    pub fn resolve_file(&self, path: &str) -> Result<PathBuf> {
        let relative = self.resolve(path)?;
        let whole = self.root().join(&relative);
        if whole.is_file() {
            return Ok(relative);
        }
        let display_path = forward(&relative);
        if whole.is_dir() {
            return Err(refusal!("`{display_path}` is a folder, not a file."));
        }
        let nearest = match self.nearest(&display_path).as_slice() {
            [] => String::new(),
            near => format!(" The nearest are: {}.", near.join(", ")),
        };
        Err(refusal!("There is no file `{display_path}`.{nearest}"))
    }

    /// Reads the bytes of a regular file.
    ///
    /// # Errors
    ///
    /// Fails if the file is missing, not a regular file, over the size limit, or outside the workspace.
    pub fn read(&self, relative: &Path) -> Result<Vec<u8>> {
        let relative = self.resolve_again(relative)?;
        let whole = self.root().join(&relative);
        let display_path = forward(&relative);
        let read =
            regular::read(&whole, MAX_READ_LEN).map_err(|e| refuse_missing(&display_path, &e))?;
        read.map_err(|why| {
            ToolError::Refused(match why {
                UnreadReason::NotRegular if whole.is_dir() => {
                    format!("`{display_path}` is a folder, not a file.")
                }
                UnreadReason::NotRegular => format!("`{display_path}` is not a regular file."),
                UnreadReason::TooLarge(size) => format!(
                    "`{display_path}` is too large to read ({} MB; the limit is {} MB).",
                    size >> 20,
                    MAX_READ_LEN >> 20
                ),
            })
        })
    }

    /// Reads a file as text in its own encoding, with `\n` line ends and without a byte order mark.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is binary, or is over [`MAX_TEXT_LEN`].
    pub fn read_text(&self, relative: &Path) -> Result<String> {
        let display_path = forward(relative);
        let bytes = self.read(relative)?;
        if bytes.len() as u64 > MAX_TEXT_LEN {
            return Err(refusal!(
                "`{display_path}` is too large to be shown as text ({} MB; the limit is {} MB).",
                bytes.len() >> 20,
                MAX_TEXT_LEN >> 20
            ));
        }
        match TextFile::read(relative, &bytes) {
            Ok(file) => Ok(file.text),
            Err(what) => Err(refusal!("`{display_path}` {what}.")),
        }
    }

    /// Writes text as the file stores it now: encoding, byte order mark and line ends stay. A new file gets the line
    /// ends and the mark of its neighbours.
    ///
    /// # Errors
    ///
    /// Fails if the encoding cannot represent the text, or the file cannot be written.
    pub fn write_text(&mut self, relative: &Path, text: &str) -> Result<()> {
        let relative = self.resolve_again(relative)?;
        let now = match self.root().join(&relative).exists() {
            true => TextFile::read(&relative, &self.read(&relative)?).ok(),
            false => Some(TextFile::new_in(self.root(), &relative)),
        };
        let bytes = match now {
            Some(file) => file
                .encode(&relative, text)
                .map_err(|what| refusal!("`{}` {what}.", forward(&relative)))?,
            None => text.as_bytes().to_vec(),
        };
        self.write(&relative, &bytes)
    }

    /// Writes a file atomically. Missing folders are created, and the mode is kept. The new modification time
    /// differs in whole seconds from every earlier time of the file.
    ///
    /// # Errors
    ///
    /// Fails if the path leaves the workspace or cannot be written.
    pub fn write(&mut self, relative: &Path, bytes: &[u8]) -> Result<()> {
        let relative = self.resolve_again(relative)?;
        self.write_bytes(&relative, bytes, None)
    }

    /// Writes a file like [`Workspace::write`]; git's mode says whether it is executable.
    ///
    /// # Errors
    ///
    /// Fails under the same conditions.
    pub fn write_as(&mut self, relative: &Path, bytes: &[u8], git_mode: Option<u32>) -> Result<()> {
        let relative = self.resolve_again(relative)?;
        self.write_bytes(&relative, bytes, git_mode.map(|mode| mode & 0o777))
    }

    /// Replaces a path with a symbolic link. The target is not followed or checked.
    ///
    /// # Errors
    ///
    /// Fails if the path leaves the workspace, or the link cannot be created.
    pub fn link(&mut self, relative: &Path, target: &[u8]) -> Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let relative = self.entry(relative)?;
        let whole = self.root().join(&relative);
        if let Some(folder) = whole.parent() {
            fs::create_dir_all(folder)?;
        }
        if fs::symlink_metadata(&whole).is_ok_and(|metadata| !metadata.is_dir()) {
            fs::remove_file(&whole)?;
        }
        let display_path = forward(&relative);
        std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), whole)
            .map_err(|e| cannot_write(&display_path, &e))
    }

    fn write_bytes(&mut self, relative: &Path, bytes: &[u8], mode: Option<u32>) -> Result<()> {
        let display_path = forward(relative);
        if relative.as_os_str().is_empty() || relative.starts_with(".git") {
            return Err(refusal!("`{display_path}` cannot be written."));
        }
        let cannot = |e: std::io::Error| cannot_write(&display_path, &e);
        let whole = self.root().join(relative);
        let folder = whole.parent().unwrap_or(self.root());
        fs::create_dir_all(folder).map_err(cannot)?;
        let old = fs::symlink_metadata(&whole).ok();
        if old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(refusal!("`{display_path}` is a folder, not a file."));
        }
        let mut aside = tempfile::Builder::new()
            .prefix(".testwright-")
            .tempfile_in(folder)
            .map_err(cannot)?;
        std::io::Write::write_all(&mut aside, bytes).map_err(cannot)?;
        let old_file = old.as_ref().filter(|old| old.is_file());
        let old_mode = old_file.map(|old| old.mode() & 0o7777);
        let permissions = fs::Permissions::from_mode(mode.or(old_mode).unwrap_or(0o644));
        metadata::set_permissions(aside.as_file(), &permissions).map_err(cannot)?;
        if let Some(old) = &old {
            self.record_stamp(relative, old);
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        if let Some(&stamp) = self.stamps.get(relative)
            && now.as_secs() <= stamp
        {
            let later = UNIX_EPOCH + Duration::from_secs(stamp + 1);
            metadata::set_modified(aside.as_file(), later).map_err(cannot)?;
        }
        aside.persist(&whole).map_err(|e| cannot(e.error))?;
        Ok(())
    }

    /// Removes a file, or the link itself if it is one. Also removes its folder if that becomes empty and is not
    /// part of the base commit.
    ///
    /// # Errors
    ///
    /// Fails if the path leaves the workspace, or the file is missing or cannot be removed.
    pub fn remove(&mut self, relative: &Path) -> Result<()> {
        let relative = self.entry(relative)?;
        let display_path = forward(&relative);
        let whole = self.root().join(&relative);
        let data = fs::symlink_metadata(&whole).map_err(|e| refuse_missing(&display_path, &e))?;
        if data.is_dir() {
            return Err(refusal!("`{display_path}` is a folder, not a file."));
        }
        self.record_stamp(&relative, &data);
        fs::remove_file(&whole).map_err(|e| cannot_write(&display_path, &e))?;
        let mut folder = relative.parent();
        while let Some(path) = folder.filter(|p| !p.as_os_str().is_empty()) {
            if self.base.has_folder(path) || fs::remove_dir(self.root().join(path)).is_err() {
                break;
            }
            folder = path.parent();
        }
        Ok(())
    }

    /// Returns the file's content at the base commit; `None` if it did not exist or was a link.
    ///
    /// # Errors
    ///
    /// Fails if the archive cannot be read.
    pub fn base(&self, relative: &Path) -> Result<Option<Vec<u8>>> {
        self.base.read(relative)
    }

    /// Restores one file to its state at the base commit: rewrites it, or removes it if it did not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file is part of the baseline, whose content is not known, or cannot be written or removed.
    pub fn restore(&mut self, relative: &Path) -> Result<()> {
        if self.tracker.is_baseline(relative) {
            return Err(refusal!(
                "`{}` was generated when the environment was built; it cannot be put back.",
                forward(relative)
            ));
        }
        let relative = &self.entry(relative)?;
        let Some(entry) = self.base.entry(relative) else {
            return self.remove(relative);
        };
        let (is_link, mode) = (entry.link.is_some(), entry.mode);
        let bytes = self.base.content(entry)?;
        match is_link {
            true => self.link(relative, &bytes),
            false => self.write_bytes(relative, &bytes, Some(mode)),
        }
    }

    /// Returns everything that differs from the base commit, by path: modified and deleted tracked files, and
    /// new files that are neither ignored by `.gitignore` nor build products (`__pycache__`, `*.pyc`,
    /// `*.egg-info`, `.pytest_cache` …).
    ///
    /// Differences that existed when the workspace was first opened (such as a generated version file) form the
    /// baseline. They are left out until they change. The baseline is stored in the scratch folder, so a later
    /// `open` (in a copy of the sandbox, or after a restart) uses the same one.
    ///
    /// File names that are not UTF-8 are left out. An oversized file ([`FileChange::oversized`]) is only reported
    /// as different.
    ///
    /// # Errors
    ///
    /// Fails if the workspace or the archive cannot be read.
    pub fn changes(&mut self) -> Result<Vec<FileChange>> {
        self.tracker.changes(self.checkout.root(), &self.base)
    }

    /// Formats the changes as a patch for `git apply`, without oversized files; empty if there are no changes.
    pub fn patch(&self, changes: &[FileChange]) -> String {
        patch::patch(changes)
    }

    /// Lists all files that are not ignored, sorted, with forward slashes; including hidden files, but not `.git`.
    pub fn files(&self) -> Vec<String> {
        files::files(self.root())
    }

    /// Returns at most five paths that are closest to a mistyped path, best first.
    pub fn nearest(&self, path: &str) -> Vec<String> {
        files::nearest(&self.files(), path)
    }

    /// Resolves a path that did not come from [`Workspace::resolve`].
    fn resolve_again(&self, relative: &Path) -> Result<PathBuf> {
        match relative.to_str() {
            Some(text) => self.resolve(text),
            None => Err(ToolError::refused("The path is not UTF-8.")),
        }
    }

    /// Returns the path of a directory entry. Links in its parent folders are followed, but not the entry itself.
    fn entry(&self, relative: &Path) -> Result<PathBuf> {
        match (relative.parent(), relative.file_name()) {
            (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => {
                Ok(self.resolve_again(folder)?.join(name))
            }
            (_, Some(name)) => Ok(PathBuf::from(name)),
            _ => self.resolve_again(relative),
        }
    }

    fn record_stamp(&mut self, relative: &Path, data: &fs::Metadata) {
        let second = u64::try_from(data.mtime()).unwrap_or(0);
        let stamp = self.stamps.entry(relative.to_path_buf()).or_insert(0);
        *stamp = (*stamp).max(second);
    }
}

/// Formats a relative path with forward slashes, for display and patches.
pub fn forward(path: &Path) -> String {
    match path.to_string_lossy() {
        text if text.is_empty() => ".".to_owned(),
        text => text.into_owned(),
    }
}

/// Returns whether a path is this folder, or leads to something inside it. `.` is the root.
pub(crate) fn is_at_or_below(path: &str, folder: &str) -> bool {
    let inside = path.strip_prefix(folder);
    folder == "." || inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn refuse_missing(path: &str, e: &std::io::Error) -> ToolError {
    match e.kind() {
        std::io::ErrorKind::NotFound => refusal!("There is no file `{path}`."),
        std::io::ErrorKind::PermissionDenied => refusal!("`{path}` is not readable."),
        _ => ToolError::Broken(format!("{path}: {e}")),
    }
}

fn cannot_write(path: &str, e: &std::io::Error) -> ToolError {
    use std::io::ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied};
    match e.kind() {
        PermissionDenied | NotADirectory | AlreadyExists => {
            refusal!("`{path}` cannot be written: {e}.")
        }
        _ => ToolError::Broken(format!("{path} could not be written: {e}")),
    }
}

/// Returns two lower-case hexadecimal digits for each byte.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
