//! A git folder that testwright creates to present an untrusted repository: objects by reference, refs as copies, and
//! neither configuration nor hooks.
//!
//! These are omitted on purpose:
//!
//! - Grafts and replacements, because the old code must be that of the commit.
//! - Commit graphs, multi-pack indexes and bitmaps, which only save time and would have to be trusted.
//! - Promisor remotes, because nothing may be fetched.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::config::Config;
use super::discover::{GitFolder, is_hash, is_ref};
use super::git::Git;
use super::git_files::{self, unexpected_content};
use super::limits;
use super::objects;
use crate::error::SandboxError;
use crate::sandbox::Result;

#[derive(Debug)]
pub(super) struct IsolatedRepository {
    pub git: Git,
    pub config: Config,
    /// Temporary folder, removed when this value is dropped.
    pub folder: TempDir,
}

/// Heads that are not refs but can be used as a revision.
const OTHER_HEADS: [&str; 5] = [
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
];

/// Creates an isolated copy of a git folder. `reflogs` also copies the logs that revisions such as `HEAD@{1}` need.
pub(super) fn isolate(from: &GitFolder, cache: &Path, reflogs: bool) -> Result<IsolatedRepository> {
    let config = Config::read(&from.common)?;
    let tables = config.get("extensions.refstorage") == Some("reftable");
    let sha256 = config.get("extensions.objectformat") == Some("sha256");
    let folder = empty(cache, sha256, tables)?;
    let own = folder.path();
    let objects = objects::check(&from.common.join("objects"))?;
    let alternates: Vec<_> = objects.iter().map(|path| quoted(path)).collect();
    std::fs::create_dir(own.join("objects/info"))?;
    std::fs::write(own.join("objects/info/alternates"), alternates.concat())?;
    let git = Git::at(own)?;

    if tables {
        copy_tables(&from.common, own)?;
        if from.own != from.common {
            // The head of a linked work tree is in separate tables.
            let folder = empty(cache, sha256, true)?;
            copy_tables(&from.own, folder.path())?;
            let scratch = Git::at(folder.path())?;
            match scratch.line(&["symbolic-ref", "--quiet", "HEAD"])? {
                Some(name) => git.run(&["symbolic-ref", "HEAD", &name])?,
                None => match scratch.object("HEAD")? {
                    Some(hash) => git.run(&["update-ref", "--no-deref", "HEAD", &hash])?,
                    None => String::new(),
                },
            };
        }
    } else {
        let path = from.own.join("HEAD");
        let head = read_ref(&path)?
            .ok_or_else(|| unexpected_content(&path, "names neither a branch nor a commit"))?;
        std::fs::write(own.join("HEAD"), head + "\n")?;
        copy_refs(from, own)?;
        if reflogs {
            copy_logs(from, own)?;
        }
    }
    for name in OTHER_HEADS {
        let text = git_files::line(&from.own.join(name), limits::MAX_MEDIUM_FILE_BYTES)?;
        let first = text.and_then(|t| t.split_whitespace().next().map(str::to_owned));
        if let Some(hash) = first.filter(|hash| is_hash(hash)) {
            std::fs::write(own.join(name), hash + "\n")?;
        }
    }
    if let Some(text) =
        git_files::line(&from.common.join("shallow"), limits::MAX_MEDIUM_FILE_BYTES)?
    {
        let lines: Vec<_> = text.lines().filter(|l| is_hash(l)).collect();
        std::fs::write(own.join("shallow"), lines.join("\n") + "\n")?;
    }
    Ok(IsolatedRepository {
        git,
        config,
        folder,
    })
}

/// Creates an empty bare repository in a temporary folder.
pub(super) fn empty(cache: &Path, sha256: bool, tables: bool) -> Result<TempDir> {
    std::fs::create_dir_all(cache)?;
    remove_leftovers(cache)?;
    let folder = tempfile::Builder::new()
        .prefix("snapshot-")
        .tempdir_in(std::path::absolute(cache)?)?;
    write_empty(folder.path(), sha256, tables)?;
    Ok(folder)
}

