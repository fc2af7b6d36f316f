//! Maximum amounts that are read of a repository or a patch: generous for real projects, finite for hostile ones.

use std::time::Duration;

/// Bytes of one file of the old code. Larger files are omitted with a note.
pub(super) const FILE: u64 = 256 << 20;
/// Bytes of the whole archive.
pub(super) const ARCHIVE: u64 = 1 << 30;
/// Bytes of a file that is read as text.
pub(super) const TEXT: u64 = 8 << 20;
/// Files, links and submodules of one commit.
pub(super) const ENTRIES: usize = 500_000;
/// Bytes of their names, as git lists them.
pub(super) const LISTING: u64 = 128 << 20;
/// Bytes of one path and of a link's target (the limit of Linux).
pub(super) const PATH: usize = 4095;
/// Entries of a folder without git, including ignored ones.
pub(super) const FOLDER_ENTRIES: usize = 5_000_000;

/// Bytes of a git folder's small files (`HEAD`, a ref, `.git`) and of its medium ones (`config`, `shallow`).
pub(super) const SMALL_FILE: u64 = 64 << 10;
pub(super) const MAX_MEDIUM_FILE_BYTES: u64 = 16 << 20;
/// Bytes of `packed-refs`, of one table of refs, and of all reflogs.
pub(super) const REFS: u64 = 128 << 20;
pub(super) const INDEX: u64 = 512 << 20;
/// Number of refs.
pub(super) const REF_COUNT: usize = 1_000_000;

/// Bytes of a patch, and of all its files before and after together.
pub(super) const PATCH: u64 = 64 << 20;
pub(super) const PATCHED: u64 = 256 << 20;

/// Bytes of memory of a git process.
///
/// When git applies a patch, it builds all files before it writes the first. When it unpacks objects, it holds a file,
/// its base and the delta.
pub(super) const MEMORY: u64 = 1 << 30;

/// Time limit of one fetch.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_secs(3600);
/// Bytes of a clone in the cache.
pub(super) const CLONE: u64 = 16 << 30;

/// Bytes of one allocation of a git that reads untrusted data. It is a bit more than the largest file, because git
/// rebuilds a deltified object in memory.
pub(super) const ALLOCATION: u64 = FILE + (64 << 20);
/// Time limit of a git that reads local data.
pub(super) const GIT_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit for writing an archive.
pub(super) const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(900);
/// Time limit of optional queries.
pub(super) const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Formats a size for messages: `256 MiB`, `1 GiB`.
pub(super) fn human_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 30) {
        format!("{} GiB", bytes >> 30)
    } else {
        format!("{} MiB", bytes >> 20)
    }
}
