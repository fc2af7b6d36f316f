//! A tree as a tar archive: every tracked file with its link or mode, all with the commit's date.
//!
//! `git archive` would omit files marked `export-ignore` and rewrite files marked `export-subst`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::clone::fetch_blobs;
use super::git::{Git, failed};
use super::listing::{Entry, list, parse, too_large};
use super::object_hash::{HashingReader, ObjectHash, check_tree};
use super::patch_base::{FileKind, is_plain};
use super::{Repository, Source, archive_cache, limits, process, submodules};
use crate::error::SandboxError;
use crate::hex::hex;
use crate::sandbox::Result;

/// Start of the note about submodules without content, followed by their paths.
pub(crate) const EMPTY_SUBMODULES: &str = "submodules were left empty: ";
/// Start of the note about files of Git LFS, before their paths.
pub(crate) const LFS_POINTERS: &str = "files are Git LFS pointers without their content: ";

impl Repository {
    /// Returns the tracked files as an archive. Takes milliseconds if the cache has it.
    ///
    /// # Errors
    ///
    /// Fails if git cannot read the objects, a limit on what is read is exceeded, or the archive cannot be written.
    pub fn source(&self) -> Result<Source> {
        let folder = self.cache.join("sources");
        crate::private::create_closed(&folder)?;
        // Listing and describing a commit take longer than everything else, so the result is recorded. A commit's
        // files never change, but its tags may. The history that describes a commit is not verified, so a record
        // applies only to the same objects.
        let record = match &self.commit {
            Some(commit) => {
                let mut tags = self.git.run(&["for-each-ref", "refs/tags"])?.into_bytes();
                // A repository that has all its objects borrows none.
                let borrowed = self.git.alternates();
                let borrowed = borrowed.and_then(|path| std::fs::read(path).ok());
                tags.extend(borrowed.unwrap_or_default());
                let tags = hex(&Sha256::digest(&tags));
                let parts = [commit, &self.tree, &tags].map(|hash| short(hash));
                Some(folder.join(format!("{}.json", parts.join("-"))))
            }
            None => None,
        };
        let record_bytes = record.as_ref().and_then(|path| std::fs::read(path).ok());
        let recorded_source =
            record_bytes.and_then(|text| serde_json::from_slice::<Source>(&text).ok());
        let held = match &recorded_source {
            Some(source) => archive_cache::acquire_lease(&source.archive)?,
            None => None,
        };
        let current_source = match (recorded_source, held) {
            (Some(source), held @ Some(_)) => Source { held, ..source },
            _ => {
                let (source, whole) = create_source(self, &folder)?;
                check_tree(&self.git, self.commit.as_deref(), &self.tree)?;
                if let (Some(record), true) = (record, whole) {
                    let text = serde_json::to_vec(&source)
                        .map_err(|e| SandboxError::system(e.to_string()))?;
                    crate::private::write(&record, &text)?;
                }
                source
            }
        };
        let mut notes = self.notes.clone();
        notes.extend(current_source.notes);
        Ok(Source {
            name: self.name.clone(),
            notes,
            ..current_source
        })
    }
}

fn short(hash: &str) -> &str {
    &hash[..hash.len().min(16)]
}

