//! A tree as a tar archive: every tracked file, links and modes kept, the commit's date on all of them.
//!
//! `git archive` would leave out what `export-ignore` names and rewrite what `export-subst` names.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use sha2::{Digest, Sha256};

use super::clone::{fetch_blobs, hex};
use super::git::{Git, failed, not_started};
use super::{Repository, Source, kept};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// One line of `git ls-tree`.
struct Entry<'a> {
    mode: &'a str,
    object: &'a str,
    path: &'a [u8],
}

pub(super) fn source(repository: &Repository) -> Result<Source> {
    let folder = repository.cache.join("sources");
    std::fs::create_dir_all(&folder)?;
    // Listing and describing a commit take longer than all else. Its files stay as they are, its tags may not.
    let record = match &repository.commit {
        Some(commit) => {
            let tags = repository.git.run(["for-each-ref", "refs/tags"])?;
            let tags = hex(&Sha256::digest(&tags));
            let parts = [commit, &repository.tree, &tags].map(|hash| short(hash));
            Some(folder.join(format!("{}.json", parts.join("-"))))
        }
        None => None,
    };
    let known = record.as_ref().and_then(|path| std::fs::read(path).ok());
    let known = known.and_then(|text| serde_json::from_slice::<Source>(&text).ok());
    let held = match &known {
        Some(source) => kept::hold(&source.archive)?,
        None => None,
    };
    let found = match (known, held) {
        (Some(source), held @ Some(_)) => Source { held, ..source },
        _ => {
            let (source, whole) = make(repository, &folder)?;
            if let (Some(record), true) = (record, whole) {
                let text = serde_json::to_vec(&source)
                    .map_err(|e| SandboxError::new(ErrorKind::System, e.to_string()))?;
                let aside = tempfile::NamedTempFile::new_in(&folder)?;
                std::fs::write(aside.path(), text)?;
                aside
                    .persist(record)
                    .map_err(|e| SandboxError::from(e.error))?;
            }
            source
        }
    };
    let mut notes = repository.notes.clone();
    notes.extend(found.notes);
    Ok(Source {
        name: repository.name.clone(),
        notes,
        ..found
    })
}

fn short(hash: &str) -> &str {
    &hash[..hash.len().min(16)]
}

/// Lists the tree, describes the commit and writes the archive. Tells whether all content was there.
fn make(repository: &Repository, folder: &Path) -> Result<(Source, bool)> {
    let git = &repository.git;
    let mut listing = git.run(["ls-tree", "-r", "-z", "--full-tree", &repository.tree])?;
    // Files of the same content can come from commits of different dates, which the archive keeps.
    let time = repository.date.unwrap_or(NO_DATE);
    let name = |digest: &str| folder.join(format!("{}-{time}.tar", &digest[..32]));
    let mut digest = hex(&Sha256::digest(&listing));
    let mut archive = name(&digest);
    let mut notes = Vec::new();
    let mut missing = Vec::new();

    let entries: Vec<_> = listing.split(|b| *b == 0).filter_map(parse).collect();
    if entries.is_empty() {
        return Err(SandboxError::new(
            ErrorKind::Input,
            "the repository has no files",
        ));
    }
    let submodules = entries.iter().filter(|e| e.mode == "160000");
    let submodules: Vec<_> = submodules
        .map(|e| String::from_utf8_lossy(e.path))
        .collect();
    if !submodules.is_empty() {
        notes.push(format!(
            "submodules are left empty: {}",
            submodules.join(", ")
        ));
    }
    // What was noticed about large files lies beside the archive.
    let noticed = archive.with_extension("notes");
    let mut held = kept::hold(&archive)?;
    if held.is_none() {
        let written = write(git, &repository.tree, &entries, time, folder)?;
        if written.pointers > 0 {
            let note = format!(
                "{} files are Git LFS pointers, their content is not there",
                written.pointers
            );
            std::fs::write(&noticed, note)?;
        }
        missing = written.missing;
        if !missing.is_empty() {
            let names = missing
                .iter()
                .take(5)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if missing.len() > 5 { ", …" } else { "" };
            notes.push(format!(
                "files whose content the repository does not have were left out: {names}{more}"
            ));
            // These are not the files of the commit, so they must not be found as such.
            listing.extend(
                missing
                    .iter()
                    .flat_map(|path| [b"missing ", path.as_bytes()].concat()),
            );
            digest = hex(&Sha256::digest(&listing));
            archive = name(&digest);
        }
        written
            .file
            .persist(&archive)
            .map_err(|e| SandboxError::from(e.error))?;
        held = kept::hold(&archive)?;
    }
    notes.extend(std::fs::read_to_string(&noticed).ok());
    let describe = match &repository.commit {
        Some(commit) => git.line(["describe", "--tags", "--match", "*[0-9]*", commit])?,
        None => None,
    };
    let source = Source {
        name: repository.name.clone(),
        commit: repository.commit.clone(),
        date: repository.date.and_then(rfc3339),
        archive,
        digest,
        describe,
        notes,
        held,
    };
    Ok((source, missing.is_empty()))
}

/// An archive that is written, aside.
struct Written {
    file: tempfile::NamedTempFile,
    /// Files that are mere pointers to large files.
    pointers: usize,
    /// Files whose content the repository does not have, as in a mirror that leaves out the largest.
    missing: Vec<String>,
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

/// Writes the archive into a file of no name yet.
fn write(
    git: &Git,
    tree: &str,
    entries: &[Entry<'_>],
    time: i64,
    folder: &Path,
) -> Result<Written> {
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
    let aside = tempfile::NamedTempFile::new_in(folder)?;
    let list = objects.join("\n") + "\n";
    let mut objects = BufReader::with_capacity(1 << 16, stdout);
    let mut builder = tar::Builder::new(BufWriter::with_capacity(1 << 18, aside.as_file()));
    let (mut pointers, mut missing) = (0, Vec::new());
    let mut content = Vec::new();

    let written = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(list.as_bytes()));
        for entry in &files {
            if !read_object(&mut objects, &mut content)? {
                missing.push(String::from_utf8_lossy(entry.path).into_owned());
                continue;
            }
            if content.starts_with(b"version https://git-lfs.github.com/spec/") {
                pointers += 1;
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
    Ok(Written {
        file: aside,
        pointers,
        missing,
    })
}

pub(super) fn make_readable(file: &File) -> Result<()> {
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
    let path = Path::new(OsStr::from_bytes(entry.path));
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
