//! A folder without git: its files, except those in `.gitignore`, are stored in a new object store.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::git::Git;
use super::listing::too_large;
use super::process::{self, ProcessLimits};
use super::repository_name::folder_name;
use super::{Repository, isolated_repository, limits};
use crate::error::SandboxError;
use crate::sandbox::Result;

pub(super) fn take_snapshot(
    path: &Path,
    cache: &Path,
    revision: Option<&str>,
    mut notes: Vec<String>,
) -> Result<Repository> {
    if let Some(revision) = revision {
        return Err(SandboxError::input(format!(
            "{} is not a git repository, so it has no revision `{revision}`",
            path.display()
        )));
    }
    // This also creates the cache.
    let store = isolated_repository::empty(cache, false, false)?;
    let own = path_below(path, cache);
    reject_special_files(path, own.as_deref())?;
    let excludes = user_excludes_file();
    // Files are stored byte for byte, without line-end conversion, filters or keywords.
    std::fs::create_dir_all(store.path().join("info"))?;
    std::fs::write(
        store.path().join("info/attributes"),
        "* -text -eol -filter -ident -working-tree-encoding\n",
    )?;
    let git = Git::at(store.path())?;
    let run = |arguments: &[&str], input: &[u8]| -> Result<Vec<u8>> {
        let mut command = git.command();
        command.current_dir(path);
        command.args(["-c", "core.bare=false", "-c", "core.autocrlf=false"]);
        command.args(["-c", "core.safecrlf=false"]);
        if let Some(excludes) = &excludes {
            command.args(["-c", &format!("core.excludesFile={excludes}")]);
        }
        command.arg("--work-tree").arg(path).args(arguments);
        process::run(command, input, &ProcessLimits::default())?.printed(arguments[0])
    };
    let listed = run(
        &[
            "ls-files",
            "--others",
            "--exclude-standard",
            "--full-name",
            "-z",
        ],
        b"",
    )?;
    let chosen = select_files(path, &listed, own.as_deref(), &mut notes)?;
    if !chosen.is_empty() {
        run(&["update-index", "--add", "-z", "--stdin"], &chosen)?;
    }
    let tree = git.line(&["write-tree"])?.unwrap_or_default();
    Ok(Repository {
        git,
        cache: cache.to_owned(),
        name: folder_name(path),
        commit: None,
        date: None,
        tree,
        notes,
        submodules: BTreeSet::new(),
        partial: false,
        _store: Some(store),
    })
}

/// Returns the path of the program's cache below a folder, relative to it, if the cache is there. Other processes change
/// its files all the time.
fn path_below(folder: &Path, cache: &Path) -> Option<PathBuf> {
    let (folder, cache) = (folder.canonicalize().ok()?, cache.canonicalize().ok()?);
    let below = cache.strip_prefix(&folder).ok()?;
    (!below.as_os_str().is_empty()).then(|| below.to_owned())
}

/// Rejects pipes and devices, because git opens files such as `.gitignore` and would block on a pipe. `own` is the path
/// of the program's cache below the folder.
fn reject_special_files(path: &Path, own: Option<&Path>) -> Result<()> {
    let own = own.map(|own| path.join(own));
    let mut folders = vec![path.to_owned()];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        // git reports unreadable folders better.
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            count += 1;
            if kind.is_dir() {
                let folder = entry.path();
                if own.as_ref() != Some(&folder) {
                    folders.push(folder);
                }
            } else if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
                let what = if kind.is_fifo() { "pipe" } else { "device" };
                let text = format!("read {}: it is a {what}", entry.path().display());
                return Err(SandboxError::input(text).hint("remove it, or use a folder without it"));
            }
        }
        if count > limits::FOLDER_ENTRIES {
            let text = format!(
                "read {}: it contains more than {} files",
                path.display(),
                limits::FOLDER_ENTRIES
            );
            return Err(SandboxError::input(text).hint("use the folder of the project itself"));
        }
    }
    Ok(())
}

/// Returns the files that git would add, except too large ones and those of the program's cache at `own`. Omitted files
/// are noted, except those of the cache.
fn select_files(
    path: &Path,
    listed: &[u8],
    own: Option<&Path>,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let (mut chosen, mut large, mut nested) = (Vec::new(), Vec::new(), Vec::new());
    let (mut count, mut bytes) = (0, 0);
    for name in listed.split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let text = || String::from_utf8_lossy(name).into_owned();
        if own.is_some_and(|own| Path::new(OsStr::from_bytes(name)).starts_with(own)) {
            continue;
        }
        if name.ends_with(b"/") {
            nested.push(text());
            continue;
        }
        let Ok(metadata) = path.join(OsStr::from_bytes(name)).symlink_metadata() else {
            continue;
        };
        if !metadata.is_file() && !metadata.is_symlink() {
            continue;
        }
        if metadata.len() > limits::FILE {
            large.push(text());
            continue;
        }
        count += 1;
        bytes += metadata.len();
        if count > limits::ENTRIES || bytes > limits::ARCHIVE {
            return Err(too_large(bytes));
        }
        chosen.extend_from_slice(name);
        chosen.push(0);
    }
    notes.extend(super::archive::left_out_for_size(&large));
    if !nested.is_empty() {
        let names = super::archive::list_few(&nested);
        notes.push(format!("nested repositories were omitted: {names}"));
    }
    Ok(chosen)
}

/// Returns the user's own list of excluded files, if it is not in its default place. The user is trusted.
fn user_excludes_file() -> Option<String> {
    let mut command = Git::nowhere().network();
    command.args(["config", "--global", "--type=path", "--get"]);
    command.arg("core.excludesFile");
    process::run(command, b"", &ProcessLimits::default())
        .ok()?
        .line()
}
