//! A tree as a tar archive: every tracked file, links and modes kept, the commit's date on all of them.
//!
//! `git archive` would leave out what `export-ignore` names and rewrite what `export-subst` names.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::Stdio;

use sha2::{Digest, Sha256};

use super::clone::{fetch_blobs, hex};
use super::git::{Git, failed, not_started};
use super::{Repository, Source};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// One line of `git ls-tree`.
struct Entry<'a> {
    mode: &'a str,
    object: &'a str,
    path: &'a [u8],
}

pub(super) fn source(repository: &Repository) -> Result<Source> {
    let git = &repository.git;
    let listing = git.run(["ls-tree", "-r", "-z", "--full-tree", &repository.tree])?;
    let entries: Vec<_> = listing.split(|b| *b == 0).filter_map(parse).collect();
    if entries.is_empty() {
        return Err(SandboxError::new(
            ErrorKind::Input,
            "the repository has no files",
        ));
    }
    let digest = hex(&Sha256::digest(&listing));
    // Files of the same content can come from commits of different dates, which the archive keeps.
    let time = repository.date.unwrap_or(NO_DATE);
    let folder = repository.cache.join("sources");
    std::fs::create_dir_all(&folder)?;
    let archive = folder.join(format!("{}-{time}.tar", &digest[..32]));

    let mut notes = repository.notes.clone();
    let submodules: Vec<_> = entries.iter().filter(|e| e.mode == "160000").collect();
    if !submodules.is_empty() {
        let names: Vec<_> = submodules
            .iter()
            .map(|e| String::from_utf8_lossy(e.path))
            .collect();
        notes.push(format!("submodules are left empty: {}", names.join(", ")));
    }
    // What was noticed while writing it lies beside it.
    let noticed = archive.with_extension("notes");
    if !archive.exists() {
        let told = write(git, &repository.tree, &entries, time, &archive)?.told();
        if told.is_empty() {
            let _ = std::fs::remove_file(&noticed);
        } else {
            std::fs::write(&noticed, told.join("\n"))?;
        }
    }
    if let Ok(told) = std::fs::read_to_string(&noticed) {
        notes.extend(told.lines().map(str::to_owned));
    }
    let describe = match &repository.commit {
        Some(commit) => git.line(["describe", "--tags", "--match", "*[0-9]*", commit])?,
        None => None,
    };
    Ok(Source {
        name: repository.name.clone(),
        commit: repository.commit.clone(),
        date: repository.date.and_then(rfc3339),
        archive,
        digest,
        describe,
        notes,
    })
}

/// What is not as it should be in an archive.
#[derive(Default)]
struct Noticed {
    /// Files that are mere pointers to large files.
    pointers: usize,
    /// Files whose content the repository does not have, as in a mirror that leaves out the largest.
    missing: Vec<String>,
}

impl Noticed {
    fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.pointers > 0 {
            told.push(format!(
                "{} files are Git LFS pointers, their content is not there",
                self.pointers
            ));
        }
        if !self.missing.is_empty() {
            let names = self
                .missing
                .iter()
                .take(5)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if self.missing.len() > 5 { ", …" } else { "" };
            told.push(format!(
                "files whose content the repository does not have were left out: {names}{more}"
            ));
        }
        told
    }
}

/// 2000-01-01: files of a folder without git; zip archives cannot hold dates before 1980.
const NO_DATE: i64 = 946_684_800;

fn rfc3339(seconds: i64) -> Option<String> {
    jiff::Timestamp::from_second(seconds)
        .ok()
        .map(|t| t.to_string())
}

fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let tab = line.iter().position(|b| *b == b'\t')?;
    let mut fields = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let (mode, _kind, object) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Entry {
        mode,
        object,
        path: &line[tab + 1..],
    })
}

/// Writes the archive aside and renames it.
fn write(
    git: &Git,
    tree: &str,
    entries: &[Entry<'_>],
    time: i64,
    target: &std::path::Path,
) -> Result<Noticed> {
    let files: Vec<_> = entries.iter().filter(|e| e.mode != "160000").collect();
    let objects: Vec<_> = files.iter().map(|e| e.object).collect();
    fetch_blobs(git, tree)?;

    let mut child = git
        .command()
        .args(["cat-file", "--batch", "--buffer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(SandboxError::new(
            ErrorKind::System,
            "git cat-file has no pipes",
        ));
    };
    let folder = target.parent().unwrap_or(target);
    let aside = tempfile::NamedTempFile::new_in(folder)?;
    let list = objects.join("\n") + "\n";
    let mut objects = BufReader::with_capacity(1 << 16, stdout);
    let mut builder = tar::Builder::new(BufWriter::with_capacity(1 << 18, aside.as_file()));
    let mut noticed = Noticed::default();
    let mut content = Vec::new();

    let written = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(list.as_bytes()));
        for entry in &files {
            if !read_object(&mut objects, &mut content)? {
                noticed
                    .missing
                    .push(String::from_utf8_lossy(entry.path).into_owned());
                continue;
            }
            if content.starts_with(b"version https://git-lfs.github.com/spec/") {
                noticed.pointers += 1;
            }
            append(&mut builder, entry, &content, time)?;
        }
        Ok(())
    });
    if let Err(error) = written {
        let _ = child.kill();
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(if said.trim().is_empty() {
            error
        } else {
            failed("cat-file", said.trim())
        });
    }
    child.wait()?;
    builder.into_inner()?.flush()?;
    aside.as_file().sync_data()?;
    make_readable(aside.as_file())?;
    aside
        .persist(target)
        .map_err(|e| SandboxError::from(e.error))?;
    Ok(noticed)
}

fn make_readable(file: &File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// The next answer of `git cat-file --batch`: a line `NAME TYPE SIZE`, the content, a line end; or `NAME missing`.
fn read_object(from: &mut impl BufRead, content: &mut Vec<u8>) -> Result<bool> {
    let mut header = String::new();
    from.read_line(&mut header)?;
    if header.trim_end().ends_with(" missing") {
        return Ok(false);
    }
    let size = header
        .trim_end()
        .rsplit(' ')
        .next()
        .and_then(|size| size.parse::<usize>().ok())
        .ok_or_else(|| {
            SandboxError::new(
                ErrorKind::System,
                format!("git cat-file: {}", header.trim_end()),
            )
        })?;
    content.clear();
    content.resize(size, 0);
    from.read_exact(content)?;
    from.read_exact(&mut [0])?;
    Ok(true)
}

fn append(
    builder: &mut tar::Builder<impl Write>,
    entry: &Entry<'_>,
    content: &[u8],
    time: i64,
) -> Result<()> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let mut header = tar::Header::new_gnu();
    header.set_mtime(u64::try_from(time).unwrap_or(0));
    header.set_uid(0);
    header.set_gid(0);
    let path = std::path::Path::new(OsStr::from_bytes(entry.path));
    if entry.mode == "120000" {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        builder.append_link(&mut header, path, OsStr::from_bytes(content))?;
    } else {
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(if entry.mode == "100755" { 0o755 } else { 0o644 });
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, path, content)?;
    }
    Ok(())
}