/// Lists the tree, describes the commit and writes the archive. Returns whether all content was available.
fn create_source(repository: &Repository, folder: &Path) -> Result<(Source, bool)> {
    let git = &repository.git;
    let mut listing =
        submodules::expand(git, list(git, &repository.tree)?, &repository.submodules)?;
    // The same files can come from commits with different dates, and the archive includes the date.
    let time = repository.date.unwrap_or(NO_DATE);
    let name = |digest: &str| folder.join(format!("{}-{time}.tar", &digest[..32]));
    let mut digest = hex(&Sha256::digest(&listing));
    let mut archive = name(&digest);
    let mut notes = Vec::new();
    let mut missing = Vec::new();

    let entries: Vec<_> = listing.split(|b| *b == 0).filter_map(parse).collect();
    if entries.is_empty() {
        return Err(SandboxError::input("the repository has no files")
            .hint("pass the folder of the code with --repo"));
    }
    check(&entries)?;
    let empty = entries.iter().filter(|e| e.mode == submodules::MODE);
    let empty: Vec<_> = empty.map(Entry::name).collect();
    if !empty.is_empty() {
        notes.push(format!(
            "{EMPTY_SUBMODULES}{} (to include them, run `git submodule update --init --recursive` in a clone and use it with --repo)",
            list_few(&empty)
        ));
    }
    let mut held = archive_cache::acquire_lease(&archive)?;
    if held.is_none() {
        let written = write(git, &repository.tree, &entries, time, folder)?;
        missing = written.missing;
        if !missing.is_empty() {
            let names = list_few(&missing);
            notes.push(format!(
                "files whose content the repository lacks were omitted: {names}"
            ));
            if repository.partial {
                notes.push(
                    "the repository is a partial clone, which testwright never fetches into: use its URL, or run `git fetch --refetch --filter=blob:limit=1g` there"
                        .to_owned(),
                );
            }
        }
        // Without the omitted files this is not the commit, so the archive gets another digest.
        let absent = missing.iter().chain(&written.large);
        let absent: Vec<u8> = absent
            .flat_map(|path| [b"missing ", path.as_bytes()].concat())
            .collect();
        if !absent.is_empty() {
            listing.extend(absent);
            digest = hex(&Sha256::digest(&listing));
            archive = name(&digest);
        }
        let mut noted = Vec::new();
        if !written.pointers.is_empty() {
            let names = list_few(&written.pointers);
            noted.push(format!("{LFS_POINTERS}{names}"));
        }
        noted.extend(left_out_for_size(&written.large));
        if !noted.is_empty() {
            std::fs::write(archive.with_extension("notes"), noted.join("\n"))?;
        }
        held = archive_cache::store(written.file, &archive)?;
    }
    // Notes about large files are stored beside the archive.
    let noted = std::fs::read_to_string(archive.with_extension("notes")).unwrap_or_default();
    notes.extend(noted.lines().map(str::to_owned));
    let describe = match &repository.commit {
        Some(commit) => git.line(&["describe", "--tags", "--match", "*[0-9]*", commit])?,
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

/// A finished archive in a temporary file.
struct NewArchive {
    file: tempfile::NamedTempFile,
    /// Files that are Git LFS pointers.
    pointers: Vec<String>,
    /// Files whose content the repository lacks, as in a mirror without the largest blobs.
    missing: Vec<String>,
    /// Files that exceed the size limit.
    large: Vec<String>,
}

/// Lists the first few of many names.
pub(super) fn list_few(names: &[String]) -> String {
    let first_names: Vec<String> = names
        .iter()
        .take(5)
        .map(|name| match name.char_indices().nth(100) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.clone(),
        })
        .collect();
    let more = if names.len() > 5 { ", …" } else { "" };
    first_names.join(", ") + more
}

pub(super) fn left_out_for_size(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| {
        let max_size = limits::human_size(limits::FILE);
        format!(
            "files larger than {max_size} were omitted: {}",
            list_few(names)
        )
    })
}

