//! Saved states as files, for transfer to another machine: a compressed tar archive that starts with the description of
//! the state.
//!
//! Built code wrote the files: links in them are never followed, and nothing is unpacked outside its folder.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::LocalContext;
use super::copy::{CopyMode, SETID_BITS, copy_tree};
use super::removal::remove_tree;
use super::state_store::{Cache, SavedState, with_context};
use super::tree_archive::append_tree;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// Entry that describes the state.
const DESCRIPTION: &str = "state.json";
/// Maximum bytes of the description; a longer one is not from testwright.
const MAX_DESCRIPTION_LEN: u64 = 1 << 20;
const FOLDERS: [&str; 2] = ["workspace", "store"];

pub(super) fn export(cache: &Cache, name: &str, to: &Path) -> Result<()> {
    let lease = cache.use_state(name)?;
    let compressed = zstd::Encoder::new(File::create(to)?, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let mut archive = tar::Builder::new(compressed);
    archive.follow_symlinks(false);
    let text = serde_json::to_vec(&lease.state).map_err(io::Error::from)?;
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(text.len() as u64);
    archive.append_data(&mut header, DESCRIPTION, text.as_slice())?;
    for name in FOLDERS {
        let folder = lease.folder.join(name);
        append_tree(&mut archive, Path::new(name), &folder)
            .map_err(with_context("read", &folder))?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

/// Imports a state. Replaces an existing state of that name.
pub(super) fn import(inner: &LocalContext, name: &str, from: &Path) -> Result<()> {
    let state = description(from)?;
    if let Some(python) = state.python.as_ref().filter(|p| !p.executable.exists()) {
        let text = format!(
            "import the saved state {name}: it needs {}, which this machine does not have",
            python.executable.display()
        );
        return Err(SandboxError::not_found(text));
    }
    inner.cache.save(name, state, None, |folder| {
        let aside = folder.join("unpacked");
        fs::create_dir(&aside)?;
        let mut archive = open(from)?;
        archive.set_preserve_permissions(true);
        // The unpacked files belong to the user of this process.
        archive.set_mask(SETID_BITS);
        archive
            .unpack(&aside)
            .map_err(with_context("unpack", from))?;
        fs::rename(aside.join("store"), folder.join("store"))?;
        let (source, workspace) = (aside.join("workspace"), folder.join("workspace"));
        copy_tree(&source, &workspace, CopyMode::Copy, inner.owner_of_states())
            .map_err(with_context("copy", &source))?;
        Ok(remove_tree(&aside)?)
    })
}

fn open(from: &Path) -> io::Result<tar::Archive<impl Read>> {
    Ok(tar::Archive::new(BufReader::new(zstd::Decoder::new(
        File::open(from)?,
    )?)))
}

fn description(from: &Path) -> Result<SavedState> {
    let mut archive = open(from)?;
    let Some(first) = archive.entries()?.next() else {
        return Err(not_a_state());
    };
    let first = first?;
    if *first.path()? != *Path::new(DESCRIPTION) {
        return Err(not_a_state());
    }
    let mut text = Vec::new();
    first.take(MAX_DESCRIPTION_LEN).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|_| not_a_state())
}

fn not_a_state() -> SandboxError {
    SandboxError::system("import a saved state: the archive does not contain one")
}
