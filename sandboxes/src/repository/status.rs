//! Check whether a work tree differs from its commit. git runs with an isolated git folder and a copy of the index.

use super::archive::list_few;
use super::discover::GitFolder;
use super::isolated_repository::IsolatedRepository;
use super::process::{self, ProcessLimits};
use super::{git_files, limits};
use crate::sandbox::Result;

/// Settings of a repository that affect how files are compared and run nothing.
const TRUTHS: [&str; 4] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.trustctime",
];

/// Maximum number of names of each kind in a note.
const MAX_NAMES: usize = 3;

/// Returns a note about changes that are not in the commit.
pub(super) fn uncommitted(folder: &GitFolder, isolated: &IsolatedRepository) -> Option<String> {
    let below = match folder.prefix.as_str() {
        "" => ".",
        prefix => prefix,
    };
    match changes(folder, isolated, &[below.to_owned()]) {
        Ok(changes) => note(&changes),
        // A failure here does not affect the code, which is read from the commit.
        Err(_) => Some(
            "could not check for uncommitted changes: the old code is that of the commit"
                .to_owned(),
        ),
    }
}

fn note(changes: &[Change]) -> Option<String> {
    let parts = [(false, "uncommitted change"), (true, "untracked file")];
    let parts = parts.into_iter().filter_map(|(is_untracked, noun)| {
        let of_kind = changes.iter().filter(|c| c.is_untracked == is_untracked);
        let paths: Vec<String> = of_kind.map(|change| change.path.clone()).collect();
        let plural = if paths.len() == 1 { "" } else { "s" };
        let names = list_few(&paths[..paths.len().min(MAX_NAMES)]);
        let more = if paths.len() > MAX_NAMES { ", …" } else { "" };
        let text = format!("{} {noun}{plural} ({names}{more})", paths.len());
        (!paths.is_empty()).then_some(text)
    });
    let parts = parts.collect::<Vec<_>>().join(" and ");
    let verb = if changes.len() == 1 { "was" } else { "were" };
    (!parts.is_empty())
        .then(|| format!("{parts} {verb} ignored: the old code is that of the commit"))
}

/// A file that differs from the commit, or an untracked file or folder.
pub(super) struct Change {
    /// Path relative to the work tree.
    pub path: String,
    pub is_untracked: bool,
}

/// Returns the changes of these files and folders, given relative to the work tree.
pub(super) fn changes(
    folder: &GitFolder,
    isolated: &IsolatedRepository,
    paths: &[String],
) -> Result<Vec<Change>> {
    let Some(work_tree) = &folder.work_tree else {
        return Ok(Vec::new());
    };
    if isolated.config.get_bool("core.bare") == Some(true) && folder.own == folder.common {
        return Ok(Vec::new());
    }
    let own = isolated.folder.path();
    git_files::copy(&folder.own.join("index"), &own.join("index"), limits::INDEX)?;
    std::fs::create_dir_all(own.join("info"))?;
    // No filter is configured here, and this keeps git from looking for one.
    std::fs::write(own.join("info/attributes"), "* -filter\n")?;
    for name in ["exclude", "sparse-checkout"] {
        let path = folder.common.join("info").join(name);
        git_files::copy(
            &path,
            &own.join("info").join(name),
            limits::MAX_MEDIUM_FILE_BYTES,
        )?;
    }
    let mut command = isolated.git.command();
    command
        .current_dir(work_tree)
        .args(["-c", "core.bare=false"]);
    for key in TRUTHS {
        if let Some(value) = isolated.config.get_bool(key) {
            command.args(["-c", &format!("{key}={value}")]);
        }
    }
    command.arg("--work-tree").arg(work_tree).args([
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--ignore-submodules=all",
        "--",
    ]);
    // Names that look like patterns are taken literally.
    command.env("GIT_LITERAL_PATHSPECS", "1").args(paths);
    let bounds = ProcessLimits {
        time: limits::STATUS_TIMEOUT,
        ..ProcessLimits::default()
    };
    let printed = process::run(command, b"", &bounds)?.printed("status")?;
    // Each entry is two letters, a blank and a path.
    let entries = printed.split(|b| *b == 0).filter(|e| e.len() > 3);
    let changes = entries.map(|entry| Change {
        path: String::from_utf8_lossy(&entry[3..]).into_owned(),
        is_untracked: entry.starts_with(b"??"),
    });
    Ok(changes.collect())
}