/// Removes folders that killed runs left. No run uses one for more than a day.
fn remove_leftovers(cache: &Path) -> Result<()> {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    for entry in std::fs::read_dir(cache)? {
        let entry = entry?;
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"snapshot-")
        {
            continue;
        }
        let age = entry.metadata().and_then(|metadata| metadata.modified());
        if age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > DAY)) {
            // Another process may be removing the same folder.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Writes an empty repository by hand, because `git init` would use templates and formats from elsewhere.
pub(super) fn write_empty(folder: &Path, sha256: bool, tables: bool) -> Result<()> {
    for name in ["objects", "refs/heads"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    let head = if tables { ".invalid" } else { "main" };
    std::fs::write(folder.join("HEAD"), format!("ref: refs/heads/{head}\n"))?;
    // A git that serves this folder at a `file:` URL reads only this configuration.
    let mut config = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n\
        \tbigFileThreshold = 1m\n\tpackedGitLimit = 256m\n\
        [uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n\
        [extensions]\n"
        .to_owned();
    if sha256 {
        config.push_str("\tobjectFormat = sha256\n");
    }
    if tables {
        config.push_str("\trefStorage = reftable\n");
    }
    std::fs::write(folder.join("config"), config)?;
    Ok(())
}

/// Returns the line of an alternates file for a path.
pub(super) fn quoted(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut line = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            0x20..0x7f => line.push(*byte),
            _ => line.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    line.extend(b"\"\n");
    line
}

/// Returns the content of the file of a ref: a hash, or the name of another ref. Returns `None` if it is neither. Old
/// versions of git used a symbolic link, which git still reads.
fn read_ref(path: &Path) -> Result<Option<String>> {
    let text = match std::fs::read_link(path) {
        Ok(target) => format!("ref: {}", target.display()),
        Err(_) => git_files::line(path, limits::SMALL_FILE)?.unwrap_or_default(),
    };
    Ok(match text.strip_prefix("ref:").map(str::trim) {
        Some(name) if is_ref(name) => Some(format!("ref: {name}")),
        None if is_hash(&text) => Some(text),
        _ => None,
    })
}

fn too_many() -> SandboxError {
    let max_refs = limits::REF_COUNT;
    let text = format!("read the refs of the repository: there are more than {max_refs}");
    SandboxError::input(text)
}

/// Copies all refs into `packed-refs`, and symbolic refs as files.
fn copy_refs(from: &GitFolder, own: &Path) -> Result<()> {
    let mut refs = BTreeMap::new();
    let packed = git_files::line(&from.common.join("packed-refs"), limits::REFS)?;
    for line in packed.unwrap_or_default().lines() {
        if let Some((hash, name)) = line.split_once(' ')
            && is_hash(hash)
            && is_ref(name)
        {
            refs.insert(name.to_owned(), hash.to_owned());
        }
    }
    let mut symbolic = Vec::new();
    let mut folders = vec![from.common.as_path()];
    if from.own != from.common {
        folders.push(&from.own);
    }
    for git_folder in folders {
        for name in files_below(git_folder, "refs")? {
            if !is_ref(&name) {
                continue;
            }
            match read_ref(&git_folder.join(&name))? {
                Some(target) if target.starts_with("ref: ") => symbolic.push((name, target)),
                Some(hash) => drop(refs.insert(name, hash)),
                // Like git, this ignores broken refs.
                None => {}
            }
        }
    }
    refs.retain(|name, _| !name.starts_with("refs/replace/"));
    if refs.len() + symbolic.len() > limits::REF_COUNT {
        return Err(too_many());
    }
    let mut text = "# pack-refs with: sorted \n".to_owned();
    for (name, hash) in &refs {
        let _ = writeln!(text, "{hash} {name}");
    }
    std::fs::write(own.join("packed-refs"), text)?;
    for (name, target) in symbolic {
        let path = own.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, target + "\n")?;
    }
    Ok(())
}

/// Returns the paths of everything below a folder except folders. Links to folders are not followed.
fn files_below(git_folder: &Path, start: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![start.to_owned()];
    if git_folder.join(start).is_symlink() {
        return Err(unexpected_content(
            &git_folder.join(start),
            "is a symbolic link",
        ));
    }
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(git_folder.join(&folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(name);
            } else {
                paths.push(name);
            }
            if paths.len() + folders.len() > limits::REF_COUNT {
                return Err(too_many());
            }
        }
    }
    Ok(paths)
}

fn copy_logs(from: &GitFolder, own: &Path) -> Result<()> {
    let mut room = limits::REFS;
    let copy = |folder: &Path, name: &str, room: &mut u64| -> Result<()> {
        let to = own.join(name);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if git_files::copy(&folder.join(name), &to, *room)? {
            *room = room.saturating_sub(to.metadata()?.len());
        }
        Ok(())
    };
    copy(&from.own, "logs/HEAD", &mut room)?;
    for name in files_below(&from.common, "logs")? {
        if name.strip_prefix("logs/").is_some_and(is_ref) {
            copy(&from.common, &name, &mut room)?;
        }
    }
    Ok(())
}

fn copy_tables(from: &Path, own: &Path) -> Result<()> {
    let (from, to) = (from.join("reftable"), own.join("reftable"));
    if from.is_symlink() {
        return Err(unexpected_content(&from, "is a symbolic link"));
    }
    std::fs::create_dir_all(&to)?;
    let list = git_files::line(&from.join("tables.list"), limits::SMALL_FILE)?.unwrap_or_default();
    for name in list.lines() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !name.ends_with(".ref") || !name.chars().all(plain) {
            return Err(unexpected_content(
                &from.join("tables.list"),
                "names files that are not tables",
            ));
        }
        git_files::copy(&from.join(name), &to.join(name), limits::REFS)?;
    }
    std::fs::write(to.join("tables.list"), list + "\n")?;
    Ok(())
}
