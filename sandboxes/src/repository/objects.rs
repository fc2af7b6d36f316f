//! Looks over a stranger's folder of objects before git opens what is in it: git waits for pipes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::git_files::{self, odd};
use super::limits;
use super::patch::unquote;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// How far git follows from one folder of objects to the next, and how many there may be.
const DEPTH: usize = 5;
const COUNT: usize = 32;

/// The folder and those from which it borrows, all of them of plain files. Objects are found by their hashes alone, so
/// that a folder elsewhere gives away nothing but what the stranger can name already.
pub(super) fn check(objects: &Path) -> Result<Vec<PathBuf>> {
    let first = objects.canonicalize().map_err(|_| {
        let text = format!("read {}: it is not there", objects.display());
        SandboxError::new(ErrorKind::Input, text)
    })?;
    let mut seen = BTreeSet::from([first.clone()]);
    let mut all = vec![first.clone()];
    let mut level = vec![first];
    for depth in 0.. {
        let mut next = Vec::new();
        for folder in level {
            plain(&folder)?;
            let list = git_files::line(&folder.join("info/alternates"), limits::SMALL_FILE)?;
            let list = list.unwrap_or_default();
            for line in list
                .lines()
                .filter(|l| !l.is_empty() && !l.starts_with('#'))
            {
                // git passes over what is not there.
                let Ok(path) = folder.join(unquote(line)).canonicalize() else {
                    continue;
                };
                if path.is_dir() && seen.insert(path.clone()) {
                    all.push(path.clone());
                    next.push(path);
                }
            }
        }
        if all.len() > COUNT || (depth >= DEPTH && !next.is_empty()) {
            return Err(odd(
                &objects.join("info/alternates"),
                "leads through too many folders",
            ));
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    Ok(all)
}

/// Loose objects, packs, and what is beside them.
fn plain(objects: &Path) -> Result<()> {
    for entry in entries(objects)? {
        let entry = entry?;
        if !entry.path().is_dir() {
            continue;
        }
        for inner in entries(&entry.path())? {
            let inner = inner?;
            let kind = inner.file_type()?;
            // Tools that share packs put links to them there.
            let fits = kind.is_file()
                || kind.is_dir()
                || (kind.is_symlink()
                    && (inner.path().is_file() || inner.path().metadata().is_err()));
            if !fits {
                return Err(odd(&inner.path(), "is a pipe, a socket or a device"));
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<std::fs::ReadDir> {
    std::fs::read_dir(folder).map_err(|e| odd(folder, &format!("cannot be read: {e}")))
}
