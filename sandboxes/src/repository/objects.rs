//! Checks of an untrusted folder of objects before git opens its files, because git would block on a pipe.

use std::path::{Path, PathBuf};

use super::git_files::{self, unexpected_content, unreadable};
use super::limits;
use super::patch::unquote;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// Maximum depth to which git follows alternates, and maximum number of folders of objects.
const MAX_ALTERNATES_DEPTH: usize = 5;
const COUNT: usize = 32;

/// Returns the folder and those that it borrows from, after checking that they contain only plain files.
///
/// Objects are found only by hash, so another folder reveals nothing that an attacker could not already name.
pub(super) fn check(objects: &Path) -> Result<Vec<PathBuf>> {
    let first = objects.canonicalize().map_err(|_| {
        let text = format!("read {}: it does not exist", objects.display());
        SandboxError::input(text)
    })?;
    let mut all = vec![(first, 0)];
    for next in 0.. {
        let Some((folder, depth)) = all.get(next).cloned() else {
            break;
        };
        check_plain_files(&folder)?;
        let list = git_files::line(&folder.join("info/alternates"), limits::SMALL_FILE)?;
        let list = list.unwrap_or_default();
        for line in list
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'))
        {
            // Like git, this skips missing folders.
            let Ok(path) = folder.join(unquote(line)).canonicalize() else {
                continue;
            };
            if !path.is_dir() || all.iter().any(|(known, _)| *known == path) {
                continue;
            }
            if all.len() == COUNT || depth == MAX_ALTERNATES_DEPTH {
                return Err(unexpected_content(
                    &objects.join("info/alternates"),
                    "refers to too many folders",
                ));
            }
            all.push((path, depth + 1));
        }
    }
    Ok(all.into_iter().map(|(folder, _)| folder).collect())
}

/// Checks loose objects, packs and the files beside them.
fn check_plain_files(objects: &Path) -> Result<()> {
    for entry in entries(objects)? {
        let entry = entry?;
        if !entry.path().is_dir() {
            continue;
        }
        for inner in entries(&entry.path())? {
            let inner = inner?;
            let kind = inner.file_type()?;
            // Tools that share packs create links to them.
            let fits = kind.is_file()
                || kind.is_dir()
                || (kind.is_symlink()
                    && (inner.path().is_file() || inner.path().metadata().is_err()));
            if !fits {
                return Err(unexpected_content(
                    &inner.path(),
                    "is a pipe, a socket or a device",
                ));
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<std::fs::ReadDir> {
    std::fs::read_dir(folder).map_err(|e| unreadable(folder, &e))
}
