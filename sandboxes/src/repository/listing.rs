//! The files of a tree, as `git ls-tree` lists them.

use super::git::Git;
use super::limits;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// Lists all files of a tree. The output is limited, because a small repository can contain an endless tree.
pub(super) fn list(git: &Git, tree: &str) -> Result<Vec<u8>> {
    let output = git.try_run(&["ls-tree", "-r", "-z", "--full-tree", tree], b"");
    let output = output.map_err(|error| match error.kind {
        ErrorKind::Input => too_large(0),
        _ => error,
    })?;
    output.printed("ls-tree")
}

/// One line of `git ls-tree`.
pub(super) struct Entry<'a> {
    pub mode: &'a str,
    pub object: &'a str,
    pub path: &'a [u8],
}

impl Entry<'_> {
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(self.path).into_owned()
    }
}

pub(super) fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let tab = line.iter().position(|b| *b == b'\t')?;
    let mut fields = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let (mode, _kind, object) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Entry {
        mode,
        object,
        path: &line[tab + 1..],
    })
}

pub(super) fn too_large(bytes: u64) -> SandboxError {
    let max_size = limits::human_size(limits::ARCHIVE);
    let text = if bytes > limits::ARCHIVE {
        format!("the files of the repository are larger than {max_size} in total")
    } else {
        format!("the repository has more than {} files", limits::ENTRIES)
    };
    SandboxError::input(text).hint("if it contains several projects, use the folder of one of them")
}