/// Checks that every path lies in the tree, is unique, and has only folders above it. A malicious tree can violate
/// this.
fn check(entries: &[Entry<'_>]) -> Result<()> {
    if entries.len() > limits::ENTRIES {
        return Err(too_large(0));
    }
    let refused = |path: &[u8], why: &str| {
        let name = list_few(&[String::from_utf8_lossy(path).into_owned()]);
        let text = format!("the commit contains `{}`, {why}", name.escape_debug());
        SandboxError::input(text)
            .hint("use another commit: this one is damaged or was tampered with, and git refuses to check it out")
    };
    let mut seen = HashSet::with_capacity(entries.len());
    for entry in entries {
        if !is_plain(&entry.name()) || entry.path.len() > limits::PATH {
            return Err(refused(
                entry.path,
                "which is not a valid path in a work tree",
            ));
        }
        if !seen.insert(entry.path) {
            return Err(refused(entry.path, "which occurs twice"));
        }
    }
    for entry in entries {
        let ends = entry.path.iter().enumerate().filter(|(_, b)| **b == b'/');
        for (end, _) in ends {
            if seen.contains(&entry.path[..end]) {
                return Err(refused(entry.path, "which lies below a file"));
            }
        }
    }
    Ok(())
}

/// 2000-01-01, for files of a folder without git. Zip archives cannot store dates before 1980.
const NO_DATE: i64 = 946_684_800;

fn rfc3339(seconds: i64) -> Option<String> {
    jiff::Timestamp::from_second(seconds)
        .ok()
        .map(|t| t.to_string())
}

/// Returns the size of each file in bytes, in order, or `None` if the repository lacks it.
fn sizes(git: &Git, files: &[&Entry<'_>]) -> Result<Vec<Option<u64>>> {
    let output = git.try_run(
        &["cat-file", "--batch-check=%(objecttype) %(objectsize)"],
        names(files).as_bytes(),
    )?;
    let text = String::from_utf8_lossy(&output.stdout);
    let sizes: Vec<_> = text
        .lines()
        .map(|line| line.strip_prefix("blob ")?.parse().ok())
        .collect();
    if sizes.len() == files.len() {
        return Ok(sizes);
    }
    Err(failed("cat-file", &output.stderr))
}

fn names(files: &[&Entry<'_>]) -> String {
    files.iter().map(|e| format!("{}\n", e.object)).collect()
}

/// Writes the archive to an unnamed temporary file.
fn write(
    git: &Git,
    tree: &str,
    entries: &[Entry<'_>],
    time: i64,
    folder: &Path,
) -> Result<NewArchive> {
    let not_fetched = fetch_blobs(git, tree)?;
    let mut files: Vec<_> = entries
        .iter()
        .filter(|e| e.mode != submodules::MODE)
        .collect();
    let (mut missing, mut large) = (Vec::new(), Vec::new());
    let (mut sizes, mut total) = (sizes(git, &files)?.into_iter(), 0);
    files.retain(|entry| match sizes.next().flatten() {
        None if not_fetched.contains(entry.object) => {
            large.push(entry.name());
            false
        }
        None => {
            missing.push(entry.name());
            false
        }
        Some(size) if size > limits::FILE => {
            large.push(entry.name());
            false
        }
        Some(size) => {
            total += size;
            true
        }
    });
    if total > limits::ARCHIVE {
        return Err(too_large(total));
    }

    let mut command = git.command();
    command
        .args(["cat-file", "--batch", "--buffer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut program = process::ProcessGroup::start(command)?;
    let child = &mut program.child;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(SandboxError::system("git cat-file has no pipes"));
    };
    let aside = tempfile::NamedTempFile::new_in(folder)?;
    let list = names(&files);
    let mut objects = BufReader::with_capacity(1 << 16, stdout);
    let mut builder = tar::Builder::new(BufWriter::with_capacity(1 << 18, aside.as_file()));
    let mut pointers = Vec::new();
    let message = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(list.as_bytes()));
        let message = scope.spawn(move || {
            let mut message = String::new();
            // The message is optional, so read errors are ignored.
            let _ = stderr.take(1 << 16).read_to_string(&mut message);
            message
        });
        let began = Instant::now();
        let written = files.iter().try_for_each(|entry| {
            if began.elapsed() > limits::ARCHIVE_TIMEOUT {
                let seconds = limits::ARCHIVE_TIMEOUT.as_secs();
                let text = format!("reading the repository's files took more than {seconds} s");
                return Err(SandboxError::input(text));
            }
            let size = read_header(&mut objects)?;
            let hash = ObjectHash::new(entry.object, "blob", size);
            let mut content = HashingReader::new(&mut objects, hash);
            let start = append(&mut builder, entry, &mut content, size, time)?;
            content.check(entry.object)?;
            if start.starts_with(b"version https://git-lfs.github.com/spec/") {
                pointers.push(entry.name());
            }
            objects.read_exact(&mut [0])?;
            Ok(())
        });
        // Closing its output ends the program, and with it the threads.
        drop(objects);
        program.kill();
        let message = message.join().unwrap_or_default();
        written.map_err(|error: SandboxError| match message.trim() {
            "" => error,
            message => failed("cat-file", message),
        })
    });
    message?;
    builder.into_inner()?.flush()?;
    Ok(NewArchive {
        file: aside,
        pointers,
        missing,
        large,
    })
}

/// Reads the header of the next response of `git cat-file --batch`, `NAME TYPE SIZE`, and returns the size. The content
/// and a line end follow.
fn read_header(from: &mut impl BufRead) -> Result<u64> {
    let mut header = String::new();
    from.take(1000).read_line(&mut header)?;
    let size = header.trim_end().rsplit(' ').next();
    let size = size.and_then(|size| size.parse::<u64>().ok());
    size.filter(|size| *size <= limits::FILE).ok_or_else(|| {
        let text = format!("git cat-file: {}", header.trim_end());
        SandboxError::system(text)
    })
}

/// Copies one file in chunks and returns its beginning.
fn append(
    builder: &mut tar::Builder<impl Write>,
    entry: &Entry<'_>,
    content: &mut impl Read,
    size: u64,
    time: i64,
) -> Result<Vec<u8>> {
    let kind = match entry.mode {
        "120000" => FileKind::Link,
        "100755" => FileKind::Executable,
        _ => FileKind::Plain,
    };
    if kind == FileKind::Link && size > limits::PATH as u64 {
        let text = format!(
            "the target of the link {} is too long",
            list_few(&[entry.name()])
        );
        return Err(SandboxError::input(text));
    }
    let mut start = Vec::new();
    content.take(size.min(200)).read_to_end(&mut start)?;
    let rest = content.take(size - start.len() as u64);
    let path = Path::new(OsStr::from_bytes(entry.path));
    let time = u64::try_from(time).unwrap_or(0);
    append_file(
        builder,
        path,
        kind,
        start.as_slice().chain(rest),
        size,
        time,
    )?;
    Ok(start)
}

/// Appends a file that belongs to root, or a link whose target is the content.
pub(super) fn append_file(
    builder: &mut tar::Builder<impl Write>,
    path: &Path,
    kind: FileKind,
    mut content: impl Read,
    size: u64,
    time: u64,
) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    if kind == FileKind::Link {
        let mut target = Vec::new();
        content.read_to_end(&mut target)?;
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        builder.append_link(&mut header, path, OsStr::from_bytes(&target))?;
    } else {
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(kind.mode());
        header.set_size(size);
        builder.append_data(&mut header, path, content)?;
    }
    Ok(())
}
