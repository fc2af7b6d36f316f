//! What is read of a repository or a patch at most: generous for real projects, finite for hostile ones.

use std::time::Duration;

/// Bytes of one file of the old code. Larger ones are left out, and a note says so.
pub(super) const FILE: u64 = 256 << 20;
/// Bytes of the whole archive.
pub(super) const ARCHIVE: u64 = 1 << 30;
/// Bytes of a file that is read as text.
pub(super) const TEXT: u64 = 8 << 20;
/// Files, links and submodules of one commit.
pub(super) const ENTRIES: usize = 500_000;
/// Bytes of their names, as git lists them.
pub(super) const LISTING: u64 = 128 << 20;
/// Bytes of one path, and of a link's target: what Linux takes.
pub(super) const PATH: usize = 4095;
/// Entries of a folder without git, ignored ones included.
pub(super) const FOLDER_ENTRIES: usize = 5_000_000;

/// Bytes of a git folder's small files (`HEAD`, a ref, `.git`) and of its middling ones (`config`, `shallow`).
pub(super) const SMALL_FILE: u64 = 64 << 10;
pub(super) const MIDDLING_FILE: u64 = 16 << 20;
/// Bytes of `packed-refs`, of one table of refs, and of all reflogs.
pub(super) const REFS: u64 = 128 << 20;
pub(super) const INDEX: u64 = 512 << 20;
/// Names of refs.
pub(super) const REF_COUNT: usize = 1_000_000;

/// Bytes of a patch, and of all files that it speaks of, before and after.
pub(super) const PATCH: u64 = 64 << 20;
pub(super) const PATCHED: u64 = 256 << 20;

/// Bytes of memory of a git. One that applies a patch makes all files before it writes the first, and one that unpacks
/// objects holds a file, what it is made from and the difference.
pub(super) const MEMORY: u64 = 1 << 30;

/// How long one fetch may take.
pub(super) const FETCH_TIME: Duration = Duration::from_secs(3600);
/// Bytes of a clone in the cache.
pub(super) const CLONE: u64 = 16 << 30;

/// Bytes of one allocation of a git that reads what is not ours: an object that was stored as a difference is made whole
/// in memory. A bit more than the largest file.
pub(super) const ALLOCATION: u64 = FILE + (64 << 20);
/// How long a git that reads what is on this machine may run.
pub(super) const TIME: Duration = Duration::from_secs(300);
/// The same for writing an archive.
pub(super) const ARCHIVE_TIME: Duration = Duration::from_secs(900);
/// The same for what is only good to know.
pub(super) const SHORT_TIME: Duration = Duration::from_secs(10);

/// For messages: `256 MiB`, `1 GiB`.
pub(super) fn human_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 30) {
        format!("{} GiB", bytes >> 30)
    } else {
        format!("{} MiB", bytes >> 20)
    }
}
